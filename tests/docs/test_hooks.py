"""The generated pages, the navigation and the links of the documentation site."""

import ast
import inspect
import json
import pkgutil
import re
from pathlib import Path

import pytest
import yaml
from docs.scripts import script

import broca

ROOT = Path(__file__).parents[2]
hooks = script("hooks")


@pytest.mark.long
def test_every_command_has_its_help():
    """The page of the command line has a section for each command, with all its flags."""
    from broca.cli.main import app

    page = hooks.command_line_page()
    sections = dict(part.split("\n", 1) for part in page.split("## broca ")[1:])
    assert [tuple(name.split()) for name in sections] == hooks.commands()
    for name, text in sections.items():
        command = app.parse_commands(name.split())[1][-1]
        for argument in command.assemble_argument_collection(parse_docstring=False):
            if argument.parse and argument.index is None and argument.name != "*":
                assert argument.name in text, (name, argument.name)


@pytest.mark.long
def test_every_public_name_has_its_place():
    """The pages on Python have all names of `broca` and `broca.neurons`, with docstrings."""
    listed = {name for names in hooks.PUBLIC.values() for name in names}
    assert {f"{home}.{name}" for name, home in broca._HOME.items()} <= listed
    neurons = {name for name in listed if name.startswith("broca.verbs.neurons.")}
    assert {name.rpartition(".")[2] for name in neurons} == set(broca.neurons.__all__)
    pages = [hooks.python_page(), *map(hooks.verb_page, hooks.verbs().values())]
    for name in listed:
        assert "".join(pages).count(f"::: {name}\n") == 1
        assert inspect.getdoc(pkgutil.resolve_name(name)), name


def test_the_navigation_has_every_page():
    """The navigation has every page of `docs/` and every generated page once."""
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = re.findall(r"[\w./-]+\.md", json.dumps(config["nav"]))
    generated = {"reference/command-line.md", "reference/python.md", *hooks.OUTSIDE.values()}
    generated |= set(hooks.verbs())
    generated |= {name.replace(".ipynb", ".md") for name in hooks.NOTEBOOKS}
    written = {str(path.relative_to(hooks.DOCS)) for path in hooks.DOCS.rglob("*.md")}
    assert sorted(listed) == sorted(written | generated)
    assert config["site_url"] == hooks.PROJECT["urls"]["Documentation"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](../benchmarks/RESULTS.md#methods)", "[a](../evidence/benchmarks.md#methods)"),
        ("[a](../experiments/LOG.md)", "[a](../evidence/experiments.md)"),
        ("[a](b.md#c)", "[a](b.md#c)"),
        ("[a](#c)", "[a](#c)"),
        ("[a](https://example.org/x.md)", "[a](https://example.org/x.md)"),
        ("[a](../tests/test_readme.py)", f"[a]({hooks.REPOSITORY}/blob/main/tests/test_readme.py)"),
    ],
)
def test_links_are_those_of_the_site(text, expected):
    """Links to documents that are pages lead to the pages, other links to the repository."""
    page = "section/page.md"
    source = "docs/page.md" if "../" in text else "docs/section/page.md"
    assert hooks.relinked(text, page, source) == expected


def test_broken_links_are_found(tmp_path):
    """Missing pages, missing anchors and resources of other sites are found."""
    (tmp_path / "a").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="a/">good</a><a href="a/#there">good</a><a href="b/">bad</a>'
        '<a href="a/#gone">bad</a><a href="https://example.org">not looked at</a>'
        f'<a href="{hooks.REPOSITORY}/blob/main/README.md">good</a>'
        f'<a href="{hooks.REPOSITORY}/blob/main/gone.py">bad</a>'
    )
    (tmp_path / "a" / "index.html").write_text(
        '<h1 id="there">A</h1><a href="..">up</a><script src="https://example.org/x.js"></script>'
    )
    assert hooks.broken_links(tmp_path) == [
        "a/index.html loads https://example.org/x.js",
        "index.html links to b/",
        "index.html links to a/#gone, an anchor that is not there",
        f"index.html links to {hooks.REPOSITORY}/blob/main/gone.py",
    ]


def cells(name):
    """Returns the code cells of a notebook."""
    book = json.loads((hooks.DOCS / name).read_text(encoding="utf-8"))
    return [cell for cell in book["cells"] if cell["cell_type"] == "code"]


def test_the_tutorial_is_stored_as_it_ran():
    """Every cell was executed, none with an error, and the verdict is there."""
    stored = cells("tutorial/first-run.ipynb")
    assert [cell["execution_count"] for cell in stored] == list(range(1, len(stored) + 1))
    outputs = [output for cell in stored for output in cell["outputs"]]
    assert all(output["output_type"] != "error" for output in outputs)
    assert "addition loses" in json.dumps(outputs)
    assert "'specific'" in json.dumps(outputs[-1])


@pytest.mark.parametrize("name", hooks.NOTEBOOKS)
def test_calls_in_notebooks_fit_the_functions(name):
    """Every call of a broca function in a notebook has only keywords that the function takes."""
    sources = ["".join(cell["source"]) for cell in cells(name)]
    program = "\n".join(source for source in sources if not source.startswith("%"))
    nodes = [node for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Call)]
    calls = [node for node in nodes if ast.unparse(node.func).startswith("broca.")]
    assert len(calls) > 3
    for call in calls:
        names = inspect.signature(eval(ast.unparse(call.func))).parameters
        assert {word.arg for word in call.keywords if word.arg} <= set(names), ast.unparse(call)
