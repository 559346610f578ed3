"""Files of finished work: nothing finished is lost, nothing is done twice."""

import json
from dataclasses import asdict, dataclass

import pytest

from broca.errors import BadInput
from broca.runs.lines import LineFile


@dataclass(frozen=True)
class Sum:
    """A piece of work: the sum of two numbers."""

    numbers: tuple[int, int]
    total: float

    @property
    def key(self):
        """What was asked."""
        return self.numbers

    def to_line(self):
        """As one line."""
        return json.dumps(asdict(self)) + "\n"


def read(line):
    """A sum from its line."""
    try:
        data = json.loads(line)
        return Sum(tuple(data["numbers"]), float(data["total"]))
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from error


@pytest.fixture
def opened(tmp_path):
    """Opens the same file anew."""
    return lambda: LineFile(tmp_path / "sums.jsonl", read)


def test_what_is_appended_comes_back(opened):
    """Another reader of the file finds the same pieces, in their order, and knows their keys."""
    file = opened()
    sums = [Sum((number, 1), number + 1.0) for number in (2, 0, 1)]
    for one in sums:
        assert one.key not in file
        file.append(one)
    again = opened()
    assert list(again.pieces) == sums
    assert all(one.key in again for one in sums)


def test_files_can_be_joined(opened):
    """Lines of several runs in one file: each key counts once, as it was last measured."""
    file = opened()
    for total, number in ((0.1, 0), (0.2, 1), (0.3, 0)):
        file.append(Sum((number, 0), total))
    for known in (file, opened()):
        assert {one.key[0]: one.total for one in known.pieces} == {0: 0.3, 1: 0.2}


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_torn_last_line_is_dropped_and_the_rest_kept(opened, cut):
    """A kill in the middle of a line loses that line alone, and the next one starts afresh."""
    file = opened()
    for number in range(3):
        file.append(Sum((number, 0), 1000.0))
    file.path.write_text(file.path.read_text()[:-cut])
    torn = opened()
    assert [one.key[0] for one in torn.pieces] == [0, 1]
    torn.append(Sum((9, 0), 9.0))
    assert [one.key[0] for one in opened().pieces] == [0, 1, 9]


def test_forgotten_pieces_are_gone_from_the_file(opened):
    """The others stay."""
    file = opened()
    for number in range(3):
        file.append(Sum((number, 0), 1.0))
    assert file.forget(lambda one: one.key[0] == 1) == 1
    assert file.forget(lambda one: one.key[0] == 1) == 0
    assert [one.key[0] for one in opened().pieces] == [0, 2]


@pytest.mark.parametrize("line", ["{}", "no json", '{"numbers": 3, "total": null}', "[]"])
def test_a_foreign_line_is_refused_by_its_number(opened, line):
    """One line that says where, and nothing is changed."""
    file = opened()
    file.append(Sum((1, 2), 3.0))
    with file.path.open("a") as handle:
        handle.write(line + "\n")
    before = file.path.read_text()
    with pytest.raises(BadInput, match=r"line 2 of .*sums\.jsonl"):
        opened()
    assert file.path.read_text() == before
