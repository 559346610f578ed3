"""The JSON schemas in the documentation are current, and files conform to them."""

import json
from pathlib import Path

import pytest
from broca.results.schemas import END, FILES, START, key_tables, schema_of, text_of
from results.samples import make_stress
from results.samples import make_result
from results.samples import make_atlas
from results.samples import make_diagnosis
from results.samples import make_contents
from results.samples import make_experiment
from results.samples import make_reproduction
from results.samples import make_scan
from results.samples import make_description, make_list
from simulated import toy_verification

from broca.results.files import encode
from broca.results.neurons import EXPERIMENTS, NeuronExperiment, NeuronSet

DOCS = Path(__file__).parents[2] / "docs"
DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("name", FILES)
def test_schemas_in_the_docs_are_current(name):
    """Files in `docs/schemas` equal the output of `python -m broca.results.schemas docs`."""
    assert (DOCS / "schemas" / f"{name}.json").read_text(encoding="utf-8") == text_of(FILES[name])


def test_no_schema_is_left_over():
    """Every schema in `docs/schemas` belongs to a kind of result."""
    assert {file.stem for file in (DOCS / "schemas").iterdir()} == set(FILES)


def test_the_page_explains_every_key():
    """The tables of the page are made from the docstrings of the data classes."""
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    assert page[page.index(START) + len(START) : page.index(END)] == key_tables()


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
        make_result,
        make_atlas,
        make_stress,
        toy_verification,
        lambda: NeuronSet.read(DATA / "neurons.schema1.json"),
        lambda: NeuronExperiment.read(DATA / "erase.schema1.json"),
        make_reproduction,
        make_scan,
        make_list,
        make_description,
        make_diagnosis,
        make_contents,
    ],
)
def test_files_keep_to_their_schemas(make):
    """Files conform; files with a wrong type or an additional key do not."""
    result = make()
    schema = schema_of(type(result))
    data = json.loads(encode(result))
    assert conforms(data, schema, schema["$defs"])
    for spoiled in ({**data, "schema": "2"}, {**data, "more": 1}, {**data, "kind": None}):
        assert not conforms(spoiled, schema, schema["$defs"])


@pytest.mark.parametrize("verb", EXPERIMENTS)
def test_every_experiment_keeps_to_its_schema(verb):
    """The result conforms; a result that lacks a key or is of no experiment does not."""
    data, schema = json.loads(encode(make_experiment(verb))), schema_of(NeuronExperiment)
    assert conforms(data, schema, schema["$defs"])
    first = data["result"][0] if isinstance(data["result"], list) else data["result"]
    first.popitem()
    for spoiled in (data["result"], 1, [1], {}):
        assert not conforms({**data, "result": spoiled}, schema, schema["$defs"])
