"""`broca.report` writes a result's page again, or its figures for a paper."""

import pytest
from results.samples import make_estimate, make_result

import broca
from broca.errors import BadInput


def test_the_page_is_written_again_and_the_result_is_left(tmp_path):
    """The page is byte-identical to the saved one, elsewhere too; the result is not written."""
    data, page = make_result().save(tmp_path)
    before, saved = page.read_text(), data.stat().st_mtime_ns
    page.unlink()
    assert broca.report(tmp_path) == (page,)
    assert (page.read_text(), data.stat().st_mtime_ns) == (before, saved)
    (copy,) = broca.report(data, out=tmp_path / "copy")
    assert (copy, copy.read_text()) == (tmp_path / "copy" / page.name, before)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (make_result, {"figures": "f", "format": "gif"}, "`format` 'gif'"),
        (make_result, {"figures": "f", "width": "poster"}, "`width` 'poster'"),
        (make_result, {"figures": "f", "out": "f"}, "leave it out"),
        (make_result, {"format": "svg"}, "those of figures"),
        (make_estimate, {"figures": "f"}, "no figure"),
        (make_estimate, {"out": "f"}, "no page"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, monkeypatch, make, options, message):
    """Unknown formats or widths, and results without figures or a page, are refused."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=message):
        broca.report(make(), **options)
