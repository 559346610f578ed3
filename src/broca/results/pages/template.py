"""Fills the templates of pages; text from models, tasks and files is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from broca.results.pages import tables
from broca.results.pages.drawing import DARK, FONT, LEVELS, LIGHT, mixed, step_colour

if TYPE_CHECKING:
    from jinja2 import Environment


def filled(template: str, *, package: str = __package__, **values: Any) -> str:
    """Fills a template; the resulting page is self-contained.

    Style sheets and scripts are included as templates too.

    Args:
        template: Name of the file, without `.html.j2`.
        package: The package that has it; this one has the templates that all pages extend.
        values: The values of its variables.
    """
    page = _environment(package).get_template(f"{template}.html.j2")
    return page.render(contents=[], **values)


@cache
def _environment(package: str) -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, "") for name in (package, __package__)]),
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "points": tables.points, "count": tables.shown, "interval": tables.interval,
        "p": tables.p_value, "stated": _stated, "number": lambda value: f"{round(value, 1):g}",
    }  # fmt: skip
    environment.globals |= {
        "light": LIGHT, "dark": DARK, "levels": LEVELS, "mixed": mixed, "step_colour": step_colour,
        "font": FONT,
    }  # fmt: skip
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return environment


def _stated(settings: Mapping[str, Any]) -> list[str]:
    """Returns settings as names and values, without those that are None or empty."""
    return [
        f"{name.replace('_', ' ')} {f'{value:.4g}' if isinstance(value, float) else value}"
        for name, value in settings.items()
        if value is not None and value not in ("", [], (), {})
    ]
