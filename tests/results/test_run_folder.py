"""`reproduce.json`: what an out folder says of its run."""

import json

import pytest

from broca.results.base import SCHEMA
from broca.results.codec import encode, restored
from broca.results.run_folder import RunFolderRecord

RECORD = RunFolderRecord(
    command="broca localize reference --task addition",
    asked={"task": "addition", "others": ["sorting"], "seed": 0},
    how={"token_budget": None},
    journal="journal.sqlite",
    versions={"broca": "1"},
    machine={"cores": 2},
)


def test_it_is_read_as_it_was_written():
    """With the version of the layout; digests are empty until the run has begun."""
    text = encode(RECORD)
    assert json.loads(text)["schema"] == SCHEMA
    assert json.loads(text)["digests"] == {}
    assert restored(json.loads(text), RunFolderRecord) == RECORD


@pytest.mark.parametrize("field", ["command", "asked", "journal", "machine"])
def test_a_field_that_is_missing_is_an_error(field):
    """A folder whose run is unknown is not gone on with."""
    data = json.loads(encode(RECORD))
    del data[field]
    with pytest.raises(ValueError, match=field):
        restored(data, RunFolderRecord)
