"""Lines of the index state what each result found."""

import pytest
from results.samples import EVIL, make_stress
from results.samples import make_result
from results.samples import make_atlas
from results.samples import make_neurons, make_refit

from broca.results.index import entry_of, render_index
from broca.results.localization import AnswerInfo


def line(result):
    """Returns the index line of a result."""
    return entry_of(result, name="out", page="out/page.html", date="2026-01-01")


def test_a_run_has_its_verdict_drop_and_rows():
    """A run that found nothing has no drop."""
    entry = line(make_result())
    assert (entry.model, entry.task, entry.verdict) == ("toy", "adding", "not verified")
    assert entry.specific == pytest.approx(0.95)
    assert entry.rows == 20900
    nothing = line(make_result(selected=(), abstained=True, reason="no harm"))
    assert (nothing.verdict, nothing.specific, nothing.scores) == ("nothing found", None, {})
    unsure = AnswerInfo("not enough rows", 0.2)
    entry = line(make_result(selected=(), abstained=True, reason="why", answer=unsure))
    assert entry.verdict == "not enough rows"


@pytest.mark.parametrize("make", [make_atlas, make_stress, make_neurons, make_refit])
def test_other_results_have_lines(make):
    """Other results have a kind and a task but no specific drop."""
    entry = line(make())
    assert entry.specific is None
    assert entry.kind == make().kind
    assert entry.task


def test_text_is_escaped():
    """Names of folders, which may contain any text, are escaped."""
    entry = entry_of(make_result(), name=EVIL, page=f'x"{EVIL}', date="")
    html = render_index([entry], [EVIL])
    assert "<script>alert" not in html
    assert 'href="x&#34;&lt;' in html
