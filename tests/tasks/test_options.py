"""`TaskOptions.reference` may name a function of a file that gives the right answers."""

import pytest

from broca.errors import BadInput
from broca.tasks import TaskOptions
from broca.tasks.options import reference_function


def test_function_is_read_from_a_file(tmp_path):
    """`FILE.py:FUNCTION` is loaded; `gold` is no function."""
    file = tmp_path / "answers.py"
    file.write_text("def answer(document):\n    return document['answer'] * 2\n")
    function = reference_function(TaskOptions(reference=f"{file}:answer"))
    assert function({"answer": "ab"}) == "abab"
    assert reference_function(TaskOptions(reference="gold")) is None


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("no.py:f", None, "is not a Python file"),
        ("a.txt:f", "", "is not a Python file"),
        ("a.py:g", "def f(document): ...", "has no function 'g'"),
        ("a.py:f", "def f(:", "could not be run: SyntaxError"),
    ],
)
def test_files_without_the_function_are_refused(tmp_path, name, text, message):
    """A missing file or function is refused; the message names the cause."""
    if text is not None:
        (tmp_path / name.partition(":")[0]).write_text(text)
    with pytest.raises(BadInput, match=message):
        reference_function(TaskOptions(reference=f"{tmp_path}/{name}"))
