"""`reproduce.json` is the record of the run in an out folder."""

import json

import pytest

from broca.results.base import SCHEMA
from broca.results.files import encode, restored
from broca.results.runs import RunFolderRecord

RECORD = RunFolderRecord(
    command="broca localize reference --task addition",
    options={"task": "addition", "others": ["sorting"], "seed": 0},
    how={"token_budget": None},
    journal="journal.sqlite",
    versions={"broca": "1"},
    machine={"cores": 2},
)


def test_the_record_is_read_as_it_was_written():
    """The record has the version of the layout; digests are empty until the run has begun."""
    text = encode(RECORD)
    assert json.loads(text)["schema"] == SCHEMA
    assert json.loads(text)["digests"] == {}
    assert restored(json.loads(text), RunFolderRecord) == RECORD


@pytest.mark.parametrize("field", ["command", "options", "journal", "machine"])
def test_a_field_that_is_missing_is_an_error(field):
    """A record without one of these fields is refused, so that its run is not continued."""
    data = json.loads(encode(RECORD))
    del data[field]
    with pytest.raises(ValueError, match=field):
        restored(data, RunFolderRecord)
