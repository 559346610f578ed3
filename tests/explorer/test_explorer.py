"""The explorer behind the live page and its subject, called without a browser."""

import json
import re
from types import SimpleNamespace

import pytest
from results.samples import make_atlas, make_result, make_stress

from broca.errors import BadInput, BrocaError, UnknownName
from broca.explorer import Explorer, ExplorerSubject


def refused(*_, **__):
    """Stands in for a verb that no test may call."""
    raise AssertionError


@pytest.fixture(scope="module")
def explorer(planted):
    """An explorer on the planted model, with the selection of a run."""
    subject = ExplorerSubject(
        "/somewhere/planted", {"needed": ("L0H1",)}, {"L0H1": -0.5}, "effect", ("sorting",)
    )
    with Explorer(planted, subject, verify=refused, export=refused) as page_explorer:
        yield page_explorer


def test_the_page_has_every_component(explorer, planted):
    """The page holds each component once, embeds the run's data and loads no other file."""
    page = explorer.page()
    for name in planted.components.names:
        assert page.count(f'data-component="{name}"') == 1
    assert not re.search(r"<(?:script|img|iframe|link)[^>]*\s(?:src|href)\s*=", page)
    about = json.loads(re.search(r'id="about">(.*?)</script>', page, re.DOTALL).group(1))
    assert about["sets"] == {"needed": ["L0H1"]}
    assert about["effects"] == {"L0H1": -0.5}


def test_names_are_read_in_any_form(explorer):
    """Names joined by plus, commas or spaces are read; unknown names and lists are refused."""
    assert explorer.named("L0H1, L1H2 L2H0") == ["L0H1", "L1H2", "L2H0"]
    assert explorer.named("L0H1+L1H2") == ["L0H1", "L1H2"]
    assert explorer.named("  ") == []
    with pytest.raises(UnknownName):
        explorer.named("L0H99")
    with pytest.raises(BrocaError, match="published"):
        explorer.named("published:nothing")


def test_bad_questions_are_refused(explorer):
    """An empty or long prompt, a gate out of range and unknown components or pages are refused."""
    with pytest.raises(BadInput, match="prompt is empty"):
        explorer.answer(" ", [])
    with pytest.raises(BadInput, match="tokens, and the model has room"):
        explorer.answer("sort a b =" * 5000, [])
    with pytest.raises(BadInput, match="between 0 and 2"):
        explorer.score("sorting", [], scale=3.0)
    with pytest.raises(UnknownName):
        explorer.answer("sort", ["L9H9"])
    with pytest.raises(BadInput, match="verification 1 is not known"):
        explorer.verification_page(1)
    for number in (0, 1, -1):
        with pytest.raises(BadInput, match=f"export {number} is not known"):
            explorer.exported(number)


def test_a_set_of_another_model_is_refused(planted):
    """A set with components that the model lacks is refused when the explorer is made."""
    subject = ExplorerSubject("planted", {"needed": ("L77H1",)})
    with pytest.raises(UnknownName):
        Explorer(planted, subject, verify=refused, export=refused)


def test_the_state_says_what_is_going_on(explorer):
    """An idle explorer reports nothing written, queued, measured or waiting."""
    assert explorer.status() == {"writing": 0, "queued": 0, "measuring": "", "waiting": 0}


def test_a_chat_template_is_put_around_the_prompt(explorer, planted, monkeypatch):
    """A prompt is put into the tokenizer's chat template, unless `chat` is False."""
    template = "{% for message in messages %}sort {{ message.content }} ={% endfor %}"
    monkeypatch.setattr(planted.tokenizer, "chat_template", template)
    assert explorer.describe()["chats"]
    plain = list(explorer.answer("sort b a =", [], longest=4, chat=False))
    chat = list(explorer.answer("b a", [], longest=4))
    asked_plainly = list(explorer.answer("b a", [], longest=4, chat=False))
    texts = [[event.get("text") for event in events] for events in (plain, chat, asked_plainly)]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


@pytest.mark.parametrize("kept", [True, False])
def test_folders_of_exports_are_numbered_and_go_with_the_page(planted, tmp_path, kept):
    """They get the next free number, stay where the user keeps them, and are not left empty."""

    def export(model, folder, *, heads, scale, kind):
        if scale == 2:
            raise BadInput("no")
        (folder / "file").write_text("x")
        return SimpleNamespace(summary=lambda: ("done",))

    place = tmp_path if kept else None
    (tmp_path / "planted-heads-1").mkdir()
    with Explorer(
        planted, ExplorerSubject("planted"), verify=refused, export=export, exports=place
    ) as explorer:
        reply = explorer.export("heads", ["L0H1"])
        folder = explorer.exported(reply["export"])
        assert folder.name == reply["name"] == f"planted-heads-{1 + kept}"
        with pytest.raises(BadInput, match="no"):
            explorer.export("heads", ["L0H1"], scale=2)
        assert not (folder.parent / f"planted-heads-{2 + kept}").exists()
    assert folder.exists() is kept


def test_a_run_brings_its_set_effects_and_tasks(tmp_path):
    """A run brings its selection, effects and tasks, and its model by name."""
    result = make_result()
    result.save(tmp_path)
    subject = ExplorerSubject.of(tmp_path)
    assert subject.model == "toy"
    assert subject.sets == {"needed for adding": result.selected}
    assert subject.effects == {line.name: line.effect for line in result.ranking}
    assert subject.tasks == result.tasks


def test_a_verification_and_an_atlas_bring_their_sets(tmp_path):
    """A verification brings its set, and an atlas a set for each task with its own components."""
    result = make_result()
    (tmp_path / "v").mkdir()
    result.verification.save(tmp_path / "v")
    assert ExplorerSubject.of(tmp_path / "v").sets == {"verified on adding": result.selected}
    make_atlas().save(tmp_path / "a")
    assert ExplorerSubject.of(tmp_path / "a").sets == {"needed for adding": ("L0H0",)}


def test_other_results_are_refused(tmp_path):
    """A result that names no components is refused in one line."""
    make_stress().save(tmp_path)
    with pytest.raises(BadInput, match="is a stress test, which names no components"):
        ExplorerSubject.of(tmp_path)


def test_a_folder_is_named_by_its_last_part(tmp_path):
    """The page shows the last part of a folder's path alone."""
    (tmp_path / "config.json").write_text("{}")
    subject = ExplorerSubject.of(tmp_path)
    assert subject.model == str(tmp_path)
    assert subject.shown_name == tmp_path.name
