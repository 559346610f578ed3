"""Models, heads, workspaces and sessions that the verbs share."""

from dataclasses import replace

import numpy as np
import pytest
from journals import totals

from broca import designs
from broca.errors import BadInput, NothingToLocalize
from broca.measurement import Plan
from broca.options import ExecutorOptions, JournalOptions, RunOptions, SourceOptions
from broca.results.files import encode
from broca.runs.progress import Stages
from broca.runs.session import IN_MEMORY, model_and_heads, open_run, open_workspace
from broca.runs.workspace import Workspace
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


def test_a_workspace_may_be_given_with_its_own_executor(tmp_path):
    """The workspace's executor is accepted and another one is refused."""
    limited = ExecutorOptions(batch_limit=60)
    with Workspace(executor=limited) as space:
        with open_workspace(JournalOptions(journal=space), limited) as shared:
            assert shared is space
        other = ExecutorOptions(batch_limit=61)
        with (
            pytest.raises(BadInput, match="`executor` belongs to the workspace"),
            open_workspace(JournalOptions(journal=space), other),
        ):
            pass
