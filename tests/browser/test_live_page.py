"""The live page in a browser: ablation, answers, scale, scores, verification, links."""

import json
import re
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
    """The live page, opened in the browser, with its tasks loaded."""
    page = open_page(live.url, height=1300)
    page.wait_for_selector("#chips[data-ready]")
    return page


def answers_of(page, prompt, *, longest=12):
    """Sends a prompt and returns the intact and the ablated answer."""
    page.fill("#prompt", prompt)
    page.fill("#longest", str(longest))
    page.click("#send")
    page.wait_for_selector("#answer-0 .ended")
    page.wait_for_selector("#answer-1 .ended")
    texts = [page.locator(f"#answer-{row}").inner_text() for row in (0, 1)]
    return [text.rstrip(" ■…") for text in texts]


def chip(page, task):
    """Returns the box of a task."""
    return page.locator(".chip").filter(has=page.locator(f"h3:text-is('{task}')"))


def state(page):
    """Returns the state that the address holds."""
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).fragment).items()}


def test_everyone_can_use_it(page):
    """axe-core finds no serious or critical violation on the live page."""
    assert serious(page) == []


def test_switched_off_heads_change_the_answer(page, live, pictured):
    """Both answers equal those of `generate`, and the first different token is marked."""
    page.click('[data-component="L0H3"]')
    page.click('[data-component="L0H8"]')
    page.click('[data-component="L0H11"]')
    assert "3 of 48 off: L0H3, L0H8, L0H11" in page.locator("#off").inner_text()
    intact, ablated = answers_of(page, "sort q d a z =")
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
    """A drag and keys ablate the heads of a row; undo restores them."""
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
    """The answers are equal at a scale of 1 and differ at a scale of 0."""
    page.fill("#names", "L0H3 L0H8 L0H11")
    page.press("#names", "Enter")
    page.locator("#off", has_text="3 of 48").wait_for()
    page.locator("#scale").fill("1")
    intact, scaled = answers_of(page, "sort q d a z =")
    assert intact == scaled
    page.locator("#scale").fill("0")
    intact, off = answers_of(page, "sort q d a z =")
    assert intact != off


def test_a_task_is_scored_and_what_adds_to_it_is_shown(page, live):
    """The score is that of the explorer; the cells take the colours of the gradients."""
    page.click('[data-component="L0H11"]')
    box = chip(page, "sorting")
    box.get_by_text("Score", exact=True).click()
    box.locator(".score", has_text="points").wait_for()
    text = box.locator(".score").inner_text()
    expected = live.explorer.score("sorting", ["L0H11"])
    assert f"{expected['intact']:.3f} → {expected['score']:.3f}" in text
    page.click('[data-component="L0H3"]')
    assert "old" in box.locator(".score").get_attribute("class")  # the score is of the set before
    before = page.locator('[data-component="L0H8"]').get_attribute("class")
    box.get_by_text("What adds here?").click()
    page.locator("#key", has_text="adds to sorting").wait_for()
    after = page.locator('[data-component="L0H8"]').get_attribute("class")
    assert re.match(r"[np]\d+", after)
    assert before is not None


@pytest.mark.long
def test_a_set_is_verified(page):
    """Verifying a set gives a verdict with a link that opens the verification's page."""
    page.select_option("#sets", index=1)
    chip(page, "sorting").get_by_text("Verify this set").click()
    link = page.locator("#verdict a")
    link.wait_for(timeout=600_000)  # the machine may be busy
    with page.context.expect_page() as opened:
        link.click()
    assert "broca · verification" in opened.value.locator("nav").inner_text()


def test_the_link_carries_the_state(page, open_page):
    """The address holds set, scale and prompt, and another tab that opens it shows them."""
    page.click('[data-component="L2H5"]')
    page.locator("#scale").fill("0.5")
    page.fill("#prompt", "sort b a =")
    page.locator("#prompt").blur()
    again = open_page(page.url)
    assert "1 of 48 at 0.5: L2H5" in again.locator("#off").inner_text()
    assert again.locator("#prompt").input_value() == "sort b a ="


def test_two_tabs_have_their_own_sets(page, open_page, live):
    """Two tabs that send a prompt at the same time get the answers of their own sets."""
    other_tab = open_page(live.url)
    page.click('[data-component="L0H11"]')
    prompt = "sort q d a z ="
    for tab in (page, other_tab):
        tab.fill("#prompt", prompt)
        tab.fill("#longest", "12")
    page.click("#send")
    other_tab.click("#send")
    for tab in (page, other_tab):
        tab.wait_for_selector("#answer-0 .ended")
        tab.wait_for_selector("#answer-1 .ended")
    answer, intact = (tab.locator("#answer-1").inner_text() for tab in (page, other_tab))
    assert intact == other_tab.locator("#answer-0").inner_text()  # the other tab ablates nothing
    events = list(live.explorer.answer(prompt, ["L0H11"], longest=12))
    alone = "".join(event.get("text", "") for event in events if event["row"] == 1)
    assert answer.rstrip(" ■…").split() == alone.split()


def test_an_empty_prompt_is_refused(page):
    """An empty prompt is refused in one line on the page, and the next prompt is answered."""
    page.fill("#prompt", "")
    page.click("#send")
    page.locator("#error", has_text="prompt is empty").wait_for()
    assert answers_of(page, "sort b a =")[0]


def test_the_set_is_saved(page):
    """The set is downloaded as JSON with its model and scale."""
    page.click('[data-component="L2H5"]')
    with page.expect_download() as download:
        page.click("#json")
    assert json.loads(download.value.path().read_text()) == {
        "model": "reference-small", "components": ["L2H5"], "scale": 0,
    }  # fmt: skip
