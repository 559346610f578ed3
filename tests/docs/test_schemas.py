"""The JSON schemas in the documentation are current, and files conform to them."""

import importlib.util
import json
from pathlib import Path

import pytest
from results.samples import (
    make_atlas,
    make_contents,
    make_description,
    make_diagnosis,
    make_experiment,
    make_list,
    make_neurons,
    make_reproduction,
    make_result,
    make_scan,
    make_stress,
)
from simulated import toy_verification

from broca.results.files import encode
from broca.results.neurons import EXPERIMENTS, NeuronExperiment

DOCS = Path(__file__).parents[2] / "docs"
_spec = importlib.util.spec_from_file_location("schemas", DOCS / "schemas.py")
schemas = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(schemas)


def test_schemas_and_tables_are_current():
    """`python docs/schemas.py` would change nothing, and no schema is left over."""
    written = {file.stem: file.read_text(encoding="utf-8") for file in DOCS.glob("schemas/*")}
    assert written == {name: schemas.text_of(kind) for name, kind in schemas.FILES.items()}
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    assert schemas.rewritten(page) == page


def conforms(data, schema, definitions):
    """Returns whether data conform to a schema, for the keywords that broca's schemas use."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rsplit("/", 1)[-1]]
    if "type" not in schema and not {"anyOf", "enum"} & set(schema):
        return True
    if "anyOf" in schema:
        return any(conforms(data, alternative, definitions) for alternative in schema["anyOf"])
    if "enum" in schema:
        return data in schema["enum"]
    if isinstance(data, dict) and "properties" in schema:
        return set(schema["required"]) <= set(data) <= set(schema["properties"]) and all(
            conforms(value, schema["properties"][key], definitions) for key, value in data.items()
        )
    if isinstance(data, dict) and isinstance(schema.get("additionalProperties"), dict):
        values = schema["additionalProperties"]
        return all(conforms(value, values, definitions) for value in data.values())
    if isinstance(data, list):
        first = schema.get("prefixItems", [])
        others = schema.get("items", {})
        return schema["type"] == "array" and all(
            conforms(value, first[n] if n < len(first) else others, definitions)
            for n, value in enumerate(data)
        )
    types = {"string": str, "boolean": bool, "integer": int, "number": float | int,
             "null": type(None), "object": dict, "array": list}  # fmt: skip
    expected = types.get(schema.get("type"), object)
    numeric = expected in (int, float | int) and isinstance(data, bool)
    return isinstance(data, expected) and not numeric


@pytest.mark.parametrize(
    "make",
    [
        make_result, make_atlas, make_stress, toy_verification, make_neurons, make_reproduction,
        make_scan, make_list, make_description, make_diagnosis, make_contents,
        *(lambda verb=verb: make_experiment(verb) for verb in EXPERIMENTS),
    ],
)  # fmt: skip
def test_files_keep_to_their_schemas(make):
    """Files conform; files with a wrong type or an additional key do not."""
    result = make()
    schema = schemas.schema_of(type(result))
    data = json.loads(encode(result))
    assert conforms(data, schema, schema["$defs"])
    for spoiled in ({**data, "schema": "2"}, {**data, "more": 1}, {**data, "kind": None}):
        assert not conforms(spoiled, schema, schema["$defs"])


@pytest.mark.parametrize("verb", EXPERIMENTS)
def test_an_experiments_result_keeps_to_its_schema(verb):
    """A result that lacks a key or is of no experiment does not conform."""
    data = json.loads(encode(make_experiment(verb)))
    schema = schemas.schema_of(NeuronExperiment)
    first = data["result"][0] if isinstance(data["result"], list) else data["result"]
    first.popitem()
    for spoiled in (data["result"], 1, [1], {}):
        assert not conforms({**data, "result": spoiled}, schema, schema["$defs"])
