"""Pages are self-contained, complete and safe with any text."""

import json
import re
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from results import samples
from simulated import toy_verification

from broca.results.atlas import AtlasTask, Selection
from broca.results.base import ModelInfo
from broca.results.localization import AdditivityInfo, RankedComponent, Repeat, SearchInfo
from broca.results.pages.drawing import level
from broca.results.pages.template import filled
from broca.results.reading import entry_of
from broca.results.verification import Sample, TaskFailures
from broca.searches import METHODS

EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>"
KEPT = {"kind", "kinds", "role", "response", "level", "components", "modes", "label", "relation"}
"""Fields whose values are words of broca."""


def planted(value):
    """Returns the value with the tag before every text, including keys of dictionaries."""
    if isinstance(value, str):
        return EVIL + value
    if is_dataclass(value):
        values = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        unchanged = {*KEPT, *(("before", "after") if isinstance(value, TaskFailures) else ())}
        return replace(value, **{k: planted(v) for k, v in values.items() if k not in unchanged})
    if isinstance(value, dict):
        return {planted(key): planted(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(planted(item) for item in value)
    return value


def text_of(result):
    """Returns the page of a result with single spaces."""
    return " ".join(result.page().split())


def shown_as_text(page):
    """Returns whether the tag is in the page as text and nowhere as a tag."""
    as_tag = "<script>alert" in page or "<img" in page
    return not as_tag and "&lt;script&gt;alert" in page


@pytest.mark.parametrize("make", samples.WITH_PAGES)
def test_a_page_needs_nothing_from_outside(make):
    """No script, style, image or font is fetched; a heading comes first, and every tag is text."""
    result = make()
    html = result.page()
    assert not re.search(r"<(?:script|img|iframe|link)[^>]*\s(?:src|href)\s*=", html)
    assert "@import" not in html
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", html)
    assert len(html.encode()) < 160_000
    assert "<title>broca" in html
    assert html.count("<h1>") == 1
    assert html.index("<h1>") < html.index("<table>")
    assert shown_as_text(planted(result).page())


TOY = samples.make_result()


@pytest.mark.parametrize(
    ("result", "stated", "absent"),
    [
        (TOY,
         "96.0|0.975|0.015|L1H2, L0H0|−0.200|−0.020|0.93|20,100|123,456|abc123|"
         "three prompts were cut|Settings and figures of cs-stratified|on the others",
         'id="stability"|other tasks need too|held-out masks'),
        (samples.make_result(
            repeats=(Repeat(1, ("L1H2", "L2H3"), "found", 900),),
            additivity=AdditivityInfo(0.613, 0.72, 200),
            ranking=(RankedComponent("L1H2", 1, 2, -0.42, (-0.5, -0.3), 1.0, 0.0001, 0.0042),)),
         "unshrunken|0.0042|overlap by 33 % on average|1 time more|"
         "Number of 2 searches, each on other items|61.3 %|0.72|200 held-out masks", "\0"),
        (samples.make_result(others=(), baseline={"adding": 0.9}, after={"adding": 0.1}),
         "0.900", "on the others"),
        (samples.make_result(shared=("L1H2",), search=SearchInfo("one-shot", {}, 0)),
         "as the other tasks need them too: L1H2|when the component alone is ablated",
         "specific|other components too|shrunken"),
        (samples.make_result(
            selected=(), abstained=True, reason="no single one lowers it",
            ranking=(RankedComponent("L0M", 0, None, -0.1),)),
         "No MLP blocks found|no single one lowers it", "with the set ablated"),
        (toy_verification(), "with the set ablated|figure-controls", "\0"),
        (replace(toy_verification(), heads=(), members=[
            replace(line, others={}) for line in toy_verification().members
        ]), "What each member contributes", "with the set ablated|figure-beside"),
        (samples.make_atlas(),
         "What 2 tasks need in toy|−0.11 [−0.20, −0.02]|cannot do the task|L0H2 L0H0|"
         "(chance)|1,600|123,456|abc123|three prompts were cut|0.52", "\0"),
        (samples.make_stress(),
         "same template|accuracy 0.90|chance 0.50|the last token|1 of 3", "\0"),
        (samples.make_comparison(("step1", "step2", "step3")),
         "Selected components over the models", "No difference is sure"),
    ],
)  # fmt: skip
def test_a_page_states_what_was_measured_and_no_more(result, stated, absent):
    """Scores, effects, intervals, settings, cost and notes; sections only of what is known.

    The verdict is the title, and the picture of components comes before any table.
    """
    page = text_of(result)
    assert [text for text in stated.split("|") if text not in page] == []
    assert [text for text in absent.split("|") if text in page] == []
    assert page.index("<h1>") < page.index("<svg") < page.index("<table>")
    if hasattr(result, "ranking"):
        picture = page[page.index("<svg") : page.index("</svg>")]
        drawn = re.findall('data-component="([^"]*)"', picture)
        assert sorted(drawn) == sorted(line.name for line in result.ranking)


def test_a_large_model_has_a_small_page():
    """The full ranking of 80 layers x 128 heads has a page under 1 MB, and so has its atlas."""
    random = np.random.default_rng(0)
    model = ModelInfo("large", "f", "LlamaForCausalLM", 80, 128, 8, "bfloat16")
    ranking = tuple(
        RankedComponent(f"L{n // 128}H{n % 128}", n // 128, n % 128, effect,
                        (effect - 0.1, effect + 0.1), 0.123456, 0.0123, 0.234567)
        for n, effect in enumerate(random.normal(0, 0.02, 80 * 128).tolist())
    )  # fmt: skip
    columns = tuple(line.name for line in ranking)
    report = samples.make_result(
        ranking=ranking, selected=columns[:1], model=model,
        off_target_effects=dict.fromkeys(columns, 0.01234),
    ).page()  # fmt: skip
    rows = tuple(map(tuple, random.normal(0, 0.1, (12, len(columns))).tolist()))
    tasks = [f"task{number}" for number in range(12)]
    atlas = replace(
        samples.make_atlas(), components=columns, effects=rows, low=rows, high=rows, model=model,
        tasks=tuple(AtlasTask(n, n, "acc", 1.0, 8, False, 0.0, 0.0) for n in tasks),
        selections=tuple(Selection(n, (), (), "nothing") for n in tasks), universal=(),
        clusters=(), task_clusters=(),
    ).page()  # fmt: skip
    for html in (report, atlas):
        assert html.count("data-component=") == 80 * 128
        assert len(html.encode()) < 1_000_000
    for text in ("The first 120 of 10,240 components", "No component hurts most tasks"):
        assert text in " ".join(atlas.split())


def test_outputs_stand_side_by_side():
    """A line has prompt, answer and both outputs; an empty output is shown as `(nothing)`."""
    texts = (("prompt 0", "x", "before 0", "y"), ("prompt 1", "x", "before 1", " \n"))
    html = replace(toy_verification(), samples=[Sample("adding", *text) for text in texts]).page()
    table = html[html.index('data-table="samples"') :].partition("</table>")[0]
    cells = re.findall(r">([^<]+)</t[hd]>", table)
    assert cells[-10:] == [*texts[0], "changed", *texts[1][:3], "(nothing)", "changed"]


def test_failures_are_listed_where_there_are_any():
    """Tasks without a degenerate output share a single line."""
    verification = toy_verification()
    calm = tuple(
        replace(line, before=dict.fromkeys(line.before, 0.0), after=dict.fromkeys(line.after, 0.0),
                excess=0.0)
        for line in verification.failures
    )  # fmt: skip
    html = text_of(replace(verification, failures=calm))
    assert f"No output of {len(calm)} tasks is degenerate" in html
    assert 'data-table="failures"' not in html
    bad = replace(verification, failures=(replace(calm[0], excess=0.5), *calm[1:])).page()
    table = bad[bad.index('data-table="failures"') :]
    assert table[: table.index("</table>")].count('<th scope="row"') == 1


def test_figures_of_a_verification_have_its_numbers():
    """The verdict comes first; scores are paired by task, and all sets share an axis in points."""
    verification = toy_verification()
    html = verification.page()
    assert html.index(f">{verification.verdict.label}</span>") < html.index("<svg")
    scores, controls, beside, members = verification.figures()
    rows, series = scores.chart.rows, scores.chart.series
    shown = [{rows[row]: score for row, score in line.points} for line in series]
    assert shown == [verification.baseline, verification.after]
    drawn, real = controls.chart.series
    kinds = verification.controls
    assert len(drawn.points) == sum(len(kind.sets) for kind in kinds)
    assert [value for _, value in real.points] == [100 * verification.drop for _ in kinds]
    for member in verification.members:
        assert members.chart.effects[member.head] == -member.alone.value
        row = beside.chart.values[beside.chart.rows.index(member.head)]
        for cost, shown in zip(member.others.values(), row, strict=True):
            assert shown == (0 if cost.low <= 0 <= cost.high else -100 * cost.value)


def test_the_pictures_of_an_atlas_have_every_effect():
    """The matrix frames selections; the views of the picture have the colours of every task."""
    atlas = samples.make_atlas()
    matrix, grid = (figure.chart for figure in atlas.figures())
    assert matrix.values == atlas.effects
    assert matrix.framed == {(0, 1)}  # adding needs L0H0, column 1
    able = [row for task, row in zip(atlas.tasks, atlas.effects, strict=True) if not task.at_chance]
    means = [sum(values) / len(able) for values in zip(*able, strict=True)]
    assert list(grid.effects.values()) == pytest.approx(means)
    views = json.loads(re.search(r"data-views>(.*?)</script>", atlas.page(), re.DOTALL).group(1))
    assert [view["name"] for view in views] == ["mean over tasks", "adding", "sorting"]
    assert views[0]["names"] == list(atlas.components)
    *_, hint, _ = replace(atlas, components=("L0M", "L1M", "L2M"), selections=()).terminal()
    assert "a screen of single MLP blocks" in hint
    steps = [ord(letter) - 81 for letter in views[1]["steps"]]
    assert steps == [level(effect, grid.full) for effect in atlas.effects[0]]


def test_a_comparison_says_what_changed():
    """The surest differences come first; many models have curves, and no change has a line."""
    comparison = samples.make_comparison()
    page = comparison.page()
    table = page[page.index('data-table="changes"') :]
    assert re.findall(r'<th scope="row"[^>]*>(L\dH\d)', table) == ["L0H0", "L1H1", "L1H0", "L0H1"]
    assert table.count('class="strong"') == 1
    assert "Selected components over the models" not in page
    three = samples.make_comparison(("step1", "step2", "step3"))
    assert [figure.name for figure in three.figures()] == ["components", "components-1", "curves"]
    same = tuple(replace(line, q=(1.0,) * len(line.q), changed=()) for line in
                 comparison.differences)  # fmt: skip
    html = text_of(replace(comparison, differences=same))
    assert "No difference is sure: the least q-value is 1." in html
    assert html.index("<details>") < html.index('data-table="changes"')


def test_a_stress_test_shows_every_measure():
    """Transfer and necessity are drawn; what was not measured is blank."""
    stress = samples.make_stress()
    assert re.search(r">noise</th><td[^>]*>[^<]+</td><td[^>]*></td>", stress.page())  # no copying
    transfer, necessity = (figure.chart for figure in stress.figures())
    assert transfer.rows == ("same template", "noise")
    assert [len(series.points) for series in transfer.series] == [1, 1]
    assert len(necessity.rows) == len(stress.necessity)


def test_located_neurons_lie_in_their_layers():
    """Every neuron is drawn, with its score as a loss."""
    neuron_set = samples.make_neurons()
    html = neuron_set.page()
    for neuron in neuron_set.selected:
        assert f'data-component="{neuron.name}"' in html
    effects = {neuron.name: -neuron.score for neuron in neuron_set.selected}
    assert neuron_set.plot().chart.effects == effects


def test_an_index_states_what_each_result_found():
    """A run has its headline and drop; one that found nothing, and another kind, have no drop."""
    nothing = samples.make_result(selected=(), abstained=True, reason="no harm")
    atlas = samples.make_atlas()
    run, empty, other = (
        entry_of(result, name=EVIL, page=f'x"{EVIL}', date="") for result in (TOY, nothing, atlas)
    )
    assert (run["specific"], run["finding"]) == (None, f"{TOY.headline}.")
    assert (empty["specific"], empty["scores"]) == (None, {})
    assert (other["specific"], other["finding"]) == (None, atlas.summary()[0])
    html = filled("index", entries=[run, empty, other], notes=[EVIL])
    assert "<script>alert" not in html
    assert 'href="x&#34;&lt;' in html


@pytest.mark.parametrize("method", METHODS)
def test_a_report_says_what_the_effect_of_its_method_is(method):
    """Every method of the package has its sentence."""
    assert "The effect is " in samples.make_result(search=SearchInfo(method, {}, 0)).page()
