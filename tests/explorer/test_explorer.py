"""The explorer behind the live page and its subject, called without a browser."""

import json
import re
from contextlib import closing
from dataclasses import replace

import pytest
from results.samples import make_atlas, make_result, make_stress
from simulated import toy_verification
from tokenizers.processors import TemplateProcessing

from broca.errors import BadInput, BrocaError, UnknownName
from broca.explorer.explorer import Explorer, ExplorerSubject
from broca.options import RunOptions
from broca.results.base import ZEROED, AblationInfo, ModelInfo


def test_the_page_has_every_component(explorer, planted):
    """The page holds each component once, embeds the run's data and loads no other file."""
    page = explorer.page()
    for name in planted.components.names:
        assert page.count(f'data-component="{name}"') == 1
    assert not re.search(r"<(?:script|img|iframe|link)[^>]*\s(?:src|href)\s*=", page)
    about = json.loads(re.search(r'id="about">(.*?)</script>', page, re.DOTALL).group(1))
    assert about["sets"] == {"needed": ["L0H1"]}
    assert about["effects"] == {"L0H1": -0.5}


@pytest.mark.parametrize("text", ["L0H1, L1H2 L2H0", "L0H1+L1H2+L2H0", " "])
def test_names_are_read_in_any_form(explorer, text):
    """Names are joined by plus, commas or spaces."""
    assert explorer.named(text) == ["L0H1", "L1H2", "L2H0"][: 3 * bool(text.strip())]


@pytest.mark.parametrize(
    ("question", "error", "message"),
    [
        (lambda page: page.answer(" ", []), BadInput, "prompt is empty"),
        (lambda page: page.answer("sort a b =" * 5000, []), BadInput, "the model has room"),
        *(
            (lambda page, n=n: page.answer("sort a =", [], longest=n), BadInput, "between 1 and")
            for n in (-1, 0, 257, float("inf"), float("nan"))
        ),
        (lambda page: page.score("sorting", [], scale=3.0), BadInput, "between 0 and 2"),
        (lambda page: page.answer("sort", ["L9H9"]), UnknownName, "L9H9"),
        (lambda page: page.named("L0H99"), UnknownName, "L0H99"),
        (lambda page: page.named("published:nothing"), BrocaError, "published"),
        (lambda page: page.verification_page(1), BadInput, "verification 1 is not known"),
    ],
)
def test_bad_questions_are_refused(explorer, question, error, message):
    """Prompts, gates, names and numbers of pages that do not exist are refused in one line."""
    with pytest.raises(error, match=message):
        question(explorer)


def test_a_verification_shows_no_path(planted, tmp_path):
    """The page of a verification names a model in a folder by the folder alone."""
    found = toy_verification()
    found = replace(found, model=replace(found.model, name=str(tmp_path)))
    subject = ExplorerSubject(str(tmp_path), tasks=("sorting",))
    with closing(Explorer(planted, subject, RunOptions(), verify=lambda *_, **__: found)) as page:
        number = page.verify("sorting", ["L0H0"])["page"]
        assert str(tmp_path) not in page.verification_page(number)


def test_a_set_of_another_model_is_refused(planted):
    """Components that the model lacks, and weights of another model, are refused at the start."""
    subject = ExplorerSubject("planted", {"needed": ("L77H1",)})
    with pytest.raises(UnknownName):
        Explorer(planted, subject, RunOptions(), verify=None)
    other = ExplorerSubject("planted", measured=ModelInfo("planted", "abc"))
    with pytest.raises(BadInput, match="'planted' are not those of the run"):
        Explorer(planted, other, RunOptions(), verify=None)


def test_a_chat_template_is_put_around_the_prompt(explorer, planted, monkeypatch):
    """A prompt is put into the chat template, unless `chat` is False; it has one first token."""
    template = "{% for message in messages %}sort {{ message.content }} ={% endfor %}"
    monkeypatch.setattr(planted.tokenizer, "chat_template", template)
    assert explorer.describe()["chats"]
    plain = list(explorer.answer("sort b a =", [], longest=4, chat=False))
    chat = list(explorer.answer("b a", [], longest=4))
    asked_plainly = list(explorer.answer("b a", [], longest=4, chat=False))
    texts = [[event.get("text") for event in events] for events in (plain, chat, asked_plainly)]
    assert texts[0] == texts[1]
    generated = planted.generate("b a", max_new_tokens=4, chat=True)
    assert generated == planted.generate("sort b a =", max_new_tokens=4)
    assert texts[0] != texts[2]
    bos = TemplateProcessing("<bos> $A", special_tokens=[("<bos>", planted.tokenizer.bos_token_id)])
    monkeypatch.setattr(planted.tokenizer.backend_tokenizer, "post_processor", bos)
    asked = [explorer.answer(text, [], chat=False).prompt for text in ("b a", "<bos>b a")]
    assert asked[0] == asked[1]


def test_results_bring_their_model_sets_effects_and_tasks(tmp_path):
    """A localization, a verification and an atlas have sets; a model's folder has a short name."""
    result = make_result()
    for name, made in (
        ("r", result), ("v", result.verification), ("a", make_atlas()), ("s", make_stress()),
    ):  # fmt: skip
        (tmp_path / name).mkdir()
        made.save(tmp_path / name)
    effects = {line.name: line.effect for line in result.ranking}
    subject = ExplorerSubject.of(tmp_path / "r")
    assert (subject.model, subject.effects, subject.tasks) == ("toy", effects, result.tasks)
    assert subject.sets == {"selected for adding": result.selected}  # nothing was verified
    assert ExplorerSubject.of(tmp_path / "v").sets == {"verified on adding": result.selected}
    assert ExplorerSubject.of(tmp_path / "a").sets == {"needed for adding": ("L0H0",)}
    verified = toy_verification()
    for ablation, shown in ((ZEROED, True), (AblationInfo("mean", 0.0), False)):
        replace(verified, ablation=ablation).save(tmp_path / "v")
        assert bool(ExplorerSubject.of(tmp_path / "v").verdict) == shown  # the page ablates to zero
    with pytest.raises(BadInput, match="is a stress test, which names no components"):
        ExplorerSubject.of(tmp_path / "s")
    (tmp_path / "config.json").write_text("{}")
    subject = ExplorerSubject.of(tmp_path)
    assert (subject.model, subject.shown_name) == (str(tmp_path), tmp_path.name)
