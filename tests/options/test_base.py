"""Options are flags, keywords of Python and JSON; their classes check types and ranges."""

import inspect
from dataclasses import field
from typing import Annotated, Literal

import msgspec
import numpy as np
import pytest
import torch
from msgspec import Meta

import broca.options as every
from broca.errors import BadInput
from broca.options import ModelOptions, Options, SearchOptions, flat, leaves, names_of, verb
from broca.options.base import HIDDEN, PYTHON_ONLY, WHOLE, Count, Names


class Brush(Options):
    """A group."""

    HOW = frozenset({"speed"})

    width: Annotated[Count, WHOLE] = 3
    """How wide."""

    speed: Annotated[float, Meta(gt=0)] | None = None
    """How fast."""


class Thin(Brush):
    """A group without a width."""

    width: Annotated[Count, HIDDEN] = 1


class PaintOptions(Options):
    """The options of a verb."""

    wall: Names = field(kw_only=False)
    """What is painted."""

    color: Literal["red", "blue"] = "red"
    """Its colour."""

    dry: bool = False
    names: list[str] = field(default_factory=list)
    where: str | None = None
    brush_options: Brush = field(default_factory=Brush)
    thin_options: Annotated[Brush, HIDDEN] = field(default_factory=Brush)


@verb(PaintOptions)
def paint(options):
    """Paints."""
    return options


def test_fields_of_groups_are_keywords():
    """Keywords replace defaults, or the values of options that are given as a whole."""
    painted = paint("north", color="blue", width=7)
    assert painted == PaintOptions("north", color="blue", brush_options=Brush(width=7))
    assert paint(wall="north", brush_options=Brush(width=5, speed=2), speed=9.0) == PaintOptions(
        "north", brush_options=Brush(width=5, speed=9.0)
    )
    assert paint(settings=painted, dry=True, color="red").brush_options.width == 7
    assert paint("north", brush_options=None).brush_options == Brush()


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        (("north",), {"width": 0}, r"`width` must be at least 1, not 0 \(int\)"),
        (("north",), {"width": 2.0}, r"`width` must be a whole number, not 2\.0 \(float\)"),
        (("north",), {"width": np.array([7])}, r"`width` must be a whole number, not \[7\]"),
        (("north",), {"speed": 0}, "`speed` must be above 0, not 0"),
        (("north",), {"speed": "x"}, r"`speed` must be a number, not 'x' \(str\)"),
        (("north",), {"dry": 1}, r"`dry` must be True or False, not 1 \(int\)"),
        (("north",), {"color": "red "}, "`color` 'red ' is unknown; did you mean 'red'.*: use red"),
        (("north",), {"colour": "red"}, "`paint` has no parameter 'colour'; did you mean 'color'"),
        (("north",), {"brush_options": ModelOptions()}, "must be Brush, not ModelOptions"),
        (("north",), {"wall": "south"}, "`wall` is given twice"),
        ((), {}, "`wall` is missing"),
        ((["north", 3],), {}, r"`wall` must be a name or a list of names, not .* \(list\)"),
        (("north",), {"settings": 5}, "`settings` must be PaintOptions, not int"),
    ],
)
def test_what_fits_no_field_is_refused(arguments, keywords, message):
    """The message names the parameter, the value and its type."""
    with pytest.raises(BadInput, match=message):
        paint(*arguments, **keywords)


@pytest.mark.parametrize(
    "kind", [np.int64, np.uint8, np.array, torch.tensor], ids=lambda kind: kind.__name__
)
def test_values_become_those_of_json(kind, tmp_path):
    """Numbers of NumPy and torch are numbers of Python, paths are texts."""
    width = paint("north", width=kind(4)).brush_options.width
    assert (width, type(width)) == (4, int)
    of_method = SearchOptions(options={"masks": kind(4)}).options["masks"]
    assert (of_method, type(of_method)) == (4, int)
    painted = paint("north", dry=np.True_, where=tmp_path)
    assert (painted.dry, painted.where) == (True, str(tmp_path))


def test_hidden_fields_are_set_in_an_instance_alone():
    """A hidden field or group is no keyword; an instance of the class with it may be given."""
    assert names_of(PaintOptions) == ("wall", "color", "dry", "names", "where", "width", "speed")
    assert names_of(Thin) == ("speed",)
    with pytest.raises(BadInput, match="has no parameter 'width'"):
        Thin.of({"width": 3})
    assert PaintOptions.of({"wall": "", "thin_options": Brush(width=9)}).thin_options.width == 9


def test_a_folder_holds_options_as_json():
    """JSON gives equal options; the decisive ones leave out how a result is computed."""
    options = paint("north", width=4, speed=2.5)
    assert msgspec.json.decode(msgspec.json.encode(options), type=PaintOptions) == options
    assert options.decisive()["brush_options"] == {"width": 4}
    assert flat(options.decisive(without=("thin_options",)))["width"] == 4
    slower = paint("north", width=4, speed=1.0)
    assert slower.decisive() == options.decisive() != paint("north", width=5).decisive()


def test_the_signature_shows_every_keyword():
    """`help` and an editor see the fields of all groups with their defaults."""
    parameters = inspect.signature(paint).parameters
    assert list(parameters) == [*names_of(PaintOptions), "settings"]
    assert parameters["width"].default == 3
    assert parameters["wall"].default is inspect.Parameter.empty


CLASSES = [c for c in vars(every).values() if isinstance(c, type) and issubclass(c, Options)]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_field_of_a_verb_has_one_name_and_a_sentence(cls):
    """Keywords of all groups of a class differ, and every flag has help under its field."""
    names = names_of(cls)
    assert len(names) == len(set(names))
    for owner, item in leaves(cls):
        if PYTHON_ONLY in getattr(item.type, "__metadata__", ()):
            continue
        sources = "".join(inspect.getsource(kind) for kind in owner.__mro__[:-1])
        _, _, below = sources.partition(f"    {item.name}:")
        assert '"""' in below.split("\n\n")[0], f"{owner.__name__}.{item.name}"
