"""Figures for papers fit a column or a page, embed their fonts and are reproducible."""

import re
import sys

import pytest
from results.samples import make_result

from broca.errors import BadInput, MissingExtra
from broca.results.pages.paper import INCHES


@pytest.fixture(scope="module")
def figure():
    """The picture of a model."""
    return make_result().plot()


@pytest.mark.parametrize("width", ["column", "page"])
def test_pdf_has_its_width_and_its_fonts(figure, width, tmp_path):
    """A PDF has its width in points and embedded TrueType fonts."""
    content = figure.save(tmp_path / "figure.pdf", width=width).read_bytes()
    assert content.startswith(b"%PDF")
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", content)
    assert float(box.group(1)) == pytest.approx(72 * INCHES[width], abs=1)
    assert b"/FontFile2" in content
    assert b"/Type3" not in content


def test_svg_and_png_are_written(figure, tmp_path):
    """SVG text is drawn as outlines that need no font; PNG has 300 dots per inch."""
    drawn = figure.save(tmp_path / "figure.svg", width="column").read_text()
    assert "<text" not in drawn
    assert "<svg" in drawn
    content = figure.save(tmp_path / "figure.png", width="column").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20], "big") == pytest.approx(300 * INCHES["column"], abs=1)


@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
def test_the_same_figure_is_the_same_file(figure, suffix, tmp_path):
    """Files contain no date and no random names."""
    first, second = (figure.save(tmp_path / f"{n}.{suffix}").read_bytes() for n in (1, 2))
    assert first == second


def test_unknown_formats_and_places_are_refused(figure, tmp_path):
    """The message names the format, width or path that cannot be used."""
    with pytest.raises(BadInput, match="`format` 'gif' is unknown: use pdf, svg, png"):
        figure.save(tmp_path / "figure.gif")
    with pytest.raises(BadInput, match="`width` 'poster' is unknown"):
        figure.save(tmp_path / "figure.pdf", width="poster")
    with pytest.raises(BadInput, match="cannot be written"):
        figure.save(tmp_path / "nowhere" / "figure.pdf")


def test_without_matplotlib_the_extra_is_named(figure, tmp_path, monkeypatch):
    """Matplotlib is optional, and the message has the command that installs it."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'broca\[figures\]'"):
        figure.save(tmp_path / "figure.pdf")
