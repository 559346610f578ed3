"""The files of a reproduction."""

import json

from broca.studies.paper import as_csv, write


def test_each_has_json_and_csv_and_all_have_one_page(everything, tmp_path):
    """Every result with rows has JSON and CSV files, and all share one page."""
    paths = write(list(everything.values()), tmp_path, "small")
    shown = [reproduction for reproduction in everything.values() if reproduction.rows]
    names = [
        f"{reproduction.name}-small{end}" for reproduction in shown for end in (".json", ".csv")
    ]
    assert [path.name for path in paths] == [*names, "all-small.html"]
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in paths}
    table = everything["table2"]
    assert json.loads((tmp_path / "table2-small.json").read_text())["rows"] == list(table.rows)
    assert (tmp_path / "table2-small.csv").read_text() == as_csv(table)


def test_one_alone_has_a_page_of_its_name(everything, tmp_path):
    """A single result has its page under its own name."""
    paths = write([everything["table9"]], tmp_path, "m")
    assert [path.name for path in paths] == ["table9-m.json", "table9-m.csv", "table9-m.html"]
