"""The picture of a model card: layers and heads as a grid, as a PNG without a library."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from broca.components import NAMINGS, Component
from broca.reports.colours import LIGHT
from broca.results.base import ModelInfo

_CELL, _GAP, _MARGIN = 18, 2, 8
_PAPER, _PLAIN, _INK = (255, 255, 255), (232, 232, 232), (24, 24, 24)
_HARM, _GAIN = (tuple(bytes.fromhex(LIGHT[name][1:])) for name in ("harm", "gain"))


def picture(
    model: ModelInfo, components: Sequence[str], effects: Mapping[str, float] | None = None
) -> bytes:
    """Draws layers (from the top) and heads, with the MLP blocks in a separate column.

    Exported components have a dark frame; colours are effects, as on all pages: orange if the task
    gets worse without a head, blue if it gets better.

    Args:
        model: The model, for its layers and heads.
        components: Names of the exported components.
        effects: Effect of each head by name; without them exported cells are dark.

    Returns:
        A PNG file.
    """
    layers, heads = model.layers or 1, model.heads or 1
    marked = {cell for name in components for cell in _cells(Component.parse(name), model)}
    span = max((abs(effect) for effect in (effects or {}).values()), default=0.0) or 1.0
    step = _CELL + _GAP
    width = 2 * _MARGIN + (heads + 1) * step + _CELL
    pixels = np.full((2 * _MARGIN + layers * step, width, 3), _PAPER, dtype=np.uint8)
    for layer in range(layers):
        for column in range(heads + 1):
            top = _MARGIN + layer * step
            left = _MARGIN + column * step + (_CELL if column == heads else 0)
            cell = pixels[top : top + _CELL, left : left + _CELL]
            inside = (layer, column) in marked
            if inside:
                cell[:] = _INK
                cell = cell[3:-3, 3:-3]
            effect = (effects or {}).get(f"L{layer}H{column}")
            if effect is not None:
                cell[:] = _shade(_HARM if effect < 0 else _GAIN, abs(effect) / span)
            elif not inside:
                cell[:] = _PLAIN
    return _png(pixels)


def _cells(component: Component, model: ModelInfo) -> list[tuple[int, int]]:
    """Returns the rows and columns of a component; what is no head is after the last head."""
    heads = model.heads or 1
    columns = list(component.heads(heads, model.kv_heads or heads))
    columns += [] if NAMINGS[component.kind].only_heads else [heads]
    return [(component.layer, column) for column in columns]


def _shade(colour: tuple[int, ...], strength: float) -> tuple[int, ...]:
    return tuple(round(255 + min(1.0, strength) * (part - 255)) for part in colour)


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """Encodes pixels `(height, width, 3)` as a PNG file (RFC 2083: header, one data chunk, end)."""
    height, width, _ = pixels.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)

    def chunk(name: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(lines.tobytes(), 9)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    )
