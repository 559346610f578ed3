"""The live page in a browser: ablation, answers, scale, scores, verification, links."""

import json
import re
import time
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from browser.test_pages import serious
from tiny import tiny_gated

import broca


@pytest.fixture(scope="module")
def live(run):
    """The live page of a run."""
    with broca.explore(run, tasks="sorting,capitals,reversing", port=0) as page:
        yield page


@pytest.fixture
def page(open_page, live):
    """The live page, opened in the browser with an empty set, with its tasks loaded."""
    page = open_page(f"{live.url}#off=", width=1200)
    page.wait_for_selector("#tasks[data-ready]")
    page.wait_for_selector("#answer-1 .ended")
    return page


def answers_of(page, prompt, *, longest=12):
    """Sends a prompt and returns the intact and the ablated answer."""
    page.fill("#prompt", prompt)
    page.fill("#longest", str(longest))
    page.click("#send")
    return newest(page)


def newest(page):
    """Returns both answers once they are those of the set and the prompt."""
    page.wait_for_selector("#answer-1:not(.old):has(.ended)")
    page.wait_for_selector("#answer-0:not(.old):has(.ended)")
    texts = [page.locator(f"#answer-{number}").inner_text() for number in (0, 1)]
    return [text.rstrip(" ■…") for text in texts]


def row(page, task, state=""):
    """Returns the line of a task, when its bar has a state such as `:not(.old)`."""
    return page.locator(f'.task[data-task="{task}"]:has(.meter{state})')


def state(page):
    """Returns the state that the address holds."""
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).fragment).items()}


def test_everyone_can_use_it(page):
    """axe-core finds no serious or critical violation on the live page."""
    assert serious(page) == []


def test_it_opens_with_the_runs_set_and_answers_an_item(open_page, live, pictured):
    """One screen has the run's set, a real item answered, and bars before their random sets."""
    page = open_page(live.url, width=1200)
    (needed,) = live.explorer.subject.sets.values()
    example = live.explorer.example("sorting")
    page.locator("#target", has_text="Right answer").wait_for()
    assert page.locator("#prompt").input_value() == example["prompt"]
    page.locator("#ablated-title", has_text=f"Without {len(needed)} components").wait_for()
    assert set(state(page)["off"].split("+")) == set(needed)
    intact, ablated = newest(page)
    assert intact.split() == example["target"].split()
    assert intact != ablated
    assert "The run's verdict: specific" in page.locator("#known:not(.old)").inner_text()
    for task in ("sorting", "capitals", "reversing"):
        row(page, task).locator(".dot").first.wait_for()
    scores = live.explorer.random_scores("sorting", needed)
    assert row(page, "sorting").locator(".dot").count() == len(scores)
    for part in ("#known", "#grid", "#answer-1", '.task[data-task="reversing"]', "#verify"):
        box = page.locator(part).bounding_box()
        assert box["y"] + box["height"] <= 900
    pictured(page, "live", full_page=False)


def test_a_click_moves_the_answer_and_the_bars(page, live):
    """A change is answered and scored without being asked; until then, what is old is grey."""
    answers_of(page, "sort q d a z =")
    waiting = []
    page.route("**/api/answer", lambda route: waiting.append(route))
    with page.expect_request("**/api/answer"):
        page.click('[data-component="L0H11"]')
    page.wait_for_selector("#answer-1.old")
    assert "(before the change)" in page.locator("#ablated-title").inner_text()
    assert "L0H11" not in page.locator("#ablated-title").inner_text()
    waiting[0].continue_()
    page.unroute("**/api/answer")
    page.click('[data-component="L0H3"]')
    page.click('[data-component="L0H8"]')
    page.locator("#ablated-title", has_text="Without L0H11, L0H3, L0H8").wait_for()
    row(page, "sorting", ":not(.old)").wait_for()
    expected = live.explorer.score("sorting", ["L0H3", "L0H8", "L0H11"])
    figures = row(page, "sorting").locator(".score").inner_text()
    assert f"{expected['intact']:.2f} → {expected['score']:.2f}" in figures


def test_a_slow_model_is_asked(page):
    """Where answers take long, a change greys what is old, and a button scores the set."""
    page.wait_for_selector(".meter.old", state="detached", timeout=60_000)
    page.route(re.compile("api/(answer|score)"), lambda route: (time.sleep(1.6), route.continue_()))
    page.click('[data-component="L0H3"]')
    page.locator("#measure").wait_for(timeout=60_000)
    page.click('[data-component="L0H11"]')
    page.wait_for_selector("#answer-1.old")
    assert page.locator(".meter.old").count() == page.locator(".meter").count()
    page.unroute_all()
    page.click("#measure")
    row(page, "sorting", ":not(.old)").wait_for()
    assert "old" in page.locator("#answer-1").get_attribute("class")


def test_a_model_without_tasks_offers_its_own_text(open_page, planted, tmp_path):
    """Perplexity and divergence are the bars; a file of examples becomes a task."""
    file = tmp_path / "pairs.jsonl"
    file.write_text('{"prompt": 1}')
    model = replace(planted, source=str(tmp_path))  # tasks come with shipped models
    with broca.explore(model, port=0) as served:
        page = open_page(served.url, width=1200)
        page.locator("#no-tasks", has_text="No task came with").wait_for()
        assert page.locator(".task").count() == 2
        page.click('[data-component="L0H3"]')
        page.locator("#measure").evaluate("(button) => button.click()")  # a busy machine waits
        row(page, "divergence", ":not(.old)").wait_for()
        nats = served.explorer.text(["L0H3"])["divergence"]
        assert f"{nats:.2f} nats" in row(page, "divergence").locator(".score").inner_text()
        page.set_input_files("#file", file)
        page.locator("#file-error", has_text="prompt").wait_for()
        lines = (f'{{"prompt": "sort {a} =", "answer": " {a}"}}\n' for a in "abcdefghij")
        file.write_text("".join(lines))
        page.set_input_files("#file", file)
        page.locator("#target", has_text="Right answer").wait_for()
        assert row(page, "pairs.jsonl").count() == 1
        assert page.locator("#prompt").input_value().startswith("sort ")
        page.close()


@pytest.mark.parametrize(
    ("layers", "heads"), [(30, 9), pytest.param(80, 128, marks=pytest.mark.long)]
)
def test_grid_and_answers_share_a_screen(open_page, layers, heads):
    """Both answers stand beside the grid, whatever its shape."""
    model = tiny_gated(layers=layers, heads=heads, kv_heads=1)
    with broca.explore(model, port=0) as served:
        page = open_page(served.url, width=1200)
        page.locator("#no-tasks", has_text="No task came with").wait_for()
        grid, first, second = (
            page.locator(name).bounding_box() for name in ("#grid", "#answer-0", "#answer-1")
        )
        assert grid["x"] + grid["width"] <= min(first["x"], second["x"])
        assert max(first["y"] + first["height"], second["y"] + second["height"]) <= 900
        page.close()


def test_switched_off_heads_change_the_answer(page):
    """Both answers equal those of `generate`, and the first different token is marked."""
    for head in (3, 8, 11):
        page.click(f'[data-component="L0H{head}"]')
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
    assert state(page)["off"].split("+") == ["L1H3", *(f"L2H{head}" for head in range(12))]
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
    intact, off = newest(page)
    assert intact != off
    page.click("#undo")
    assert page.locator("#scale").input_value() == "1"
    assert newest(page) == [intact, intact]
    page.fill("#names", "L0H99")
    page.press("#names", "Enter")
    page.locator("#names-error", has_text="L0H99").wait_for()


def test_what_adds_to_a_task_is_shown(page):
    """The cells take the colours of the gradients of the chosen task."""
    row(page, "capitals").locator("button").click()
    page.locator("#slopes", has_text="capitals").click()
    page.locator("#key", has_text="adds to capitals").wait_for()
    assert re.match(r"[np]\d+", page.locator('[data-component="L0H8"]').get_attribute("class"))


@pytest.mark.long
def test_a_set_is_verified(page):
    """Verifying a set gives a verdict with a link that opens the verification's page."""
    page.select_option("#sets", index=1)
    page.click("#verify")
    page.locator("#verdict", has_text="Verifying: ").wait_for(timeout=60_000)
    link = page.locator("#verdict a")
    link.wait_for(timeout=600_000)  # the machine may be busy
    with page.context.expect_page() as opened:
        link.click()
    assert "broca · verification" in opened.value.locator("nav").inner_text()
    page.click('[data-component="L3H3"]')
    page.wait_for_selector("#verdict.old")


def test_the_link_carries_the_state(page, open_page):
    """The address holds set, scale and prompt; another tab, or this one, shows what a link says."""
    page.click('[data-component="L2H5"]')
    page.locator("#scale").fill("0.5")
    page.fill("#prompt", "sort b a =")
    page.locator("#prompt").blur()
    again = open_page(page.url)
    assert "1 of 48 at 0.5: L2H5" in again.locator("#off").inner_text()
    assert again.locator("#prompt").input_value() == "sort b a ="
    again.evaluate("location.hash = 'off=L0H1%2BL9M&scale=7&task=none'")
    again.locator("#off", has_text="1 of 48 at 2: L0H1").wait_for()
    assert again.locator("#names-error").inner_text() == "Not on this page, and left out: L9M."
    again.locator("#tasks-error", has_text="The link's task none is not on this page.").wait_for()


def test_two_tabs_have_their_own_sets(page, open_page, live):
    """Two tabs that send a prompt at the same time get the answers of their own sets."""
    other_tab = open_page(f"{live.url}#off=")
    page.click('[data-component="L0H11"]')
    prompt = "sort q d a z ="
    for tab in (page, other_tab):
        tab.fill("#prompt", prompt)
        tab.fill("#longest", "12")
    page.click("#send")
    other_tab.click("#send")
    (_, answer), (intact, same) = newest(page), newest(other_tab)
    assert intact == same  # the other tab ablates nothing
    events = list(live.explorer.answer(prompt, ["L0H11"], longest=12))
    alone = "".join(event.get("text", "") for event in events if event["row"] == 1)
    assert answer.split() == alone.split()


def test_empty_and_long_prompts_are_refused(page):
    """Such a prompt is refused in one line on the page, and the next prompt is answered."""
    for prompt, message in (("", "prompt is empty"), ("sort" * 2**17, "larger than the 256 KiB")):
        page.fill("#prompt", prompt)
        page.click("#send")
        page.locator("#error", has_text=message).wait_for()
    assert answers_of(page, "sort b a =")[0]


def test_the_set_is_saved(page):
    """The set is downloaded as JSON with its model and scale."""
    page.click('[data-component="L2H5"]')
    page.click("summary")
    with page.expect_download() as download:
        page.click("#json")
    assert json.loads(download.value.path().read_text()) == {
        "model": "reference-small", "components": ["L2H5"], "scale": 0,
    }  # fmt: skip


def test_the_command_names_the_set_its_gate_and_the_task(page):
    """The copied command verifies the chosen task at the gate of the page."""
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    row(page, "capitals").locator("button").click()
    page.click('[data-component="L2H5"]')
    page.locator("#scale").fill("0.5")
    page.click("summary")
    page.click("#command")
    assert page.evaluate("window.copied") == (
        "broca verify reference-small --task capitals --heads L2H5 --scale 0.5 --components heads"
    )
