"""`result.json`, schema 1."""

import json

import pytest
from report.test_page import make_result

from broca.errors import BadInput
from broca.results.localization import AdditivityInfo, Interaction, Localization


def test_result_reads_back_what_it_wrote():
    """Nothing is lost on the way through JSON."""
    assert Localization.from_json(make_result().to_json()) == make_result()
    pair = Interaction("L1H2", "L0H0", -0.1, -0.2, -0.75, -0.45, (-0.61, -0.29))
    result = make_result(interactions=(pair,))
    assert Localization.from_json(result.to_json()) == result


def test_schema_1_has_the_promised_fields():
    """What outside scripts rely on."""
    data = json.loads(make_result().to_json())
    assert data["schema"] == 1
    assert {
        "broca", "schema", "model", "task", "others", "search", "cost", "baseline", "ranking",
        "selected", "abstained", "reason", "verification",
    } <= set(data)  # fmt: skip
    assert set(data["model"]) == {
        "name", "fingerprint", "architecture", "layers", "heads", "kv_heads", "dtype",
    }  # fmt: skip
    assert {"method", "options", "seed"} == set(data["search"])
    assert {"rows", "tokens", "wall_s"} <= set(data["cost"])
    assert set(data["ranking"][0]) == {
        "name", "layer", "head", "effect", "ci", "frequency", "p_value", "q_value",
    }  # fmt: skip
    assert {"after", "drop", "off_target_drop", "specific_drop"} <= set(data["verification"])


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"schema": 1}', '{"schema": 1, "model": 3}']
)
def test_text_that_is_no_result_is_refused(text):
    """In one line that says what to give."""
    with pytest.raises(BadInput, match=r"not a result of broca.*result\.json"):
        Localization.from_json(text)


def test_result_of_another_schema_is_refused():
    """The message names both."""
    text = make_result().to_json().replace('"schema": 1', '"schema": 9')
    with pytest.raises(BadInput, match="schema 9, this broca reads schema 1"):
        Localization.from_json(text)


def test_folder_without_result_is_refused(tmp_path):
    """An unfinished run has no result."""
    with pytest.raises(BadInput, match=r"result\.json' does not exist"):
        Localization.read(tmp_path)


def test_additivity_is_kept():
    """And a result from before there was one can be read."""
    result = make_result(additivity=AdditivityInfo(0.5, 0.25, 40))
    assert Localization.from_json(result.to_json()) == result
    data = json.loads(make_result().to_json())
    del data["additivity"]
    assert Localization.from_json(json.dumps(data)) == make_result()
