"""Results are decoded as they were encoded, and data of another shape are refused."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from broca.results.files import encode, plain, restored


@dataclass(frozen=True)
class Point:
    """A data class with a number, an optional pair and an optional dictionary."""

    x: float
    pair: tuple[int, int] | None = None
    more: dict[str, object] | None = None


def test_any_data_class_comes_back():
    """Nested tuples, optional fields and types other than data classes are restored."""
    points = (Point(0.1), Point(1e-300, (1, 2), {"a": [1, None]}))
    assert restored(json.loads(encode(points)), tuple[Point, ...]) == points
    assert restored(None, int | None) is None
    assert restored([[1], [2, 3]], tuple[tuple[int, ...], ...]) == ((1,), (2, 3))


def test_keys_stand_in_the_order_of_the_fields():
    """The order of the keys in the read data does not matter."""
    read = restored({"more": {}, "pair": [1, 2], "x": 1}, Point)
    assert list(plain(read)) == ["x", "pair", "more"]
    assert encode(read) == encode(Point(1.0, (1, 2), {}))


def test_what_json_lacks_is_null():
    """NaN and infinity are written as null, and NumPy's numbers as plain numbers."""
    data = plain(Point(float("nan"), None, {"a": np.float32(1.5), "b": np.array([1.0, np.inf])}))
    assert data == {"x": None, "pair": None, "more": {"a": 1.5, "b": [1.0, None]}}
    assert json.loads(encode(Point(np.inf)))["x"] is None


def test_lines_have_no_breaks():
    """Without indentation an object takes a single line."""
    assert encode(Point(1.0, more={"a": "\n"}), indent=None).count("\n") == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "missing required field `x`"),
        ({"x": "1"}, r"Expected `float`, got `str` - at `\$.x`"),
        ({"x": True}, "got `bool`"),
        ({"x": 1, "pair": [1]}, "length 2"),
        ({"x": 1, "pair": 3}, "`array"),
        ({"x": 1, "y": 2}, r"unknown field `y` - at `\$`"),
        ({"x": None}, "got `null`"),
    ],
)
def test_what_is_of_another_shape_is_refused(data, message):
    """The message names the missing, wrong or unknown field and its place."""
    with pytest.raises(ValueError, match=message):
        restored(data, Point)


def test_numbers_keep_every_digit():
    """Numbers are written as by Python's `repr`."""
    values = np.random.default_rng(0).normal(size=200).tolist()
    assert restored(json.loads(encode(values)), tuple[float, ...]) == tuple(values)
    assert repr(values[0]) in encode(values)
