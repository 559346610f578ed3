"""Models, heads, workspaces and sessions that the verbs share, and the model of a result."""

from dataclasses import replace

import numpy as np
import pytest
from journals import totals

from broca import designs
from broca.errors import BadInput, NothingToLocalize
from broca.measurement import Plan
from broca.models import GatedModel
from broca.options import ExecutorOptions, JournalOptions, RunOptions, SourceOptions
from broca.results.files import encode
from broca.runs.progress import Stages
from broca.runs.run import model_info
from broca.runs.session import IN_MEMORY, model_and_heads, open_run, open_workspace
from broca.runs.workspace import Workspace
from broca.testing import tiny_llama, tiny_tokenizer
from broca.verbs.localize import localize


def test_a_localization_stands_for_its_model_and_its_selection(planted, tmp_path):
    """A localization gives its model and selection, as an object or a folder; named heads win."""
    result = localize(
        planted, "mc_biology", others=[], method="one-shot", rows=500, items=5, k=2, verify=False
    )
    (tmp_path / "result.json").write_text(encode(result))
    assert result.selected
    for run in (result, tmp_path, str(tmp_path)):
        assert model_and_heads(run, None) == ("planted", result.selected)
    assert model_and_heads(result, ["L0H3"]) == ("planted", ["L0H3"])
    assert model_and_heads(planted, result) == (planted, result.selected)
    with pytest.raises(BadInput, match="selected nothing: name some in `heads`"):
        model_and_heads(replace(result, selected=()), None)
    with pytest.raises(BadInput, match="does not exist"):
        model_and_heads("planted", None)


def test_a_run_in_memory_says_that_it_cannot_be_resumed(tmp_path, caplog):
    """A run in memory logs a warning, unless the verb says that it has nothing to keep."""
    executor = ExecutorOptions()
    with open_workspace(JournalOptions(journal=tmp_path / "j.sqlite"), executor) as space:
        assert not space.in_memory
        with open_workspace(JournalOptions(journal=space), executor) as shared:
            assert shared is space
    assert caplog.messages == []
    with open_workspace(JournalOptions(), executor) as space:
        assert space.in_memory
    with open_workspace(JournalOptions(), executor, warns=False) as space:
        assert space.in_memory
    assert caplog.messages == [IN_MEMORY]


def test_a_run_measures_with_the_options_of_its_verb(tiny):
    """The run has the given model, workspace and options, and reports its stages."""
    stages = []
    options = RunOptions(source_options=SourceOptions(allow_code=True))
    with (
        Workspace() as space,
        open_run(
            tiny, options.within(space), Stages(lambda text, _: stages.append(text))
        ) as opened,
    ):
        assert opened.workspace is space
        assert opened.model is tiny
        assert opened.catalog is space.catalog(options.source_options)
        tasks = opened.claimed("addition", others=[], items=10, seed=0, limit=8)
        run = opened.on(tasks, settings={"seed": 0})
        assert run.tasks is tasks
        assert run.options.engine_options is options.engine_options
        plan = Plan.crossed(designs.intact(len(tiny.components)), np.array([0]))
        assert len(run.measure(plan).responses) == 1
        assert totals(space.journal)["rows"] == 1
        with pytest.raises(NothingToLocalize):  # random weights solve no task
            run.intact()
    assert list(dict.fromkeys(stages))[-2:] == [
        "building task 1 of 1: addition",
        "scoring the intact model",
    ]


def test_a_workspace_of_the_caller_stays_open():
    """A call with an open workspace closes no journal and cannot set another executor."""
    own = ExecutorOptions(batch_limit=60)
    with Workspace(executor=own) as shared:
        journal = shared.journal
        for executor in (own, ExecutorOptions()):
            with open_workspace(JournalOptions(journal=shared), executor) as used:
                assert used is shared
        assert shared.journal is journal
        assert totals(journal)["rows"] == 0
        for other in (ExecutorOptions(batch_limit=61), ExecutorOptions(executor="ray")):
            with (
                pytest.raises(BadInput, match="`executor` belongs to the workspace"),
                open_workspace(JournalOptions(journal=shared), other),
            ):
                pass


def test_a_workspace_of_one_call_is_closed_with_it(tmp_path):
    """The journal is closed after the call, so that the next call may open the same file."""
    path = tmp_path / "j.sqlite"
    for _ in range(2):
        with open_workspace(JournalOptions(journal=path), ExecutorOptions()) as used:
            assert used.journal.name == str(path)
    with pytest.raises(BadInput, match="`keep_outputs` must lie between 0 and 1"):
        Workspace(keep_outputs=1.5)


def test_tasks_of_one_source_have_one_catalog():
    """Sources with equal options share a catalog, so that their tasks are built once."""
    shared = Workspace()
    assert shared.catalog(SourceOptions()) is shared.catalog(SourceOptions())
    assert shared.catalog(SourceOptions()) is not shared.catalog(SourceOptions(allow_code=True))


def test_a_model_is_described_by_its_shape_and_its_weights(tiny):
    """Equal weights under another name have the same fingerprint; changed weights have another."""
    info = model_info(tiny)
    assert (info.name, info.layers, info.heads, info.kv_heads) == ("tiny", 2, 4, 2)
    assert (info.architecture, info.dtype) == ("LlamaForCausalLM", "float32")
    changed = tiny_llama()
    renamed = model_info(GatedModel.wrap(changed, tiny_tokenizer(), name="other"))
    assert replace(renamed, name="tiny") == info
    changed.lm_head.weight.data[0, 0] += 1
    again = GatedModel.wrap(changed, tiny_tokenizer(), name="tiny")
    assert model_info(again).fingerprint != info.fingerprint
