"""A file omits what stands in it already, and is read as the complete result."""

import json
from dataclasses import replace

import pytest
from results.samples import make_result
from results.samples import make_atlas
from results.samples import make_comparison
from simulated import toy_verification

from broca.results.base import AblationInfo, Interval
from broca.results.files import decode, encode, plain
from broca.results.verification import AblationCheck, Crossing


def make_verification():
    """Returns a verification with crossings in both directions and checks of two ablations."""
    verification = toy_verification()
    claimed, *others, last = verification.drops
    line = replace(last, role="same_skill")
    other = Interval(0.25, 0.125, 0.5)
    return replace(
        verification,
        drops=(claimed, *others, line),
        crossings=(
            Crossing(verification.task, line.task, verification.heads, line.interval, line.p),
            Crossing(line.task, verification.task, ("L5H0",), other, 0.01),
        ),
        ablations=(
            AblationCheck("zero", claimed.interval, verification.specific, claimed.p, True),
            AblationCheck("mean", other, verification.specific, claimed.p, True),
        ),
    )


def make_carried():
    """Returns a comparison with a score of each test whether a selection carries."""
    comparison = make_comparison()
    return replace(
        comparison,
        carries=tuple(
            replace(line, model=comparison.models[0].label) for line in comparison.carries
        ),
    )


def written(result):
    """Returns the content of a result's file."""
    return json.loads(encode(result))


@pytest.mark.parametrize("make", [make_verification, make_atlas, make_carried, make_result])
def test_what_is_omitted_is_read_again(make):
    """The result that is read is complete, and so is the result of a file that omits nothing."""
    result = make()
    assert decode(type(result), encode(result)) == result
    complete = plain(result)
    assert written(result) != complete
    assert decode(type(result), json.dumps(complete)) == result


def test_a_drop_stands_once_in_a_verification():
    """Crossings of the verified set and the check of its ablation omit what `drops` has."""
    verification = make_verification()
    of_set, of_other = written(verification)["crossings"]
    assert set(of_set) == {"found_on", "measured_on", "heads"}
    assert of_other["drop"]["value"] == 0.25
    zero, mean = written(verification)["ablations"]
    assert set(zero) == {"kind", "survives"}
    assert set(mean) == {"kind", "drop", "specific", "p", "survives"}


def test_another_measurement_is_written():
    """A check on some of the items differs from the drop of all, and a mean from a zero."""
    verification = make_verification()
    check = replace(verification.ablations[0], drop=Interval(0.5, 0.25, 0.75))
    partly = replace(verification, ablations=(check,))
    assert set(written(partly)["ablations"][0]) == {"kind", "drop", "survives"}
    assert decode(type(partly), encode(partly)) == partly
    mean = replace(verification, ablation=AblationInfo("mean", 0.0))
    assert written(mean)["ablations"][0]["p"] == verification.ablations[0].p


def test_cells_stand_once_in_an_atlas():
    """Universal and selected components omit the cells of the matrix, and keep their contrasts."""
    atlas = written(make_atlas())
    assert set(atlas["universal"][0]) == {"name", "effect", "hurts"}
    assert set(atlas["selections"][0]["components"][0]) == {"name", "contrast", "contrast_ci"}


def test_a_carried_drop_is_a_score():
    """A test omits the drop of its score; without that score it has the drop."""
    assert "drop" not in written(make_carried())["carries"][0]
    assert written(make_comparison())["carries"][0]["drop"]["value"] == 0.3


def test_the_worst_other_task_is_computed():
    """Older files name it; it is the task with the largest drop."""
    verification = make_verification()
    older = {**plain(verification), "worst_other": verification.worst_other}
    assert "worst_other" not in written(verification)
    assert decode(type(verification), json.dumps(older)) == verification
    assert verification.worst.drop == max(line.drop for line in verification.roles("other"))
