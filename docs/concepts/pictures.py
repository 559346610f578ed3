"""Draws the pictures of the concepts: `python docs/concepts/pictures.py`.

Masks, rows and splits are those that the package makes; the bars of the contrast are those of the
run in `broca-out`, which `make demo` or `python docs/demo.py` leaves there.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

import broca
from broca.designs import fresh, stratified
from broca.tasks.items import SplitPart, split_parts

HERE = Path(__file__).parent
INK, SOFT, LINE, PAPER = "#1d2430", "#56616d", "#c9ced4", "#ffffff"
LOSS, CALM, PALE = "#c44b00", "#1f63b0", "#e6e3e2"


class Picture:
    """Shapes on a white card; every coordinate is in pixels."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.size, self.title, self.parts = (width, height), title, []

    def box(self, x, y, width, height, fill=PAPER, edge=LINE, round_=3) -> None:
        """A rectangle."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_}" '
            f'fill="{fill}" stroke="{edge}"/>'
        )

    def text(self, x, y, words, *, colour=INK, size=13, anchor="middle", bold=False) -> None:
        """A line of text."""
        weight = ' font-weight="600"' * bold
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" fill="{colour}" font-size="{size}" '
            f'text-anchor="{anchor}"{weight}>{escape(words, quote=False)}</text>'
        )

    def arrow(self, x1, y1, x2, y2, colour=SOFT) -> None:
        """A straight arrow."""
        self.parts.append(
            f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="{colour}" stroke-width="1.4" '
            'fill="none" marker-end="url(#tip)"/>'
        )

    def save(self, name: str) -> None:
        """Writes the picture beside this script."""
        width, height = self.size
        (HERE / f"{name}.svg").write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-label="{escape(self.title)}" '
            "font-family=\"system-ui,-apple-system,'Segoe UI',sans-serif\">"
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{SOFT}"/></marker>'
            "</defs>"
            f'<rect width="{width}" height="{height}" rx="6" fill="{PAPER}"/>'
            f"{''.join(self.parts)}</svg>\n",
            encoding="utf-8",
        )


def components() -> None:
    """One decoder layer with what can be ablated in it."""
    picture = Picture(720, 300, "A decoder layer with its heads, KV groups, MLP block and neurons")
    picture.box(20, 30, 680, 250, fill="#fafafa")
    picture.text(36, 52, "decoder layer L12", anchor="start", bold=True)
    picture.box(40, 70, 380, 150)
    picture.text(56, 92, "attention L12A", anchor="start")
    for group in range(2):
        left = 60 + group * 178
        picture.box(left, 108, 166, 96, fill="#fff4ec", edge="#e6b896")
        picture.text(left + 83, 126, f"KV group L12G{group}", colour=SOFT, size=12)
        for head in range(2):
            picture.box(left + 12 + head * 74, 140, 66, 48, fill=PALE)
            picture.text(left + 45 + head * 74, 169, f"L12H{2 * group + head}")
    picture.box(450, 70, 230, 150)
    picture.text(466, 92, "MLP block L12M", anchor="start")
    for number in range(12):
        picture.box(470 + number % 6 * 33, 108 + number // 6 * 33, 24, 24, fill=PALE)
    picture.text(565, 196, "neurons L12N0, L12N1, ...", colour=SOFT, size=12)
    picture.text(360, 250, "a routed expert is L12E7; the layer as a whole is L12", colour=SOFT)
    picture.save("components")


def gates() -> None:
    """Heads' outputs, their gates, and the output projection."""
    picture = Picture(720, 250, "Each head's output times its gate enters the output projection")
    values = (1, 0, 1, 0.3)
    for head, gate in enumerate(values):
        left = 60 + head * 110
        picture.box(left, 40, 90, 44, fill=PALE)
        picture.text(left + 45, 67, f"head L12H{head}")
        picture.arrow(left + 45, 86, left + 45, 108)
        colour = LOSS if gate == 0 else INK
        picture.text(left + 45, 128, f"x {gate:g}", colour=colour, bold=True, size=15)
        picture.arrow(left + 45, 136, left + 45, 160)
        shown = "#ffffff" if gate == 0 else PALE
        picture.box(left, 162, 90, 30, fill=shown)
        picture.text(left + 45, 182, "zeros" if gate == 0 else "output", colour=SOFT, size=12)
    picture.arrow(496, 177, 536, 177)
    picture.box(540, 150, 150, 54, fill="#fff4ec", edge="#e6b896")
    picture.text(615, 174, "output projection")
    picture.text(615, 192, "weights unchanged", colour=SOFT, size=12)
    picture.text(40, 132, "gate", colour=SOFT, anchor="end", size=12)
    picture.text(
        360, 234, "0 ablates, 1 changes no bit, another value scales", colour=SOFT, size=12
    )
    picture.save("gates")


def masks() -> None:
    """Stratified masks of the heads of `reference-small`."""
    design = stratified(16, 48, sparsity=0.1, seed=0)
    picture = Picture(720, 300, "16 stratified masks over 48 heads")
    cell = 13
    for row, mask in enumerate(design):
        for column, ablated in enumerate(mask):
            picture.box(
                66 + column * cell, 40 + row * cell, cell - 2, cell - 2,
                fill=LOSS if ablated else PALE, edge="none", round_=1,
            )  # fmt: skip
    for layer in range(4):
        picture.text(66 + (layer * 12 + 6) * cell, 32, f"layer {layer}", colour=SOFT, size=12)
    picture.text(56, 50, "mask 1", colour=SOFT, anchor="end", size=12)
    picture.text(56, 40 + 15 * cell + 10, "16", colour=SOFT, anchor="end", size=12)
    counts = design.sum(axis=0)
    picture.text(
        378, 278,
        f"{design[0].sum()} of 48 heads in each mask; each head in {counts.min()} to "
        f"{counts.max()} masks",
        colour=SOFT, size=12,
    )  # fmt: skip
    picture.save("masks")


def rows() -> None:
    """Masks by items: every mask on every item, and a fresh mask in every row."""
    picture = Picture(720, 270, "Rows are pairs of a mask and an item")
    size = 22
    for column in range(6):
        for row in range(4):
            picture.box(60 + column * size, 62 + row * size, size - 3, size - 3, CALM, "none")
    picture.text(126, 36, "4 masks x 6 items: 24 rows", bold=True)
    picture.text(50, 105, "masks", colour=SOFT, anchor="end", size=12)
    picture.text(126, 172, "items", colour=SOFT, size=12)
    _, mask_index, item_index = fresh(24, 48, items=6, size=4, seed=0)
    picture.text(500, 36, "a fresh mask for every row: 24 rows", bold=True)
    width = 16
    for row in range(24):
        for item in range(6):
            picture.box(310 + row * width, 62 + item * width, width - 3, width - 3, PALE, "none")
    for mask, item in zip(mask_index, item_index, strict=True):
        place = (310 + int(mask) * width, 62 + int(item) * width)
        picture.box(*place, width - 3, width - 3, CALM, "none")
    picture.text(300, 112, "items", colour=SOFT, anchor="end", size=12)
    picture.text(500, 180, "24 masks", colour=SOFT, size=12)
    picture.text(
        360, 230, "Both cost the same. The right one has seen six times as many masks.", colour=SOFT
    )
    picture.save("rows")


def splits() -> None:
    """How the documents of a task are cut."""
    split = split_parts(
        "addition", [SplitPart("addition", list(range(600)), [])], items=100, seed=0
    )
    parts = (
        ("locate", len(split.locate), "the search measures these", LOSS),
        ("confirm", len(split.confirm), "the last decisions of a search", "#d98e5f"),
        ("report", len(split.report), "every number that is shown", CALM),
    )
    picture = Picture(720, 190, "The items of a task are cut into locate, confirm and report")
    total, left = sum(count for _, count, _, _ in parts), 30.0
    for name, count, use, colour in parts:
        width = 660 * count / total
        picture.box(left, 60, width - 4, 46, fill=colour, edge="none")
        picture.text(left + width / 2, 89, f"{name}: {count}", colour=PAPER, bold=True)
        picture.text(left + width / 2, 130, use, colour=SOFT, size=11)
        left += width
    picture.text(30, 38, "600 documents of a task, cut by seed", anchor="start", bold=True)
    picture.text(
        30, 168, "--items 100 keeps at most 100 items in each of the first two",
        colour=SOFT, size=12, anchor="start",
    )  # fmt: skip
    picture.save("splits")


def contrast() -> None:
    """What the demo's selection costs each task."""
    result = broca.read(HERE.parent.parent / "broca-out")
    drops = sorted(result.verification.drops, key=lambda drop: -drop.drop)
    picture = Picture(720, 60 + 27 * len(drops) + 46, "What the selected heads cost each task")
    picture.text(
        30, 34, f"points lost without {', '.join(result.selected)}", anchor="start", bold=True
    )
    for number, drop in enumerate(drops):
        top = 52 + number * 27
        colour = {"task": LOSS, "other": CALM}.get(drop.role, "#a8a29e")
        width = max(1.0, 400 * drop.drop)
        picture.text(160, top + 15, drop.task, anchor="end")
        picture.box(170, top, width, 20, fill=colour, edge="none")
        note = {"task": "  the task", "other": ""}.get(
            drop.role, "  the same skill, reported apart"
        )
        picture.text(
            178 + width, top + 15, f"{100 * drop.drop:.1f}{note}", anchor="start", colour=SOFT
        )
    mean = float(np.mean([drop.drop for drop in drops if drop.role == "other"]))
    picture.text(
        30, 60 + 27 * len(drops) + 26,
        f"the others lose {100 * mean:.1f} points on average; the specific drop is the difference",
        colour=SOFT, size=12, anchor="start",
    )  # fmt: skip
    picture.save("contrast")


def verdict() -> None:
    """The rule as a ladder: the first step that holds is the verdict."""
    steps = (
        ("do most other outputs become degenerate?", "breaks the model"),
        ("is no drop of the task to be seen, with enough items?", "not localized at head level"),
        ("is no drop to be seen, with too few items?", "inconclusive"),
        ("do most other tasks lose half as much?", "universal"),
        ("do random heads of the same layers cost as much?", "not localized at head level"),
        ("can the specific drop be zero?", "inconclusive"),
        ("are random sets, other tasks and members all clear?", "specific"),
        ("otherwise", "partly specific"),
    )
    picture = Picture(720, 40 + 38 * len(steps), "The rule of the verdict, from top to bottom")
    for number, (question, name) in enumerate(steps):
        top = 22 + 38 * number
        good = name == "specific"
        picture.box(30, top, 400, 28, fill="#fafafa")
        picture.text(44, top + 19, question, anchor="start")
        picture.arrow(434, top + 14, 476, top + 14)
        picture.text(455, top + 9, "yes" if number < len(steps) - 1 else "", colour=SOFT, size=10)
        picture.box(
            480, top, 210, 28, fill="#e9f1fa" if good else PALE, edge=CALM if good else LINE
        )
        picture.text(585, top + 19, name, bold=good)
    picture.save("verdict")


if __name__ == "__main__":
    for draw in (components, gates, masks, rows, splits, contrast, verdict):
        draw()
