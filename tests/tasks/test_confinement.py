"""A task file runs no code from a template, does not run on, and fetches nothing by itself."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from harness_tasks import write_task

from broca.errors import BadInput, BrocaError, TaskUnusable
from broca.limits import time_limit
from broca.tasks import Catalog
from broca.tasks.examples import LONGEST, Task

DOCUMENTS = [{"question": f"{n} = {'a' * 40}!", "answer": str(n)} for n in range(12)]


@pytest.mark.parametrize(
    "template",
    [
        "{{{{ cycler.__init__.__globals__.os.system('touch {ran}') }}}}",
        "{{{{ ''.__class__.__mro__[1].__subclasses__() }}}}",
        "{{{{ self.__init__.__globals__.__builtins__.open('{ran}', 'w') }}}}",
        "{{% set f = '{{0.__class__.__init__}}' %}}{{{{ f.format(question)[99] }}}}",
    ],
)
@pytest.mark.parametrize("key", ["doc_to_text", "doc_to_target"])
def test_templates_reach_no_python(tmp_path, tokenizer, key, template):
    """A template that reaches for Python's own attributes is refused before it has them."""
    ran = tmp_path / "ran"
    write_task(tmp_path, "bad", DOCUMENTS, **{key: template.format(ran=ran)})
    with pytest.raises(TaskUnusable):
        Catalog(tmp_path).load("bad", tokenizer)
    assert not ran.exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"doc_to_text": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}"
                        "{% endfor %}{{question}}"},
        {"doc_to_text": "{{ question | regex_replace('(a+)+$', '') }}"},
    ],
)  # fmt: skip
def test_templates_have_a_time_limit(tmp_path, tokenizer, monkeypatch, settings):
    """Loops and patterns without an end are ended."""
    monkeypatch.setattr("broca.tasks.sandbox.SECONDS", 0.3)
    write_task(tmp_path, "endless", DOCUMENTS, **settings)
    with pytest.raises(BadInput, match=r"took more than 0\.3 s"):
        Catalog(tmp_path).load("endless", tokenizer)


def test_other_threads_have_a_time_limit():
    """A loop without an end is ended in a thread too, as on the live page."""

    def endless():
        with time_limit(0.2, "a template"):
            while True:
                time.sleep(0.01)

    with ThreadPoolExecutor(1) as pool, pytest.raises(BadInput, match=r"took more than 0\.2 s"):
        pool.submit(endless).result(timeout=60)


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/x.json", "zip://a::https://h/x.zip"])
def test_addresses_are_fetched_only_if_allowed(tmp_path, tokenizer, address):
    """An address in `data_files` is named; with `fetch_urls` it is asked for."""
    files = {"dataset_kwargs": {"data_files": {"test": [address]}}}
    write_task(tmp_path, "far", DOCUMENTS, **files)
    with pytest.raises(BadInput, match=r"'far' fetches '.*`fetch_urls`"):
        Catalog(tmp_path).load("far", tokenizer)
    with pytest.raises(BrocaError, match="could not be loaded"):
        Catalog(tmp_path, fetch_urls=True).load("far", tokenizer)


@pytest.mark.parametrize("asked", ["card", "data:"])
def test_a_card_of_a_folder_names_no_address(tmp_path, tokenizer, asked):
    """Data of a folder whose card names an address are not fetched either."""
    config = "configs:\n- config_name: default\n  data_files: http://127.0.0.1:9/x.json\n"
    card = tmp_path / "README.md"
    card.write_text(f"---\nlicense_link: https://a.example\n{config}---\nhttps://b.example\n")
    write_task(tmp_path, "card", DOCUMENTS, dataset_path=str(tmp_path), dataset_kwargs={})
    name = asked if asked == "card" else f"data:{tmp_path}"
    with pytest.raises(BadInput, match=r"fetches 'http://127\.0\.0\.1:9/x\.json'"):
        Catalog(tmp_path).load(name, tokenizer)


def test_media_of_rows_are_left_out(tmp_path, tokenizer):
    """A column of media is never decoded, which would fetch the addresses in its rows."""
    columns = "{name: prompt, dtype: string}, {name: answer, dtype: string}, {name: x, list: image}"
    (tmp_path / "README.md").write_text(f"---\ndataset_info: {{features: [{columns}]}}\n---\n")
    row = '{"prompt": "a", "answer": "b", "x": ["http://127.0.0.1:9/x"]}\n'
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text(row * 12)
    settings = {"dataset_path": str(tmp_path), "dataset_kwargs": {}, "doc_to_text": "{{prompt}}"}
    write_task(tmp_path, "media", **settings)
    for name in ("media", f"data:{tmp_path}"):
        assert len(Catalog(tmp_path).load(name, tokenizer).items) == 12


def test_giant_texts_and_odd_files_are_refused(tmp_path):
    """A line beyond the longest text and a file that is no regular one are one line."""
    long = tmp_path / "long.jsonl"
    long.write_text('{"prompt": "' + "a" * (LONGEST + 1) + '", "answer": "b"}\n')
    with pytest.raises(BadInput, match=r"line 1 of .* has 1,000,001 characters"):
        Task.from_examples(long)
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    with pytest.raises(BadInput, match="no regular file"):
        Task.from_examples(tmp_path / "zero.jsonl")
