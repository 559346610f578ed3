"""Edited and damaged files of a run folder are read, or refused in one line."""

import copy
import json
import random

import pytest
from results.samples import make_result

import broca
from broca.explorer.explorer import ExplorerSubject
from broca.options import LocalizeOptions, RunOptions, VerifyOptions
from broca.results.files import decode, encode
from broca.runs.folder import RunFolder, finished_files, note_finished, options_of_run
from broca.verbs.verify import claim_of

OPTIONS = LocalizeOptions("reference", task="sorting")
ODD = (
    None, True, -1, 0, 10**9, 2**70, 1e308, float("nan"), "", "x", "../..", "\ud800", "\0",
    "9" * 5000, [], {}, [[]], {"a": 1}, "L0H0", ["L0H1"], "L999999999H0", "L0H999999999",
)  # fmt: skip


def places(value, path=()):
    """Yields the path of every value within JSON."""
    if path:
        yield path
    for key in (
        [*value] if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    ):
        yield from places(value[key], (*path, key))


def damaged(content, draw):
    """Returns a file of JSON with flipped bits, or with values replaced and removed."""
    if draw.random() < 0.3:
        flipped = bytearray(content[: draw.choice([None, draw.randrange(len(content))])])
        for place in draw.choices(range(len(flipped)), k=2):
            flipped[place] ^= 1 << draw.randrange(8)
        return bytes(flipped)
    data = copy.deepcopy(json.loads(content))
    for _ in range(draw.choice([1, 1, 2])):
        *above, key = draw.choice(list(places(data)))
        holder = data
        for step in above:
            holder = holder[step]
        if draw.random() < 0.7:
            holder[key] = draw.choice(ODD)
        else:
            del holder[key]
    return json.dumps(data).encode()


def shown(folder):
    """Reads a result as every command does that takes a run folder."""
    result = broca.read(folder)
    assert [*result.terminal(), str(result)]
    ExplorerSubject.of(folder)
    claim_of(VerifyOptions(str(folder)))
    result.page()


def reread(folder):
    """Reads a result, which is written and read again as it is."""
    result = broca.Localization.read(folder)
    assert encode(decode(broca.Localization, encode(result))) == encode(result)


def resumed(folder):
    """Reads the record of a run as its command and later ones do."""
    options_of_run(folder, RunOptions())
    RunFolder.claim(folder, verb="localize", options=OPTIONS, command=["broca"])


@pytest.mark.parametrize(
    ("name", "use", "tries"),
    [
        ("result.json", shown, 40), ("result.json", reread, 200), ("reproduce.json", resumed, 200),
        ("finished.json", lambda folder: finished_files(folder, "localize", OPTIONS), 20),
    ],
)  # fmt: skip
def test_damage_is_one_line(tmp_path, name, use, tries):
    """No change of a file ends in another exception than an error of one line."""
    RunFolder.claim(tmp_path, verb="localize", options=OPTIONS, command=["broca"])
    note_finished(tmp_path, "localize", OPTIONS, make_result().save(tmp_path, replace=True))
    content, draw, refusals = (tmp_path / name).read_bytes(), random.Random(0), []
    use(tmp_path)
    for _ in range(tries):
        (tmp_path / name).write_bytes(damaged(content, draw))
        try:
            use(tmp_path)
        except broca.BrocaError as error:
            refusals.append(str(error))
    assert not any("\n" in refusal or len(refusal) > 2000 for refusal in refusals)
    assert len(refusals) > tries / 2 or name == "finished.json"
