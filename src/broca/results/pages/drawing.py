"""Colours by meaning, and the widths of texts.

Orange and blue stay apart for readers with any common colour vision deficiency. Every colour that
carries meaning has a contrast of at least 3:1 with the page, in both schemes.
"""

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

SERIES = tuple(role for role in LIGHT if role.startswith("series"))
"""Roles of categories."""

FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif"


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


def step_colour(step: int) -> str:
    """Returns the colour of a step on paper, as `#rrggbb`."""
    strength = abs(step) / LEVELS
    over, under = (
        bytes.fromhex(LIGHT[role][1:]) for role in ("harm" if step < 0 else "gain", "cell")
    )
    parts = (round(strength * a + (1 - strength) * b) for a, b in zip(over, under, strict=True))
    return "#" + bytes(parts).hex()


def mixed(step: int) -> str:
    """Returns the colour of a step in the reader's colour scheme, as CSS."""
    role = "harm" if step < 0 else "gain"
    return f"color-mix(in srgb,var(--{role}) {100 * abs(step) / LEVELS:g}%,var(--cell))"


def text_width(text: str) -> float:
    """Returns the approximate width of a text in the fonts of pages."""
    return 0.56 * 11.0 * len(text)


def shortened(text: str, width: float, size: float = 11.0) -> str:
    """Truncates a text to `width`."""
    room = max(4, int(width / (0.56 * size)))
    return text if len(text) <= room else text[: room - 1] + "…"


def short(value: float) -> str:
    """Formats a number with as few digits as distinguish it from its neighbours."""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return text.replace("-", "−")
