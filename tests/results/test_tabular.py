"""Every list of records in a result is a table."""

from dataclasses import dataclass

import pytest
from simulated import toy_verification

from broca.errors import BadInput
from broca.results.base import Interval
from broca.results.tabular import tables


@dataclass(frozen=True)
class Inner:
    """A record within a record."""

    name: str


@dataclass(frozen=True)
class Line:
    """A record with nested values and inner records."""

    head: str
    drop: Interval
    shares: dict[str, float]
    numbers: tuple[float, ...]
    inner: tuple[Inner, ...]


@dataclass(frozen=True)
class Holder:
    """An object with a table of its own and a table in an inner object."""

    lines: tuple[Line, ...]
    none: tuple[Line, ...] = ()
    within: "Holder | None" = None


LINE = Line("L0H1", Interval(0.5, 0.4, 0.6), {"a": 1.0}, (1.0, 2.0), (Inner("x"), Inner("y")))


def test_lines_have_dotted_columns_and_tables_of_their_own():
    """Nested values become dotted columns, inner records become tables, empty lists do not."""
    by_name = tables(Holder((LINE,), within=Holder((LINE,))))
    assert list(by_name) == ["lines", "lines.inner", "within.lines", "within.lines.inner"]
    assert by_name["lines"] == [
        {"head": "L0H1", "drop.value": 0.5, "drop.low": 0.4, "drop.high": 0.6, "shares.a": 1.0,
         "numbers": [1.0, 2.0]}
    ]  # fmt: skip
    assert by_name["lines.inner"] == [
        {"lines.head": "L0H1", "name": "x"}, {"lines.head": "L0H1", "name": "y"},
    ]  # fmt: skip
    assert by_name["within.lines"] == by_name["lines"]


def test_a_verification_has_all_its_tables_as_frames():
    """Every table is a frame of pandas and of polars with the numbers of the result."""
    pytest.importorskip("polars", reason="polars is not installed")
    result = toy_verification()
    assert set(result.tables) >= {
        "drops", "controls", "controls.sets", "members", "members.changes", "curve.points",
        "failures", "samples",
    }  # fmt: skip
    for name in result.tables:
        assert result.to_frame("polars", table=name).height == len(result.to_frame(table=name))
    members = result.to_frame(table="members").set_index("head")
    assert members.loc["L0H0", "alone.value"] == result.members[0].alone.value
    sets = result.to_frame(table="controls.sets")
    assert set(sets["controls.kind"]) == {"layers", "norm"}
    with pytest.raises(BadInput, match="has no table 'control'; did you mean 'controls'"):
        result.to_frame(table="control")
