"""Colours have one meaning each, contrast with the page and differ for every reader."""

import itertools

import pytest

from broca.results.pages.colours import DARK, LEVELS, LIGHT, SERIES, level, step_colour, style_sheet


def luminance(colour):
    """Returns the relative luminance of `#rrggbb` as defined by WCAG."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(first, second):
    """Returns the contrast ratio of two colours."""
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [LIGHT, DARK])
def test_graphics_and_text_stand_out_from_the_page(scheme):
    """Graphics have a contrast of at least 3:1 and text of at least 4.5:1."""
    for role in ("harm", "gain", "intact", *SERIES):
        assert contrast(scheme[role], scheme["paper"]) >= 3
    for role in ("ink", "muted"):
        for page in ("paper", "ground"):
            assert contrast(scheme[role], scheme[page]) >= 4.5


def test_both_schemes_know_the_same_roles():
    """Both schemes define all roles, so that no role falls back to the browser's black."""
    assert set(LIGHT) == set(DARK)


@pytest.mark.parametrize("scheme", [LIGHT, DARK])
def test_loss_and_gain_differ_without_red_and_green(scheme):
    """Orange and blue differ in the blue channel, for readers with red-green blindness."""
    harm, gain = (int(scheme[role][5:7], 16) for role in ("harm", "gain"))
    assert gain - harm > 90


def test_steps_grow_with_the_value_and_keep_its_sign():
    """Steps grow from zero to full; the smallest nonzero effect is not drawn as zero."""
    assert [level(value, 2.0) for value in (0.0, 2.0, -2.0, 5.0, -1.0)] == [
        0, LEVELS, -LEVELS, LEVELS, -LEVELS // 2,
    ]  # fmt: skip
    assert level(1e-9, 2.0) == 1
    assert level(-1e-9, 2.0) == -1


def test_what_is_not_known_has_no_step():
    """None and NaN have no step."""
    assert level(None, 1.0) is None
    assert level(float("nan"), 1.0) is None


def test_colours_of_steps_end_at_their_role():
    """In print, the full step is the colour of its role, and neighbouring steps differ."""
    assert step_colour(-LEVELS) == LIGHT["harm"]
    assert step_colour(LEVELS) == LIGHT["gain"]
    assert step_colour(0) == LIGHT["cell"]
    steps = [step_colour(step) for step in range(-LEVELS, LEVELS + 1)]
    assert all(a != b for a, b in itertools.pairwise(steps))


def test_style_sheet_has_a_class_for_every_step_and_role():
    """The style sheet has classes for all steps and roles, a dark scheme and print rules."""
    css = style_sheet()
    for step in range(1, LEVELS + 1):
        assert f".c .n{step}{{" in css
        assert f".c .p{step}{{" in css
    assert all(f".f-{role}{{" in css for role in LIGHT)
    assert "prefers-color-scheme:dark" in css
    assert "@media print" in css


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_things_without_order_do_not_look_like_losses_or_gains(scheme):
    """Series have neither the colour of losses nor that of gains, and differ from one another."""
    assert not {scheme["harm"], scheme["gain"]} & {scheme[role] for role in SERIES}
    assert len({scheme[role] for role in SERIES}) == len(SERIES)
