"""The picture is a PNG with a cell for every head and MLP block."""

import io

import numpy as np
from PIL import Image

from broca.exports.picture import picture
from broca.results.base import ModelInfo

MODEL = ModelInfo("toy", "abc", layers=3, heads=4, kv_heads=2)
PLAIN, INK = (232, 232, 232), (24, 24, 24)


def pixel(data, layer, column):
    """Returns the colours of a cell's middle and frame, read by Pillow."""
    pixels = np.array(Image.open(io.BytesIO(data)))
    left = 8 + column * 20 + (18 if column == 4 else 0)
    top = 8 + layer * 20
    return tuple(pixels[top + 9, left + 9].tolist()), tuple(pixels[top, left].tolist())


def test_components_are_dark():
    """Cells of heads, of groups' heads and of MLP blocks are dark if selected."""
    data = picture(MODEL, ["L0H1", "L1G1", "L2M"])
    dark = {(0, 1), (1, 2), (1, 3), (2, 4)}
    for layer in range(3):
        for column in range(5):
            colour = INK if (layer, column) in dark else PLAIN
            assert pixel(data, layer, column) == (colour, colour)


def test_effects_are_colours_and_components_frames():
    """Negative effects are red, positive ones blue, zero is white; selected cells have a frame."""
    data = picture(MODEL, ["L0H1"], {"L0H1": -0.4, "L0H2": 0.2, "L1H0": 0.0})
    assert pixel(data, 0, 1) == ((194, 74, 0), INK)
    (red, green, blue), frame = pixel(data, 0, 2)
    assert red < blue
    assert frame == (red, green, blue)
    assert pixel(data, 1, 0)[0] == (255, 255, 255)


def test_layers_and_attention_cover_their_cells():
    """Attention covers the heads of its layer, and a layer its MLP block as well."""
    data = picture(MODEL, ["L0A", "L1"])
    assert [pixel(data, 0, column)[0] for column in (0, 3, 4)] == [INK, INK, PLAIN]
    assert [pixel(data, 1, column)[0] for column in (0, 3, 4)] == [INK, INK, INK]
