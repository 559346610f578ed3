"""Fixtures: a browser, the pages to open in it, and the pictures of the docs.

With `BROCA_PICTURES=docs/pictures`, as in `make pictures`, tests write the pictures of the docs.
"""

import os
import shutil
from pathlib import Path

import pytest
from results import samples
from simulated import toy_verification

import broca
from broca.results.pages.template import filled
from broca.results.reading import entry_of
from broca.results.runs import Reproduction
from broca.studies.pages import render_page

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
LARGEST_PICTURE = 200_000


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium; tests that need it are skipped where it is not installed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed (apt-get install chromium)")
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


def _is_error(message):
    """Returns whether a console message is an error; a reply that refuses a request is not."""
    return message.type == "error" and "status of 4" not in message.text


@pytest.fixture
def open_page(browser):
    """Returns a function that opens a page; script errors and outside requests fail the test."""
    contexts, wrong = [], []

    def opened(address, *, width=1280, height=900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: _is_error(message) and wrong.append(message.text))
        allowed = ("file:", "data:", "blob:", "http://127.0.0.1:")
        page.on(
            "request",
            lambda request: request.url.startswith(allowed) or wrong.append(f"asks {request.url}"),
        )
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """The folder of a run of `reference-small` with its verification, whose verdict is specific."""
    folder = tmp_path_factory.mktemp("runs") / "sorting"
    result = broca.localize(
        "reference-small", "sorting", others="mc_biology,mc_chemistry", rows=6000, items=12,
        task_options=broca.TaskOptions(limit=60), device="cpu",
    )  # fmt: skip
    result.save(folder)
    return folder


def reproduction():
    """Returns a reproduced figure of the paper with four rows."""
    settings = {"method": "m", "k": 5, "items": 1, "limit": 9, "seed": 0, "keep_universal": False}
    rows = tuple(
        {"model": "m", "task": task, "k": k, "drop": 0.5, "drop_low": 0.4, "drop_high": 0.6,
         "general_drop": 0.1}
        for task in ("adding", "sorting")
        for k in (0, 1)
    )  # fmt: skip
    return Reproduction("figure2", ("m",), rows, settings, ("a note",))


@pytest.fixture(scope="session")
def pages(run, tmp_path_factory):
    """The addresses of a page of every kind, by kind."""
    folder = tmp_path_factory.mktemp("pages")
    localization = broca.read(run)
    shown = {
        "report": localization.page(),
        "abstention": samples.make_result(selected=(), abstained=True, reason="no harm").page(),
        "verification": toy_verification().page(),
        "atlas": samples.make_atlas().page(),
        "stress": samples.make_stress().page(),
        "neurons": samples.make_neurons().page(),
        "index": filled("index", notes=[], entries=[
            entry_of(localization, name="runs/one", page="report.html", date="2026-11-22"),
            entry_of(toy_verification(), name="runs/two", page="", date="2026-11-21"),
            entry_of(samples.make_atlas(), name="runs/three", page="atlas.html", date="2026-11-20"),
            entry_of(toy_verification(), name="runs/four", page="", date="2026-11-19"),
        ]),
        "comparison": samples.make_comparison().page(),
        "refit": samples.make_refit().page(),
        "erasure": samples.make_erasure().page(),
        "reproduction": render_page([reproduction()]),
        "replication": samples.make_replication().page(),
    }  # fmt: skip
    for name, html in shown.items():
        (folder / f"{name}.html").write_text(html)
    return {name: (folder / f"{name}.html").as_uri() for name in shown}


@pytest.fixture
def pictured(tmp_path):
    """Returns a function that takes a small picture of a page, which the docs must have too."""

    def take(page, name, **options):
        folder = Path(os.environ.get("BROCA_PICTURES", tmp_path))
        path = folder / f"{name}.png"
        page.screenshot(path=path, **options)
        assert path.stat().st_size < LARGEST_PICTURE
        assert (Path(__file__).parents[2] / "docs" / "pictures" / path.name).is_file()

    return take
