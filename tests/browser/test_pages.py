"""Pages as a person meets them: clicked, typed into, sorted, saved, printed, on a phone."""

import csv
import io
import itertools
import json
import re

import pytest
from reports.test_page import make_result

from broca.reports import render_html
from broca.results.base import ModelInfo
from broca.results.localization import RankedComponent

KINDS = (
    "report",
    "abstention",
    "verification",
    "atlas",
    "stress",
    "neurons",
    "index",
    "comparison",
    "refit",
    "experiment",
    "reproduction",
    "bench",
)


def column(page, table, number):
    """The texts of a column, from top to bottom."""
    return page.locator(f'[data-table="{table}"] tbody tr > :nth-child({number})').all_inner_texts()


COLOUR_RULES = ("color-contrast", "link-in-text-block")
"""Those of axe's usual rules that another colour scheme can break."""


def serious(page, *, rules=()):
    """What axe finds that is serious or critical, by its usual rules or by some of them."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    options = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    found = axe.run(page, options=options).response["violations"]
    return [
        (one["id"], one["nodes"][0]["html"][:120])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_can_be_used_by_everyone(open_page, pages, kind):
    """axe-core has no serious finding, in either scheme; a phone shows the whole width.

    Every table can be saved as CSV, every figure as SVG and PNG.
    """
    page = open_page(pages[kind])
    for shown, button in (
        ("table", ".bar button[aria-label^='Download as CSV']"),
        ("section svg", "[data-save=svg]"),
        ("section svg", "[data-save=png]"),
    ):
        assert page.locator(shown).count() == page.locator(button).count()
    assert serious(page) == []
    page.emulate_media(color_scheme="dark")
    assert serious(page, rules=COLOUR_RULES) == []
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_click_on_a_component_shows_what_is_known_of_it(open_page, pages, pictured):
    """From every table that names it; the address leads back to it."""
    page = open_page(pages["report"], height=1000)
    pictured(page, "report")
    name = column(page, "ranking", 1)[0]
    page.click(f'[data-component="{name}"]')
    details = page.locator("[data-details]")
    assert details.locator("h2").inner_text() == name
    effect = column(page, "ranking", 2)[0]
    assert effect in details.inner_text()
    assert page.url.endswith(f"#{name}")
    page.reload()
    assert page.locator("[data-details] h2").inner_text() == name
    member = column(page, "members", 1)[0]
    page.click(f'[data-component="{member}"]')
    for part in ("Contribution of each member", "Outputs that each member changes"):
        assert part in details.inner_text()


def test_keys_move_from_component_to_component(open_page, pages):
    """And a name that is typed is gone to."""
    page = open_page(pages["report"])
    page.locator(".model .scroll").focus()
    seen = []
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
        seen.append(page.locator("[data-details] h2").inner_text())
    assert seen == ["L0H0", "L0H1", "L1H1", "L1H0", "L0H0"]
    page.fill("[data-goto]", "l2h3")
    assert page.locator("[data-details] h2").inner_text() == "L2H3"


def test_tables_sort_both_ways(open_page, pages):
    """Numbers as numbers; the sort is told to screen readers."""
    page = open_page(pages["report"])
    head = page.locator('[data-table="tasks"] thead th').nth(4)

    def shown():
        return [float(text) for text in column(page, "tasks", 5) if text]

    before = shown()
    head.locator("button").click()
    assert shown() == sorted(before)
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").click()
    assert shown() == sorted(before, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"


def test_tables_filter_and_show_all(open_page, pages):
    """Rows that the page holds as data too."""
    page = open_page(pages["report"])
    assert len(column(page, "ranking", 1)) == 40
    page.fill('[data-table="ranking"] input[type=search]', "L3H")
    assert {name[:3] for name in column(page, "ranking", 1)} == {"L3H"}
    assert len(column(page, "ranking", 1)) == 12
    page.fill('[data-table="ranking"] input[type=search]', "")
    page.click('[data-table="ranking"] >> text=Show all')
    assert len(column(page, "ranking", 1)) == 48


def test_tables_are_saved_as_csv(open_page, pages):
    """Every row, plain numbers, an interval in three columns."""
    page = open_page(pages["report"])
    for table, rows in (("ranking", 48), ("tasks", len(column(page, "tasks", 1)))):
        with page.expect_download() as download:
            page.click(f'[data-table="{table}"] >> text=CSV')
        text = download.value.path().read_text()
        lines = list(csv.DictReader(io.StringIO(text)))
        assert len(lines) == rows
        assert "−" not in text
    assert float(lines[0]["points lost low"]) <= float(lines[0]["points lost"])


@pytest.mark.parametrize("form", ["svg", "png"])
def test_figures_are_saved_from_the_page(open_page, pages, form):
    """As they are seen, with their own colours."""
    page = open_page(pages["report"])
    with page.expect_download() as download:
        page.click(f'#figure-components [data-save="{form}"]')
    assert download.value.suggested_filename == f"components.{form}"
    content = download.value.path().read_bytes()
    if form == "png":
        assert content.startswith(b"\x89PNG")
        return
    text = content.decode()
    assert "class=" not in text
    assert len(re.findall("data-component=", text)) == 48
    assert len(set(re.findall(r'data-component="[^"]*"[^>]*fill="([^"]*)"', text))) > 3


def test_the_readers_scheme_decides(open_page, pages, pictured):
    """Dark where it is dark; text and colours change with it."""
    grounds = {}
    for scheme in ("light", "dark"):
        page = open_page(pages["report"], color_scheme=scheme, height=1000)
        grounds[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
    pictured(page, "report-dark")
    assert grounds["light"] != grounds["dark"]


def test_a_page_prints(open_page, pages):
    """On white, without buttons and contents; nothing is cut at the sides."""
    page = open_page(pages["report"], color_scheme="dark")
    assert page.pdf().startswith(b"%PDF")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 690, "height": 900})  # A4 within its margins
    assert page.locator("nav").is_hidden()
    assert page.locator(".tools").first.is_hidden()
    assert page.locator(".filter").first.is_hidden()
    display = "getComputedStyle(document.querySelector('thead button')).display"
    assert page.evaluate(display) == "contents"  # a button is not painted again on the next page
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    widths = page.evaluate("[...document.querySelectorAll('svg')].map("
                           "(one) => one.getBoundingClientRect().right)")  # fmt: skip
    assert max(widths) <= 690


@pytest.mark.parametrize("kind", ["report", "verification", "atlas", "comparison", "stress"])
def test_tables_fit_the_paper(open_page, pages, kind):
    """However many columns they have: a printed page cannot be scrolled."""
    page = open_page(pages[kind])
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 690, "height": 900})  # A4 within its margins
    assert page.evaluate("document.documentElement.scrollWidth") <= 690


def test_an_atlas_shows_each_task(open_page, pages, pictured):
    """The picture of the model takes the colours and frames of a task."""
    page = open_page(pages["atlas"], height=1000)
    pictured(page, "atlas")

    def colours():
        return page.locator(".model [data-component]").evaluate_all(
            "(cells) => cells.map((cell) => cell.getAttribute('class'))"
        )

    before = colours()
    frames = page.locator(".model [data-group=frames], .model [data-marks]")
    assert frames.count() == 1
    page.select_option("[data-view]", label="sorting")
    assert colours() != before
    assert frames.count() == 0  # it needs nothing beyond the others
    page.select_option("[data-view]", label="adding")
    assert frames.count() == 1


def test_two_ticked_results_are_compared(open_page, pages, pictured):
    """Their sets and what tasks lose; a third tick takes the place of the first."""
    page = open_page(pages["index"])
    page.locator("[data-compare]").nth(0).check()
    assert "Tick one more" in page.locator("#compared").inner_text()
    page.locator("[data-compare]").nth(1).check()
    text = page.locator("#compared").inner_text()
    for part in ("runs/one", "runs/two", "in both sets", "sorting", "adding"):
        assert part in text
    pictured(page, "index", full_page=True)
    assert page.locator('a[href="report.html"]').count() == 1
    page.locator('[data-table="results"] thead button').first.click()
    assert page.locator('a[href="report.html"]').count() == 1  # sorting keeps the addresses
    assert page.locator("[data-compare]:checked").count() == 2


def test_other_pages_have_pictures(open_page, pages, pictured):
    """For the docs."""
    for kind in ("verification", "stress", "comparison", "neurons", "reproduction", "bench"):
        page = open_page(pages[kind], height=1000)
        assert page.locator("h1").count() == 1
        assert page.locator("svg").count() > 0
        pictured(page, kind)


def test_a_large_model_is_drawn_without_overlap(open_page, tmp_path, pictured):
    """80 layers x 128 heads, each of which can be clicked."""
    ranking = tuple(
        RankedComponent(f"L{layer}H{head}", layer, head, -0.4 if (layer * head) % 97 == 1 else 0.0)
        for layer in range(80)
        for head in range(128)
    )
    file = tmp_path / "large.html"
    model = ModelInfo("large", "f", "LlamaForCausalLM", 80, 128, 8, "bfloat16")
    file.write_text(render_html(make_result(ranking=ranking, selected=("L40H64",), model=model)))
    page = open_page(file.as_uri())
    pictured(page, "large-model")
    boxes = json.loads(
        page.locator(".model [data-component]").evaluate_all(
            "(cells) => JSON.stringify(cells.map((cell) => {"
            " const box = cell.getBoundingClientRect();"
            " return [box.left, box.top, box.right, box.bottom]; }))"
        )
    )
    assert len(boxes) == 80 * 128
    rows = [boxes[start : start + 128] for start in range(0, len(boxes), 128)]
    for row in rows:
        assert all(left[2] <= right[0] for left, right in itertools.pairwise(row))
    for above, below in itertools.pairwise(rows):
        assert above[0][3] <= below[0][1]
    page.click('[data-component="L79H127"]')
    assert page.locator("[data-details] h2").inner_text() == "L79H127"
