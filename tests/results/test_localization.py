"""`result.json` of schema 2."""

import json

import pytest
from results.samples import make_result

from broca.errors import BadInput
from broca.results.files import decode, encode
from broca.results.localization import AdditivityInfo, AnswerInfo, Interaction, Localization, Repeat


def test_result_reads_back_what_it_wrote():
    """A result with all parts equals itself after encoding and decoding."""
    assert decode(Localization, encode(make_result())) == make_result()
    pair = Interaction("L1H2", "L0H0", -0.1, -0.2, -0.75, -0.45, (-0.61, -0.29))
    result = make_result(interactions=(pair,))
    assert decode(Localization, encode(result)) == result


def test_schema_2_has_the_promised_fields():
    """The file has the fields on which outside scripts rely."""
    data = json.loads(encode(make_result()))
    assert data["schema"] == 2
    assert {
        "broca", "schema", "model", "task", "others", "search", "cost", "baseline", "ranking",
        "selected", "abstained", "reason", "verification",
    } <= set(data)  # fmt: skip
    assert set(data["model"]) == {
        "name", "fingerprint", "architecture", "layers", "heads", "kv_heads", "dtype", "neurons",
        "parameters", "revision", "remote_code", "adapter",
    }  # fmt: skip
    assert {"method", "options", "seed", "response"} == set(data["search"])
    assert {"rows", "tokens", "wall_s"} <= set(data["cost"])
    assert set(data["ranking"][0]) == {
        "name", "layer", "head", "effect", "ci", "frequency", "p_value", "q_value",
    }  # fmt: skip
    assert {"drops", "off_target_drop", "specific_drop"} <= set(data["verification"])


def test_repeats_say_how_stable_a_selection_is():
    """A result has the number of selections of each component and their mean overlap."""
    repeats = (
        Repeat(1, ("L1H2", "L2H3"), "found", 900),
        Repeat(2, (), "not enough rows", 900),
    )
    result = make_result(repeats=repeats, answer=AnswerInfo("found"))
    assert result.times_selected == {"L1H2": 2, "L0H0": 1, "L2H3": 1}
    assert result.overlap == pytest.approx((1 / 3 + 0 + 0) / 3)
    assert decode(Localization, encode(result)) == result
    assert make_result().overlap is None
    nothing = Repeat(1, (), "nothing", 900)
    assert make_result(selected=(), abstained=True, repeats=(nothing,)).overlap == 1.0


def test_a_verification_inside_leaves_out_what_the_localization_says():
    """Fields that are equal in the localization are written once, and reading restores them."""
    result = make_result()
    inner = json.loads(encode(result))["verification"]
    omitted = {"broca", "schema", "kind", "model", "task", "heads", "ablation", "seed"}
    assert not {*omitted, "rows"} & set(inner)
    read = decode(Localization, encode(result)).verification
    assert read.model == result.model
    assert read.heads == result.selected
    assert read.baseline == result.baseline
    assert read.rows == result.cost.verification_rows


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"schema": 1}', '{"schema": 1, "model": 3}']
)
def test_text_that_is_no_result_is_refused(text):
    """The message names the file to give."""
    with pytest.raises(BadInput, match=r"not a localization of broca.*result\.json"):
        decode(Localization, text)


def test_result_of_another_schema_is_refused():
    """The message names both schemas."""
    text = encode(make_result()).replace('"schema": 2', '"schema": 9')
    with pytest.raises(BadInput, match="schema 9, this broca reads schema 2 and older"):
        decode(Localization, text)


def test_folder_without_result_is_refused(tmp_path):
    """A folder without `result.json`, as of an unfinished run, is refused."""
    with pytest.raises(BadInput, match=r"result\.json' does not exist"):
        Localization.read(tmp_path)


def test_additivity_is_kept():
    """Additivity is stored, and files of earlier versions without it are read."""
    result = make_result(additivity=AdditivityInfo(0.5, 0.25, 40))
    assert decode(Localization, encode(result)) == result
    data = json.loads(encode(make_result()))
    del data["additivity"]
    assert decode(Localization, json.dumps(data)) == make_result()
