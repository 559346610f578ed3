"""Hooks of MkDocs that make pages from the package and from other files, and rewrite links.

- `reference/command-line.md` is the help of every command.
- `reference/python.md` holds the public names, with their docstrings; a verb has a page of its own
  with its options and its command, such as `reference/verbs/localize.md`.
- Notebooks are executed and become pages.
- Documents outside of `docs/` (benchmarks, log, contributing, changes) become pages of the site.
- Links to these documents, and to files that are no pages, are rewritten.
"""

from __future__ import annotations

import io
import posixpath
import re
import tempfile
import tomllib
from html import unescape
from pathlib import Path
from typing import Any

import broca

DOCS = Path(__file__).parent
ROOT = DOCS.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY: str = PROJECT["urls"]["Repository"]

OUTSIDE = {
    "benchmarks/RESULTS.md": "evidence/benchmarks.md",
    "benchmarks/zoo/README.md": "evidence/zoo.md",
    "experiments/LOG.md": "evidence/experiments.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
}
"""Documents of the repository that are pages of the site."""

NOTEBOOKS = {"tutorial/first-run.ipynb": True, "tutorial/hub-model.ipynb": False}
"""The notebooks, and whether the build executes them; one needs the hub and a GPU."""


def _in(home: str, names: str) -> tuple[str, ...]:
    """Returns dotted names; those of `broca` with their modules."""
    homes = broca._HOME if home == "broca" else {}
    return tuple(f"{homes.get(name, home)}.{name}" for name in names.split())


PUBLIC = {
    "Verbs": _in(
        "broca",
        "localize verify replicate atlas stress compare plan refit rerun scan export explore chat "
        "report view read list_tasks describe_task published_lists inspect_journal doctor "
        "reproduce",
    ),
    "Neurons, in `broca.neurons`": _in("broca.verbs.neurons", "locate erase"),
    "Models, tasks and components": _in("broca", "load GatedModel Component ComponentSet Task"),
    "Results": _in(
        "broca",
        "Localization Verification Claim Replication Atlas StressTest Comparison Refit "
        "Repetition Export Scan TaskList TaskDescription Diagnosis JournalContents BrocaError",
    ),
    "Options: their fields are the keywords of the verbs": (
        *_in("broca", "TaskOptions EngineOptions ExecutorOptions Scope"),
        *_in(
            "broca.options",
            "LocalizeOptions VerifyOptions ReplicateOptions AtlasOptions StressOptions "
            "CompareOptions PlanOptions RefitOptions RerunOptions ScanOptions ExportOptions "
            "ExploreOptions ChatOptions "
            "DescribeTaskOptions ReproduceOptions LocateOptions EraseOptions SearchOptions "
            "BudgetOptions SourceOptions AblationOptions ModelOptions JournalOptions RunOptions "
            "RuleOptions DataOptions DrawOptions",
        ),
    ),
    "Building blocks": _in("broca", "Run Workspace"),
    "Methods and recoveries": (
        *_in("broca.searches", "Method Problem Ranking Strategy run"),
        *_in("broca.recovery", "Recovery make_recovery"),
    ),
    "Integrations": _in("broca.integrations", "Log TrainerCallback BrocaLM"),
    "Journal": _in("broca.store", "Journal read_run read_runs table_of_rows"),
}
"""The sections of the page on Python, with the dotted names in each."""


def command_line_page() -> str:
    """Returns the page with the help of every command, as `broca COMMAND --help` prints it."""
    parts = [
        "# Command line\n",
        "This page is what `broca --help` and `broca COMMAND --help` print.",
        "[Errors](../errors.md) lists the exit codes.\n",
        f"```text\n{_help(())}\n```\n",
    ]
    for words in commands():
        parts += [f"## broca {' '.join(words)}\n", f"```text\n{_help(words)}\n```\n"]
    return "\n".join(parts)


def _help(words: tuple[str, ...]) -> str:
    """Returns what `broca COMMAND --help` prints."""
    from rich.console import Console

    from broca.cli.main import app

    page = io.StringIO()
    app.help_print(list(words), console=Console(file=page, width=90, color_system=None))
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()).strip()


def commands(above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Returns all commands and subcommands in the order of `--help`, except `lm-eval`."""
    from broca.cli.main import app

    menu = app
    for word in above:
        menu = menu[word]
    listed = []
    for name in menu:
        if name.startswith("-") or name == "lm-eval":
            continue
        words = (*above, name)
        listed += [words] if menu[name].default_command is not None else commands(words)
    return listed


def verbs() -> dict[str, tuple[str, ...]]:
    """Returns the page of every verb, with the dotted names on it: its own and its options'."""
    (options,) = (names for title, names in PUBLIC.items() if title.startswith("Options"))
    shown = {}
    for name in (*PUBLIC["Verbs"], *PUBLIC["Neurons, in `broca.neurons`"]):
        verb = name.rpartition(".")[2]
        own = f"broca.options.{verb.title().replace('_', '')}Options"
        shown[f"reference/verbs/{verb}.md"] = (name, own) if own in options else (name,)
    return shown


def verb_page(names: tuple[str, ...]) -> str:
    """Returns the page of a verb: its docstring, its keywords, and the help of its command."""
    verb = names[0].rpartition(".")[2]
    parts = [f"# {verb}\n", *(_directive(name, 2) for name in names)]
    for words in commands():
        if words[-1] == verb:
            parts.append(
                f"The command is `broca {' '.join(words)}`:\n\n```text\n{_help(words)}\n```\n"
            )
    return "\n".join(parts)


def _directive(name: str, level: int = 3) -> str:
    return f"::: {name}\n    options:\n      heading_level: {level}\n"


def python_page() -> str:
    """Returns the page with a directive of mkdocstrings for every public name but the verbs."""
    parts = [
        "# Python\n",
        "A verb takes the fields of its option class and of its groups as keywords:",
        '`broca.localize(model, task, rows=2000, device="cpu")`, or all of them as',
        "`settings`. Each verb has a page of its own:\n",
        " · ".join(f"[{Path(page).stem}](verbs/{Path(page).name})" for page in verbs()) + "\n",
    ]
    shown = {name for names in verbs().values() for name in names}
    for title, names in PUBLIC.items():
        left = [name for name in names if name not in shown]
        parts += [f"## {title}\n", *map(_directive, left)] if left else []
    return "\n".join(parts)


def notebook_page(path: Path, *, execute: bool) -> str:
    """Returns a notebook as Markdown: its cells and their outputs.

    Args:
        path: The notebook.
        execute: Whether to run the cells; otherwise their stored outputs are shown.
    """
    parts = []
    for cell in _notebook(path, execute=execute).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.cell_type == "code":
            parts.append(f"```python\n{cell.source}\n```")
            parts += [_output(output) for output in cell.outputs]
    return "\n\n".join(parts) + "\n"


def _notebook(path: Path, *, execute: bool) -> Any:
    """Returns a notebook with only the printed text and the result of each cell as outputs."""
    import nbformat

    book = nbformat.read(path, as_version=4)
    if execute:
        from nbclient import NotebookClient

        with tempfile.TemporaryDirectory() as folder:
            resources = {"metadata": {"path": folder}}
            NotebookClient(book, timeout=1800, resources=resources).execute()
    for cell in book.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [
                output
                for output in cell.outputs
                if output.output_type == "execute_result" or output.get("name") == "stdout"
            ]
    return book


def _output(output: Any) -> str:
    """Returns an output of a cell as Markdown: text, a picture or HTML."""
    if output.output_type == "stream":
        return f"```text\n{output.text.rstrip()}\n```"
    for kind in ("text/html", "image/svg+xml"):
        if kind in output.data:
            return f'<div class="output">\n{output.data[kind]}\n</div>'
    return f"```text\n{output.data['text/plain']}\n```"


def relinked(text: str, page: str, source: str) -> str:
    """Returns a document with its links rewritten for the site.

    Args:
        text: Markdown.
        page: The page's address in the site, such as `evidence/benchmarks.md`.
        source: The document's path in the repository, such as `benchmarks/RESULTS.md`.
    """

    def target(match: re.Match[str]) -> str:
        link, anchor = match[2], match[3] or ""
        if re.match(r"[a-z]+:|#|/", link):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        if path in OUTSIDE:
            place = OUTSIDE[path]
        elif path.endswith(".ipynb") and path.startswith("docs/"):
            place = path.removeprefix("docs/").replace(".ipynb", ".md")
        elif path.startswith("docs/"):
            place = path.removeprefix("docs/")
        elif path.endswith(".png") and (ROOT / path).is_file():
            place = f"evidence/{posixpath.basename(path)}"
        else:
            return f"{match[1]}({REPOSITORY}/blob/main/{path}{anchor})"
        return f"{match[1]}({posixpath.relpath(place, posixpath.dirname(page) or '.')}{anchor})"

    return re.sub(r"(\])\(([^)#\s]+)(#[^)\s]*)?\)", target, text)


_SERVING = False


def on_startup(*, command: str, dirty: bool) -> None:
    """Records whether MkDocs serves the site: only `mkdocs build` executes the notebooks."""
    global _SERVING
    _SERVING = command == "serve"


def on_files(files: Any, config: Any) -> Any:
    """Adds the generated pages and the pictures of the benchmarks."""
    from mkdocs.structure.files import File

    generated = {
        "reference/command-line.md": command_line_page(),
        "reference/python.md": python_page(),
        **{page: verb_page(names) for page, names in verbs().items()},
    }
    for source, page in OUTSIDE.items():
        generated[page] = relinked((ROOT / source).read_text(encoding="utf-8"), page, source)
    for name, executed in NOTEBOOKS.items():
        page = name.replace(".ipynb", ".md")
        text = notebook_page(DOCS / name, execute=executed and not _SERVING)
        generated[page] = relinked(text, page, f"docs/{name}")
    for page, text in generated.items():
        files.append(File.generated(config, page, content=text))
    for picture in ("growth.png", "methods.png"):
        files.append(
            File.generated(
                config, f"evidence/{picture}", abs_src_path=str(ROOT / "benchmarks" / picture)
            )
        )
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrites the links of a document of `docs/`."""
    path = page.file.src_uri
    if page.file.generated_by is not None:
        return markdown
    return relinked(markdown, path, f"docs/{path}")


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Replaces the placeholders of records in docstrings by their names."""
    from broca.cli.help import with_names

    return with_names(html) if page.file.src_uri.startswith("reference/") else html


def broken_links(site: Path) -> list[str]:
    """Returns links of a built site that lead nowhere, and resources loaded from other sites.

    Links to files of the repository are followed in this copy of it.
    """
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))}
    anchors = {
        path: set(re.findall(r"\b(?:id|name)=\"?([^\"\s>]+)", text)) for path, text in pages.items()
    }
    wrong = []
    for path, text in pages.items():
        if path.name == "404.html":
            continue
        for loaded in re.findall(
            r"<(?:script|img|iframe|source|video)[^>]*?\ssrc=\"?(https?:[^\"\s>]+)"
            r"|<link[^>]*rel=\"?(?:stylesheet|preload|preconnect)[^>]*href=\"?(https?:[^\"\s>]+)",
            text,
        ):
            wrong.append(f"{path.relative_to(site)} loads {''.join(loaded)}")
        for link in re.findall(r"<a\b[^>]*?\shref=\"?([^\"\s>]+)", text):
            address, _, anchor = unescape(link).partition("#")
            file = address.partition(f"{REPOSITORY}/blob/main/")[2]
            if file and not (ROOT / file).exists():
                wrong.append(f"{path.relative_to(site)} links to {link}")
            if re.match(r"[a-z]+:|//", address):
                continue
            target = (path.parent / address).resolve() if address else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                wrong.append(f"{path.relative_to(site)} links to {link}")
            elif anchor and target in anchors and anchor not in anchors[target]:
                wrong.append(
                    f"{path.relative_to(site)} links to {link}, an anchor that is not there"
                )
    return wrong


def main() -> None:
    """`check SITE` finds broken links in a built site; `execute` stores the notebooks' outputs."""
    import sys

    if sys.argv[1:] == ["execute"]:
        import nbformat

        for name, executed in NOTEBOOKS.items():
            nbformat.write(_notebook(DOCS / name, execute=executed), DOCS / name)
    elif sys.argv[1:2] == ["check"]:
        if problems := broken_links(Path(sys.argv[2])):
            sys.exit("\n".join(problems))
        print("every link leads somewhere, and nothing is loaded from elsewhere")
    else:
        sys.exit(main.__doc__)


if __name__ == "__main__":
    main()
