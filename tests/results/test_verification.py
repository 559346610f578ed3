"""Verification as JSON."""

import json
from dataclasses import dataclass

import pytest
from simulated import five_tasks

from broca.engine import Ablation
from broca.errors import BadInput
from broca.results.verification import Verification, rebuild
from broca.runs.provenance import evidence_of
from broca.verification import Scope


@pytest.fixture(scope="module")
def evidence():
    """Of a simulated model."""

    @dataclass
    class Model:
        name: str = "toy <b>"
        fingerprint: str = "abc"

    heads = [f"L{layer}H0" for layer in range(4)]
    examined = five_tasks().examiner(curve=3).examine(heads, report=lambda text: None)
    return evidence_of(
        Model(), "adding", heads, Ablation(), Scope(), examined, 5, notes=["<i>a note</i>"]
    )


def test_evidence_reads_back_equal(evidence, tmp_path):
    """From text, a file, and the folder of it."""
    (tmp_path / "verification.json").write_text(evidence.to_json())
    assert Verification.from_json(evidence.to_json()) == evidence
    assert (
        Verification.read(tmp_path) == Verification.read(tmp_path / "verification.json") == evidence
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.pop("verdict"),
        lambda data: data.update(more=1),
        lambda data: data.update(drops={}),
        lambda data: data.update(schema=99),
        lambda data: data["verdict"].update(other=1),
    ],
)
def test_other_json_is_refused(evidence, spoil):
    """One line that says which file is meant."""
    data = json.loads(evidence.to_json())
    spoil(data)
    with pytest.raises(BadInput, match="verification"):
        Verification.from_json(json.dumps(data))
    with pytest.raises(BadInput, match="not a verification"):
        Verification.from_json("[1]")


def test_a_folder_without_one_names_the_command(tmp_path):
    """The next step is said."""
    with pytest.raises(BadInput, match="broca verify"):
        Verification.read(tmp_path)


def test_rebuild_keeps_optional_and_nested_fields():
    """None stays None; tuples of tuples come back as such."""
    assert rebuild(int | None, None) is None
    assert rebuild(tuple[tuple[int, ...], ...], [[1], [2, 3]]) == ((1,), (2, 3))
    with pytest.raises(TypeError, match="list"):
        rebuild(tuple[int, ...], 3)


def test_the_page_shows_everything_and_escapes_text(evidence):
    """Verdict, tables, figures; names and notes from outside are shown, not run."""
    from broca.reports import render_verification_page

    html = render_verification_page(evidence)
    for text in ("Verdict: specific", "verification-controls", "verification-curve", "p (Holm)"):
        assert text in html
    for head in evidence.heads:
        assert head in html
    assert "<i>a note</i>" not in html
    assert "toy <b>" not in html
