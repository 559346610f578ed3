"""The contents of a journal as a result."""

from dataclasses import replace

from broca.results.files import decode, encode
from broca.results.runs import JournalCondition, JournalContents, JournalRun


def make_contents():
    """Returns contents of two runs, of which one has ended."""
    runs = tuple(
        JournalRun(
            id=number, digest="ab", settings={"task": "sorting", "method": "greedy", "seed": 3},
            search={}, components=9, items=4, process="1", finished=finished, rows=1000, tokens=50,
        )
        for number, finished in ((1, "2026-01-01T00:00:00+00:00"), (2, None))
    )  # fmt: skip
    condition = JournalCondition(
        weights="w", dtype="float32", ablation="zero", scale=0.0, response="score", rows=2000
    )
    return JournalContents(
        counts={"rows": 2000, "masks": 7}, vectors={}, conditions=(condition,), runs=runs
    )


def test_runs_are_the_lines_of_the_table():
    """The table has a line for each run; the summary counts runs that have ended."""
    contents = make_contents()
    assert contents.summary() == ("2,000 rows, 7 masks", "2 runs, 1 of them finished")
    assert [(line["run"], line["task"], line["seed"]) for line in contents.records()] == [
        (1, "sorting", 3), (2, "sorting", 3),
    ]  # fmt: skip
    assert [line["finished"] is None for line in contents.records()] == [False, True]


def test_a_line_names_what_a_run_of_any_verb_did():
    """A line has a task or tasks, or the heads of a stress test, and the method or the verb."""
    (run, _) = make_contents().runs
    for settings, subject, procedure in (
        ({"task": "sorting", "method": "greedy"}, "sorting", "greedy"),
        ({"verb": "plan", "task": "sorting"}, "sorting", "plan"),
        ({"measures": "sorting"}, "sorting", "verify"),
        ({"verb": "atlas", "tasks": ["sorting", "capitals"]}, "sorting+capitals", "atlas"),
        ({"verb": "stress", "heads": ["L0H1", "L0H2"]}, "L0H1+L0H2", "stress"),
    ):
        line = replace(run, settings=settings)
        assert (line.subject, line.procedure) == (subject, procedure)


def test_contents_are_read_back():
    """The text of the contents is decoded to the same contents."""
    assert decode(JournalContents, encode(make_contents())) == make_contents()
