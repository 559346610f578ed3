"""The explorer behind the live page, called without a browser."""

import io
import json
import re
import zipfile
from types import SimpleNamespace

import pytest

from broca.errors import BadInput, BrocaError, UnknownName
from broca.explorer import Explorer, ExplorerSubject
from broca.explorer.explorer import events, write_zip


@pytest.fixture(scope="module")
def explorer(planted):
    """An explorer on the planted model, with the selection of a run."""
    subject = ExplorerSubject(
        "/somewhere/planted", {"needed": ("L0H1",)}, {"L0H1": -0.5}, "effect", ("sorting",)
    )
    with Explorer(planted, subject) as page_explorer:
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


def test_answers_come_as_lines(explorer):
    """Each line of an answer is a JSON object that names its row."""
    lines = list(events(explorer.answer("sort b a =", ["L0H1"], longest=4)))
    rows = {json.loads(line)["row"] for line in lines}
    assert rows == {0, 1}
    assert all(line.endswith("\n") for line in lines)


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
    with pytest.raises(UnknownName):
        Explorer(planted, ExplorerSubject("planted", {"needed": ("L77H1",)}))


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
    with Explorer(planted, ExplorerSubject("planted"), exports=place, export=export) as explorer:
        reply = explorer.export("heads", ["L0H1"])
        folder = explorer.exported(reply["export"])
        assert folder.name == reply["name"] == f"planted-heads-{1 + kept}"
        with pytest.raises(BadInput, match="no"):
            explorer.export("heads", ["L0H1"], scale=2)
        assert not (folder.parent / f"planted-heads-{2 + kept}").exists()
    assert folder.exists() is kept


class Unseekable(io.RawIOBase):
    """A stream that is written forwards alone, like a connection."""

    def __init__(self):
        self.content = b""

    def writable(self):
        """Returns True: the stream takes bytes."""
        return True

    def write(self, data):
        """Appends the bytes to the content."""
        self.content += bytes(data)
        return len(data)


def test_a_zip_is_written_to_what_cannot_go_back(tmp_path):
    """A zip holds all files under the folder's name and is written without seeking."""
    folder = tmp_path / "m-adapter-1"
    (folder / "in").mkdir(parents=True)
    (folder / "a.json").write_text("{}")
    (folder / "in" / "b.bin").write_bytes(bytes(range(256)))
    connection = Unseekable()
    write_zip(folder, connection)
    with zipfile.ZipFile(io.BytesIO(connection.content)) as archive:
        assert archive.namelist() == ["m-adapter-1/a.json", "m-adapter-1/in/b.bin"]
        assert archive.read("m-adapter-1/in/b.bin") == bytes(range(256))
