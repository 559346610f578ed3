"""Colours by meaning, the same in every figure, on light and dark pages and on paper.

Orange and blue stay apart for readers with any common colour vision deficiency. Every colour that
carries meaning has a contrast of at least 3:1 with the page, in both schemes.
"""

from __future__ import annotations

LEVELS = 16
"""Steps of a colour between none and full strength."""

_COLOURS = {
    "ink": ("#1b2430", "#e8ecf1"), "muted": ("#56616d", "#a3aebb"),
    "line": ("#d3d9e0", "#3b4653"), "paper": ("#ffffff", "#171d24"),
    "ground": ("#f4f6f8", "#0f1419"), "cell": ("#e9edf1", "#29323c"),
    "harm": ("#c24a00", "#ff8b45"), "gain": ("#1f65ad", "#6cb1f5"),
    "intact": ("#6f7b88", "#94a1af"), "series1": ("#00735a", "#3fc4a0"),
    "series2": ("#9c3f7b", "#e58bc3"), "series3": ("#7a6500", "#d9be3f"),
    "series4": ("#2b7f99", "#6cc7e0"), "series5": ("#6a4fb0", "#b19cf0"),
    "series6": ("#56616d", "#a3aebb"),
}  # fmt: skip
"""Colours on a light page and on a dark one.

`harm` is a loss: the task gets worse, or the components are ablated. `gain` is the opposite,
`intact` the intact model. `series1` and so on are categories such as methods; none of them has the
colour of a loss or a gain.
"""

LIGHT = {role: light for role, (light, _) in _COLOURS.items()}
"""Colours on a light page and on paper."""

DARK = {role: dark for role, (_, dark) in _COLOURS.items()}
"""Colours on a dark page."""

SERIES = tuple(role for role in LIGHT if role.startswith("series"))
"""Roles of categories."""


def level(value: float | None, span: float) -> int | None:
    """Returns the step of a value's colour, negative for a loss; None if the value is unknown.

    Args:
        value: The value; beyond the span it has the full colour.
        span: The size of a value with the full colour, above 0.
    """
    if value is None or value != value:
        return None
    strength = min(1.0, abs(value) / span)
    step = max(1, round(LEVELS * strength)) if strength > 0 else 0
    return -step if value < 0 else step


def style_sheet() -> str:
    """Returns the colours as CSS: variables for both schemes, and the classes of marks."""

    def variables(colours: dict[str, str]) -> str:
        return "".join(f"--{role}:{colour};" for role, colour in colours.items())

    marks = "".join(
        f".f-{role}{{fill:var(--{role})}}.s-{role}{{stroke:var(--{role});fill:none}}"
        for role in LIGHT
    )
    empty = "var(--cell)"
    steps = "".join(
        f".{letter}{step}{{fill:color-mix(in srgb,var(--{role}) {100 * step / LEVELS:g}%,{empty})}}"
        for letter, role in (("n", "harm"), ("p", "gain"))
        for step in range(1, LEVELS + 1)
    )
    return (
        f":root{{color-scheme:light dark;{variables(LIGHT)}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}"
        f"@media print{{:root{{color-scheme:light;{variables(LIGHT)}}}}}"
        f"{marks}.c rect{{fill:{empty}}}{steps.replace('.n', '.c .n').replace('.p', '.c .p')}"
        ".c .u{fill:url(#unknown)}"
    )


def step_colour(step: int) -> str:
    """Returns the colour of a step on paper, as `#rrggbb`."""
    return mixed("harm" if step < 0 else "gain", abs(step) / LEVELS)


def mixed(role: str, strength: float) -> str:
    """Returns a role's colour over that of an empty cell, on paper."""
    over, under = (
        [int(LIGHT[name][place : place + 2], 16) for place in (1, 3, 5)] for name in (role, "cell")
    )
    parts = (round(strength * a + (1 - strength) * b) for a, b in zip(over, under, strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)
