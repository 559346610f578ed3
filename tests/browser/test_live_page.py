"""The live page as a person uses it: switch off, ask, slide, score, verify, reload, two tabs."""

import json
import re
import zipfile
from urllib.parse import parse_qs, urlsplit

import pytest
from browser.test_pages import serious

import broca


@pytest.fixture(scope="module")
def live(run):
    """The live page of a run."""
    with broca.explore(run, tasks="sorting,capitals,reversing", port=0) as page:
        yield page


@pytest.fixture
def page(open_page, live):
    """It, opened, with its tasks."""
    page = open_page(live.url, height=1300)
    page.wait_for_selector("#chips[data-ready]")
    return page


def asked(page, prompt, *, longest=12):
    """Both answers to a prompt."""
    page.fill("#prompt", prompt)
    page.fill("#longest", str(longest))
    page.click("#send")
    page.wait_for_selector("#answer-0 .ended")
    page.wait_for_selector("#answer-1 .ended")
    texts = [page.locator(f"#answer-{row}").inner_text() for row in (0, 1)]
    return [text.rstrip(" ■…") for text in texts]


def chip(page, task):
    """The box of a task."""
    return page.locator(".chip").filter(has=page.locator(f"h3:text-is('{task}')"))


def state(page):
    """What the address carries."""
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).fragment).items()}


def test_everyone_can_use_it(page):
    """axe-core has no serious finding."""
    assert serious(page) == []


def test_switched_off_heads_change_the_answer(page, live, pictured):
    """Both answers side by side are the model's own; where they part is marked."""
    page.click('[data-component="L0H3"]')
    page.click('[data-component="L0H8"]')
    page.click('[data-component="L0H11"]')
    assert "3 of 48 off: L0H3, L0H8, L0H11" in page.locator("#off").inner_text()
    intact, ablated = asked(page, "sort q d a z =")
    model = broca.load("reference-small", device="cpu")
    assert intact.split() == model.generate("sort q d a z =", max_new_tokens=12).split()
    with model.ablated("L0H3+L0H8+L0H11"):
        assert ablated.split() == model.generate("sort q d a z =", max_new_tokens=12).split()
    assert intact != ablated
    assert "part at token" in page.locator("#parted").inner_text()
    assert page.locator(".parted").count() == 2
    page.locator("#answer-1 .token").first.click()
    assert "Next-token probabilities, token 1" in page.locator("#likely").inner_text()
    pictured(page, "live", full_page=False)


def test_a_drag_switches_a_row_and_undo_brings_it_back(page):
    """Keys do the same."""
    first, last = (page.locator(f'[data-component="L1H{head}"]').bounding_box() for head in (2, 6))
    page.mouse.move(first["x"] + 4, first["y"] + 4)
    page.mouse.down()
    page.mouse.move(last["x"] + 4, last["y"] + 4, steps=20)
    page.mouse.up()
    assert state(page)["off"] == "L1H2+L1H3+L1H4+L1H5+L1H6"
    page.click("#undo")
    assert "off" not in state(page)
    page.focus("#grid")
    for key in ("ArrowRight", "ArrowDown", "s", "ArrowUp", "Space"):
        page.keyboard.press(key)
    names = state(page)["off"].split("+")
    assert names == ["L1H3", *(f"L2H{head}" for head in range(12))]
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    assert "off" not in state(page)


def test_the_slider_scales_the_set(page):
    """At a gate of 1 both answers are the same."""
    page.fill("#names", "L0H3 L0H8 L0H11")
    page.press("#names", "Enter")
    page.locator("#off", has_text="3 of 48").wait_for()
    page.locator("#scale").fill("1")
    intact, scaled = asked(page, "sort q d a z =")
    assert intact == scaled
    page.locator("#scale").fill("0")
    intact, off = asked(page, "sort q d a z =")
    assert intact != off


def test_a_task_is_scored_and_what_adds_to_it_is_shown(page, live):
    """With an interval; colours change to the slopes."""
    page.click('[data-component="L0H11"]')
    box = chip(page, "sorting")
    box.get_by_text("Score", exact=True).click()
    box.locator(".score", has_text="points").wait_for()
    text = box.locator(".score").inner_text()
    expected = live.explorer.score("sorting", ["L0H11"])
    assert f"{expected['intact']:.3f} → {expected['score']:.3f}" in text
    page.click('[data-component="L0H3"]')
    assert "old" in box.locator(".score").get_attribute("class")  # it was another mask's
    before = page.locator('[data-component="L0H8"]').get_attribute("class")
    box.get_by_text("What adds here?").click()
    page.locator("#key", has_text="adds to sorting").wait_for()
    after = page.locator('[data-component="L0H8"]').get_attribute("class")
    assert re.match(r"[np]\d+", after)
    assert before is not None


@pytest.mark.long
def test_a_set_is_verified(page):
    """Its verdict is shown, and its page opens."""
    page.select_option("#sets", index=1)
    chip(page, "sorting").get_by_text("Verify this set").click()
    link = page.locator("#verdict a")
    link.wait_for(timeout=600_000)  # a machine may be busy
    with page.context.expect_page() as opened:
        link.click()
    assert "broca · verification" in opened.value.locator("nav").inner_text()


def test_the_link_carries_the_state(page, open_page):
    """Set, gate and prompt; another tab that opens it shows the same."""
    page.click('[data-component="L2H5"]')
    page.locator("#scale").fill("0.5")
    page.fill("#prompt", "sort b a =")
    page.locator("#prompt").blur()
    again = open_page(page.url)
    assert "1 of 48 at 0.5: L2H5" in again.locator("#off").inner_text()
    assert again.locator("#prompt").input_value() == "sort b a ="


def test_two_tabs_have_their_own_sets(page, open_page, live):
    """Asked at the same time, each gets the answers of its own set."""
    other = open_page(live.url)
    page.click('[data-component="L0H11"]')
    prompt = "sort q d a z ="
    for tab in (page, other):
        tab.fill("#prompt", prompt)
        tab.fill("#longest", "12")
    page.click("#send")
    other.click("#send")
    for tab in (page, other):
        tab.wait_for_selector("#answer-0 .ended")
        tab.wait_for_selector("#answer-1 .ended")
    ours, theirs = (tab.locator("#answer-1").inner_text() for tab in (page, other))
    assert theirs == other.locator("#answer-0").inner_text()  # nothing is off there
    events = list(live.explorer.answer(prompt, ["L0H11"], longest=12))
    alone = "".join(event.get("text", "") for event in events if event["row"] == 1)
    assert ours.rstrip(" ■…").split() == alone.split()


def test_a_bad_question_is_answered_in_one_line(page):
    """On the page; the next one is answered."""
    page.fill("#prompt", "")
    page.click("#send")
    page.locator("#error", has_text="prompt is empty").wait_for()
    assert asked(page, "sort b a =")[0]


def test_the_set_is_exported(page):
    """Checked, and downloaded as a zip file; what cannot be exported is said in one line."""
    page.click("#export")
    page.locator("#error", has_text="no components are named").wait_for()
    page.click('[data-component="L2H5"]')
    page.click("#export")
    link = page.locator("#exported a")
    link.wait_for(timeout=120_000)
    assert "32 of 32 continuations as broca's" in page.locator("#exported").inner_text()
    with page.expect_download() as download:
        link.click()
    name = download.value.suggested_filename.removesuffix(".zip")
    assert name.startswith("reference-small-adapter-")
    with zipfile.ZipFile(download.value.path()) as archive:
        assert f"{name}/adapter_model.safetensors" in archive.namelist()


def test_the_set_is_saved(page):
    """As JSON, with its model."""
    page.click('[data-component="L2H5"]')
    with page.expect_download() as download:
        page.click("#json")
    assert json.loads(download.value.path().read_text()) == {
        "model": "reference-small", "components": ["L2H5"], "scale": 0,
    }  # fmt: skip
