"""`broca published`: the lists of the library, as text and as JSON."""

import json

from cli.running import broca

import broca as library


def test_every_list_has_a_line():
    """A line has the name and the heads of a list; the notes come last."""
    done = broca("published")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    lists = library.published_lists()
    assert [line.split() for line in lines[: len(lists)]] == [
        [heads.name, *heads.heads] for heads in lists
    ]
    assert all(line.startswith("note: ") for line in lines[len(lists) :])


def test_json_has_the_lists_of_one_model():
    """`--model` restricts the JSON to the lists of that model."""
    lists = library.published_lists("llama-3.1-8b")
    shown = json.loads(broca("published", "--model", "llama-3.1-8b", "--json").stdout)
    assert [line["name"] for line in shown] == [heads.name for heads in lists]
    assert [line["heads"] for line in shown] == [list(heads.heads) for heads in lists]
    assert 0 < len(shown) < len(library.published_lists())
