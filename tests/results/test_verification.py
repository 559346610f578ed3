"""Verifications as JSON and as a page."""

import json

import pytest
from simulated import toy_verification

from broca.errors import BadInput
from broca.results.base import Interval
from broca.results.files import decode, encode
from broca.results.verification import Verification


@pytest.fixture(scope="module")
def verification():
    """A verification of a simulated model, with HTML tags in its name and note."""
    return toy_verification(name="toy <b>", notes=["<i>a note</i>"])


def test_verification_reads_back_equal(verification, tmp_path):
    """A verification that is read from text, a file or its folder equals the written one."""
    text = encode(verification)
    (tmp_path / "verification.json").write_text(text)
    assert decode(Verification, text) == verification
    assert Verification.read(tmp_path) == verification
    assert Verification.read(tmp_path / "verification.json") == verification


def test_scores_stand_once(verification):
    """Scores are in `drops`; numbers that follow from others are not in the file."""
    data = json.loads(encode(verification))
    assert not {"baseline", "after"} & set(data)
    assert not {"interval", "below_chance"} & set(data["drops"][0])
    assert not {"drop", "off_target", "specific", "selected"} & set(data)
    claimed = verification.drops[0]
    assert verification.drop == claimed.drop
    assert claimed.drop == verification.baseline["adding"] - verification.after["adding"]
    assert verification.specific == Interval(verification.specific_drop, *verification.specific_ci)
    assert verification.off_target.value == verification.off_target_drop
    assert verification.specific_drop == claimed.drop - verification.off_target_drop
    assert claimed.interval == Interval(claimed.drop, *claimed.ci)


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
def test_other_json_is_refused(verification, spoil):
    """The message says that a verification is expected."""
    data = json.loads(encode(verification))
    spoil(data)
    with pytest.raises(BadInput, match="verification"):
        decode(Verification, json.dumps(data))
    with pytest.raises(BadInput, match="not a verification"):
        decode(Verification, "[1]")


def test_a_folder_without_one_names_the_command(tmp_path):
    """The message names the command that writes a verification."""
    with pytest.raises(BadInput, match="broca verify"):
        Verification.read(tmp_path)


def test_the_page_shows_everything_and_escapes_text(verification):
    """The page has verdict, tables and figures, and HTML tags in names and notes are escaped."""
    html = verification.page()
    for text in (">specific</span>", "figure-controls", "figure-curve", "p (Holm)"):
        assert text in html
    for head in verification.heads:
        assert head in html
    assert "<i>a note</i>" not in html
    assert "toy <b>" not in html
