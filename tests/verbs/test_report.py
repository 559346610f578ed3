"""`broca.report` writes a result's page again, or its figures for a paper."""

import pytest
from results.samples import make_estimate, make_result

import broca
from broca.errors import BadInput


def test_the_page_is_written_again_and_the_result_is_left(tmp_path):
    """The page is byte-identical to the saved one, and the result file is not written."""
    data, page = make_result().save(tmp_path)
    before, saved = page.read_text(), data.stat().st_mtime_ns
    page.unlink()
    assert broca.report(tmp_path) == (page,)
    assert page.read_text() == before
    assert data.stat().st_mtime_ns == saved
    assert broca.report(data, out=tmp_path / "copy") == (tmp_path / "copy" / page.name,)


@pytest.mark.parametrize("form", ["pdf", "svg", "png"])
def test_figures_are_files_of_their_format(form, tmp_path):
    """Each figure is a file named for its content and format."""
    files = broca.report(make_result(), figures=tmp_path / "f", format=form, width="column")
    assert [file.name for file in files] == [f"components.{form}", f"scores.{form}"]
    assert all(file.stat().st_size > 1000 for file in files)


def test_what_cannot_be_written_is_refused(tmp_path):
    """Unknown formats or widths, and results without figures or a page, are refused."""
    with pytest.raises(BadInput, match="`format` 'gif'"):
        broca.report(make_result(), figures=tmp_path, format="gif")
    with pytest.raises(BadInput, match="`width` 'poster'"):
        broca.report(make_result(), figures=tmp_path, width="poster")
    with pytest.raises(BadInput, match="no figure"):
        broca.report(make_estimate(), figures=tmp_path)
    with pytest.raises(BadInput, match="no page"):
        broca.report(make_estimate(), out=tmp_path)
    with pytest.raises(BadInput, match="holds no result"):
        broca.report(tmp_path)
