"""Writes the example files for language models: `python training/make_examples.py FOLDER`.

`names.jsonl`: who receives a thing, where the giver is named twice; half of the items name the
receiver first. `agreement.jsonl`: is or are, with a noun of the other number in between.
"""

import json
import random
import sys
from pathlib import Path

ITEMS = 400
WORDS = {
    "names": """
        Alice Anna Carol Clara Emma Helen Jane Julia Laura Lucy Maria Nora Paula Rosa Ruth Sarah
        Adam Carl Daniel David Frank George Henry Jack James John Mark Martin Paul Peter Robert Tom
    """,
    "places": "kitchen library market office park restaurant school station theater garden",
    "things": "book key letter ticket map bag phone glass cup picture",
    "nouns": """
        author book boy bridge car chair child dog doctor door driver farmer friend garden girl
        horse house king lawyer letter neighbor painter picture river road singer student table
        teacher tree
    """,
}
NAMES, PLACES, THINGS, NOUNS = (text.split() for text in WORDS.values())
SCENES = (
    "After {first} and {second} arrived at the {place}, {giver} gave a {thing} to",
    "When {first} and {second} met in the {place}, {giver} handed a {thing} to",
    "While {first} and {second} were waiting at the {place}, {giver} offered a {thing} to",
    "{first} and {second} were talking in the {place}. Then {giver} passed a {thing} to",
)
IRREGULAR = {"child": "children"}
BETWEEN = ("near", "behind", "beside", "next to", "in front of")


def names(draw: random.Random) -> dict[str, object]:
    """Returns an item about two people; the answer is the one who did not give."""
    first, second = draw.sample(NAMES, 2)
    giver, receiver = draw.choice(((first, second), (second, first)))
    scene, place, thing = draw.choice(SCENES), draw.choice(PLACES), draw.choice(THINGS)
    text = scene.format(first=first, second=second, giver=giver, place=place, thing=thing)
    return {"prompt": text, "choices": [f" {first}", f" {second}"], "label": f" {receiver}"}


def agreement(draw: random.Random) -> dict[str, object]:
    """Returns an item about a subject and a noun of the other number."""
    nouns = draw.sample(NOUNS, 2)
    plural = draw.random() < 0.5
    subject, other = (
        IRREGULAR.get(noun, f"{noun}s") if many else noun
        for noun, many in zip(nouns, (plural, not plural), strict=True)
    )
    prompt = f"The {subject} {draw.choice(BETWEEN)} the {other}"
    return {"prompt": prompt, "choices": [" is", " are"], "label": " are" if plural else " is"}


def main() -> None:
    """Writes both files; no prompt occurs twice."""
    for make in (names, agreement):
        draw, items = random.Random(make.__name__), {}
        while len(items) < ITEMS:
            item = make(draw)
            items[item["prompt"]] = json.dumps(item)
        path = Path(sys.argv[1]) / f"{make.__name__}.jsonl"
        path.write_text("\n".join(items.values()) + "\n")


if __name__ == "__main__":
    main()
