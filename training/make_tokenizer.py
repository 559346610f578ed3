"""Build the tokenizer of the shipped models: whole known words, bytes for everything else.

It is a byte-level BPE without merges. A piece of text (a word, one digit, one sign, each with the
space before it) is one token if the vocabulary has it, and its bytes otherwise, so that
decode(encode(text)) == text for any text. No <bos> is added: the models are trained without one.

Usage: `python training/make_tokenizer.py --out src/broca/reference_models/reference`
"""

from __future__ import annotations

import argparse
import json
import random
import string
from collections.abc import Iterable
from pathlib import Path

from facts import TEMPLATES, animals, capitals, elements
from generators import TASKS
from rhymes import families
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

SPECIAL = ("<pad>", "<bos>", "<eos>")
_PIECES = r" ?[A-Za-z]+| ?[0-9]| ?[^\sA-Za-z0-9]|\s"


def _splitter() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def known_text() -> list[str]:
    """Return text with every piece that becomes one token."""
    facts = [*capitals(), *capitals().values(), *elements(), *elements().values()]
    words = [*facts, *animals(), *(word for members in animals().values() for word in members)]
    words += [*string.ascii_letters, *string.digits, *"()[]{}<>+-*/=:;,.?!'\""]
    words += [family.answer for family in families()]
    rng = random.Random(0)
    prompts = [
        task.sample(rng, held_out=False).prompt
        for task in TASKS
        if task.name != "rhyming"
        for _ in range(100)
    ]
    return [*TEMPLATES, "rhyme with :", *prompts, *(f" {word}" for word in words)]


def build(texts: Iterable[str] | None = None) -> PreTrainedTokenizerFast:
    """Return the tokenizer that knows every piece of `texts`, by default of the shipped tasks."""
    splitter = _splitter()
    texts = known_text() if texts is None else texts
    pieces = {piece for text in texts for piece, _ in splitter.pre_tokenize_str(text)}
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    ordered = [*SPECIAL, *sorted(alphabet), *sorted(pieces - set(alphabet))]
    vocabulary = {piece: number for number, piece in enumerate(ordered)}
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    core.pre_tokenizer = splitter
    core.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token="<bos>",
        eos_token="<eos>",
        pad_token="<pad>",
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
    )


def save(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write the tokenizer's files, under the class name that all versions of transformers know."""
    tokenizer.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    config.pop("backend", None)
    path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Write the tokenizer into a model folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    tokenizer = build()
    save(tokenizer, options.out)
    print(f"{len(tokenizer)} tokens")


if __name__ == "__main__":
    main()
