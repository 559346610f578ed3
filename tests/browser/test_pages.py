"""Pages in a browser: clicks, keys, tables, downloads, print, small screens, accessibility."""

import csv
import io
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from results.samples import make_replication, make_result

from broca.results.base import ModelInfo
from broca.results.localization import RankedComponent

KINDS = (
    "report", "abstention", "verification", "atlas", "stress", "neurons", "index", "comparison",
    "refit", "erasure", "reproduction", "replication",
)  # fmt: skip


def column(page, table, number):
    """Returns the texts of a column from top to bottom."""
    return page.locator(f'[data-table="{table}"] tbody tr > :nth-child({number})').all_inner_texts()


def unfold(page):
    """Opens the collapsed parts of a page, and returns it."""
    page.locator("section > details").evaluate_all(
        "(parts) => parts.forEach((part) => { part.open = true; })"
    )
    return page


COLOUR_RULES = ("color-contrast", "link-in-text-block")
"""The default rules of axe whose outcome depends on the colour scheme."""


def serious(page, *, rules=()):
    """Returns the serious and critical violations that axe finds, by default with all rules."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    options = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    violations = axe.run(page, options=options).response["violations"]
    grave = [found for found in violations if found["impact"] in ("serious", "critical")]
    return [(found["id"], found["nodes"][0]["html"][:120]) for found in grave]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_every_page_can_be_used_by_everyone(open_page, pages, kind):
    """axe-core finds no serious violation in either colour scheme; pages fit phones and paper.

    Every table can be saved as CSV, and every figure as SVG and PNG.
    """
    page = unfold(open_page(pages[kind]))
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
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 690, "height": 900})  # A4 within its margins
    assert page.evaluate("document.documentElement.scrollWidth") <= 690


def test_a_click_on_a_component_shows_what_is_known_of_it(open_page, pages, pictured):
    """A click on a component shows its details, and the address restores them."""
    page = open_page(pages["report"], height=1000)
    pictured(page, "report")
    unfold(page)
    name = column(page, "ranking", 1)[0]
    page.click(f'[data-component="{name}"]')
    details = page.locator("[data-details]")
    assert details.locator("h2").inner_text() == name
    assert column(page, "ranking", 2)[0] in details.inner_text()
    assert page.url.endswith(f"#{name}")
    page.reload()
    assert page.locator("[data-details] h2").inner_text() == name
    unfold(page)
    page.click(f'[data-component="{column(page, "members", 1)[0]}"]')
    for part in ("Contribution of each member", "adds to the others"):
        assert part in details.inner_text()


def test_keys_move_from_component_to_component(open_page, pages):
    """Arrow keys show the next component, and a typed name shows the component of that name."""
    page = open_page(pages["report"])
    page.locator(".model .scroll").focus()
    titles = []
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
        titles.append(page.locator("[data-details] h2").inner_text())
    assert titles == ["L0H0", "L0H1", "L1H1", "L1H0", "L0H0"]
    page.fill("[data-goto]", "L2H99")
    page.press("[data-goto]", "Enter")
    assert "The model has no L2H99" in page.locator("[data-details]").inner_text()
    page.fill("[data-goto]", "l2h3")
    assert page.locator("[data-details] h2").inner_text() == "L2H3"


def test_tables_sort_both_ways(open_page, pages):
    """Columns are sorted as numbers in both directions, which `aria-sort` states."""
    page = unfold(open_page(pages["report"]))
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


def test_the_first_screen_has_verdict_picture_evidence_and_items(open_page, pages):
    """What follows is collapsed; an address opens its part; points and cells show values."""
    page = open_page(pages["report"], width=1200)
    evidence = (".model svg", "#figure-controls svg", '[data-table="three"] tbody')
    for part in ("h1", ".badge", *evidence):
        assert page.locator(part).bounding_box()["y"] < 900
    assert page.evaluate("document.documentElement.scrollHeight") < 2400
    tip = page.locator("#figure-controls use title").last.text_content()
    assert re.search(r"real set -?[\d.]+", tip)
    framed = page.locator("[data-frame]").first.get_attribute("data-frame")
    head = page.locator(f'[data-component="{framed}"]')
    head.hover()
    assert re.search(r"\d", head.locator("title").text_content().removeprefix(framed))
    assert head.get_attribute("class").startswith("n16")
    page.click("text=Every examined item")  # the address opens its part when the click is over
    page.locator('[data-table="samples"]').wait_for()
    page.click("text=How it was made")
    page.locator('#made [data-table="settings"]').wait_for()
    for setting in page.locator('#made [data-table="settings"] tbody tr').all():
        assert len(setting.locator("td, th").last.inner_text().split()) > 1


@pytest.mark.parametrize("kind", ["report", "verification", "replication"])
def test_a_phones_first_screen_has_verdict_evidence_and_next_step(open_page, pages, kind):
    """They lie on 400 x 800 pixels whole; explanation, picture and items follow."""
    page = open_page(pages[kind], width=400, height=800)
    evidence = "tbody tr:first-child th" if kind == "replication" else "#figure-controls svg"
    for part in ("h1", ".badge", ".next", evidence):
        box = page.locator(part).first.bounding_box()
        assert box["y"] + box["height"] <= 800, part


def test_a_heat_map_has_what_each_member_costs_the_others(open_page, pages):
    """A cell under the pointer has its interval; on a phone the map scrolls inside its box."""
    page = unfold(open_page(pages["report"], width=400))
    figure = page.locator("#figure-beside")
    tips = figure.locator("use title").all_text_contents()
    assert [tip.partition(": lost ")[0] for tip in tips] == [
        f"{member} on {task}"
        for member in column(page, "members", 1)
        for task in ("mc_biology", "mc_chemistry")
    ]
    assert all(re.search(r"-?[\d.]+ \[.*\]$", tip.replace("−", "-")) for tip in tips)
    figure.locator("use").first.hover()  # nothing lies over a cell
    assert figure.locator(".scroll").evaluate("(box) => box.scrollWidth > box.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_replication_says_where_the_claim_held(open_page, tmp_path):
    """The page that is saved names what held and what did not; its table sorts."""
    make_replication().save(tmp_path)
    page = open_page((tmp_path / "replication.html").as_uri())
    assert page.locator("h1").inner_text().startswith("Held in part: ")
    says = page.locator("header").inner_text()
    assert "Held with fresh items: seed 1. Did not hold with other words: plus." in says
    places = ["fresh items: seed 1", "other words: plus"]
    for shown in (places, places[::-1]):
        page.locator('[data-table="replicas"] thead button').first.click()
        assert column(page, "replicas", 1) == shown


def test_items_are_read_and_sums_stay_below(open_page, pages):
    """Every item shows both outputs, a button leaves the changed ones; sums stay the last rows."""
    page = unfold(open_page(pages["report"]))
    states = column(page, "samples", 6)
    page.click("text=Changed only")
    assert set(column(page, "samples", 6)) == {"changed"}
    assert len(column(page, "samples", 6)) == states.count("changed") > 0
    page.locator('[data-table="tasks"] thead button').first.click()
    page.locator('[data-table="tasks"] thead button').first.click()
    assert [name.split(":")[0] for name in column(page, "tasks", 1)[-3:]] == [
        "mean of the others", "largest of the others", "specific to sorting",
    ]  # fmt: skip


def test_tables_filter_and_show_all(open_page, pages):
    """The filter and `Show all` also find the rows that the page holds only as data."""
    page = unfold(open_page(pages["report"]))
    assert len(column(page, "ranking", 1)) == 40
    page.fill('[data-table="ranking"] input[type=search]', "L3H")
    assert {name[:3] for name in column(page, "ranking", 1)} == {"L3H"}
    assert len(column(page, "ranking", 1)) == 12
    page.fill('[data-table="ranking"] input[type=search]', "")
    page.click('[data-table="ranking"] >> text=Show all')
    assert len(column(page, "ranking", 1)) == 48


def test_tables_are_saved_as_csv(open_page, pages):
    """The CSV file has every row, plain numbers, and the bounds of intervals as columns."""
    page = unfold(open_page(pages["report"]))
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
    """A figure is saved as PNG, or as SVG with its colours as attributes."""
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
    assert len(set(re.findall(r'data-component="[^"]*"[^>]*fill="([^"]*)"', text))) > 2


def test_the_readers_scheme_decides(open_page, pages, pictured):
    """The background of the page follows the reader's colour scheme."""
    grounds = {}
    for scheme in ("light", "dark"):
        page = open_page(pages["report"], color_scheme=scheme, height=1000)
        grounds[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
    pictured(page, "report-dark")
    assert grounds["light"] != grounds["dark"]


def test_a_page_prints(open_page, pages):
    """A printed page is white, has no buttons and contents, and fits the width of the paper."""
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


def test_an_atlas_shows_each_task(open_page, pages, pictured):
    """Selecting a task shows its colours and frames in the figure of the model."""
    page = open_page(pages["atlas"], height=1000)
    pictured(page, "atlas")

    def colours():
        return page.locator(".model [data-component]").evaluate_all(
            "(cells) => cells.map((cell) => cell.getAttribute('class'))"
        )

    before = colours()
    frames = page.locator(".model [data-frame]")
    assert frames.count() == 1
    page.select_option("[data-view]", label="sorting")
    assert colours() != before
    assert "in sorting" in page.locator(".model svg").text_content()
    assert frames.count() == 0  # no component is specific to this task
    page.select_option("[data-view]", label="adding")
    assert frames.count() == 1


def test_two_ticked_results_are_compared(open_page, pages, pictured):
    """The page shows the sets of the last two ticked results and what each task loses."""
    page = open_page(pages["index"])
    page.locator("[data-compare]").nth(0).check()
    assert "Tick one more" in page.locator("#compared").inner_text()
    page.locator("[data-compare]").nth(1).check()
    text = page.locator("#compared").inner_text()
    for part in ("runs/one", "runs/two", "in both sets", "sorting", "adding"):
        assert part in text
    pictured(page, "index", full_page=True)
    assert page.locator("[data-compare]:disabled").count() == 0
    page.locator('[data-table="results"] thead button').first.click()
    assert page.locator('a[href="report.html"]').count() == 1  # sorting keeps the addresses
    boxes = page.locator("[data-compare]")
    ticked = boxes.evaluate_all("(boxes) => boxes.map((box) => box.checked)")
    assert sorted(ticked) == [False, True, True]
    boxes.nth(ticked.index(False)).check()
    assert page.locator("[data-compare]:checked").count() == 2


@pytest.mark.long
def test_other_pages_have_pictures(open_page, pages, pictured):
    """Every other page has a figure if it draws one, and the docs have its picture."""
    tables = ("reproduction", "replication")
    for kind in ("verification", "stress", "comparison", "neurons", *tables):
        page = open_page(pages[kind], height=1000)
        assert (page.locator("svg").count() > 0) == (kind not in tables)
        pictured(page, kind)


def test_long_names_fit_a_phone(open_page, pages, tmp_path):
    """A task whose name has no place to break does not widen a page."""
    for kind in ("report", "verification"):
        file = tmp_path / f"{kind}.html"
        html = Path(urlsplit(pages[kind]).path).read_text()
        file.write_text(html.replace("sorting", "sorting_" * 12).replace("adding", "adding_" * 12))
        page = open_page(file.as_uri(), width=400)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_large_model_is_drawn(open_page, tmp_path, pictured):
    """Of the cells of 80 layers x 128 heads the last one can be clicked: none lies over it."""
    ranking = tuple(
        RankedComponent(f"L{layer}H{head}", layer, head, -0.4 if (layer * head) % 97 == 1 else 0.0)
        for layer in range(80)
        for head in range(128)
    )
    file = tmp_path / "large.html"
    model = ModelInfo("large", "f", "LlamaForCausalLM", 80, 128, 8, "bfloat16")
    file.write_text(make_result(ranking=ranking, selected=("L40H64",), model=model).page())
    page = open_page(file.as_uri())
    pictured(page, "large-model")
    assert page.locator(".model [data-component]").count() == 80 * 128
    page.click('[data-component="L79H127"]')
    assert page.locator("[data-details] h2").inner_text() == "L79H127"
