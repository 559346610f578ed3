"""The JSON schemas in the documentation are current, and files conform to them."""

import json

import pytest
from docs.scripts import DOCS, script
from jsonschema import Draft202012Validator
from results import samples

from broca.results.files import encode

schemas = script("schemas")


def test_schemas_and_tables_are_current():
    """`python docs/schemas.py` would change nothing, and no schema is left over."""
    written = {file.stem: file.read_text(encoding="utf-8") for file in DOCS.glob("schemas/*")}
    assert written == {name: schemas.text_of(kind) for name, kind in schemas.FILES.items()}
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    assert schemas.rewritten(page) == page


def refused(data, kind):
    """Returns the errors of data against the schema of a kind."""
    return [*Draft202012Validator(schemas.schema_of(kind)).iter_errors(data)]


@pytest.mark.parametrize("make", [*samples.WITH_PAGES, *samples.OTHERS])
def test_files_keep_to_their_schemas(make):
    """Files conform; files with a wrong type, a key more or, a key less do not."""
    result = make()
    data = json.loads(encode(result))
    assert not refused(data, type(result))
    spoiled = [{**data, "schema": "2"}, {**data, "more": 1}, {**data, "kind": None}]
    assert all(refused(other, type(result)) for other in spoiled)
