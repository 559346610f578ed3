"""Fixtures shared by all tests."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import tempfile
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

# tests run in parallel processes: one thread each keeps them from slowing each other
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="broca-tests-")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# a shell makes background processes ignore Ctrl+C; programs that the tests start would inherit that
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest
from hypothesis import settings

import broca

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broca.models import GatedModel  # importing torch is left to the test processes

settings.register_profile("busy machine", deadline=None)
settings.load_profile("busy machine")
atexit.register(shutil.rmtree, os.environ["XDG_DATA_HOME"], ignore_errors=True)

TESTS = Path(__file__).parent
FOLDERS = ("browser", "studies", "cli", "verbs/neurons")
"""Folders whose files share runs or a browser; one test process runs all files of a folder."""

LONGEST = (
    "browser", "verbs/test_kills.py", "studies", "verbs/test_on_ray.py", "cli",
    "verbs/test_localize.py", "verbs/test_verify.py", "executors/test_ray.py", "runs/test_run.py",
    "verbs", "models/test_architectures.py", "tasks/test_paper.py", "neurons/test_gradients.py",
    "searches/test_searches.py",
)  # fmt: skip
"""Folders and files that take longest and run first; the short ones fill the end of a run."""

SAMPLED = {
    "test_answers_equal_those_of_the_plain_model": 4, "test_scores_equal_a_plain_loop": 4,
    "test_generations_equal_zeroed_weights": 8, "test_lines_of_the_page_are_what_a_trial_gives": 3,
    "test_every_field_of_a_verb_has_one_name_and_a_sentence": 6,
    "test_gated_heads_equal_zeroed_columns_in_generation": 4, "test_self_test_passes": 4,
    "test_gated_components_equal_parts_ablated_by_hand": 4,
    "test_slopes_of_gates_equal_finite_differences": 4, "test_model_runs_from_the_middle": 4,
    "test_an_export_equals_the_model_scaled_by_hand": 4,
    "test_no_setting_of_the_model_changes_or_ends_a_greedy_text": 4, "test_generations_equal_hf": 2,
    "test_files_have_their_width_and_their_fonts": 3, "test_no_default_refuses_a_small_model": 4,
    "test_memory_shortage_loses_nothing": 2,
    "test_broken_entry_point_is_refused_in_one_line_that_names_the_package": 4,
    "test_chat_template_and_system_prompt": 3,
    "test_a_command_writes_its_result_and_has_nothing_to_do_again": 8,
    "test_a_killed_verb_goes_on_where_it_was": 3, "test_known_answers_are_scored_as_by_lm_eval": 2,
    "test_every_kind_of_task": 2, "test_finds_the_planted_components": 2,
    "test_row_budget_is_kept": 2, "test_selects_fewer_than_k_rather_than_fill_up": 2,
    "test_settings_that_are_not_greedy_or_not_known_are_refused": 3,
    "test_what_cannot_be_shown_is_refused": 3, "test_a_folder_with_an_adapter_is_exported": 3,
    "test_text_table_and_picture_are_small": 2, "test_ctrl_c_and_sigterm_end_it_at_any_time": 3,
    "test_a_full_disk_is_one_line_and_leaves_what_there_was": 3,
}  # fmt: skip
"""Tests of many models, commands or settings: `make test` runs every n-th of their cases, and
`make test-long` the others."""


def _place(file: Path, names: Sequence[str]) -> str | None:
    """Returns the most specific of `names` (files and folders) that contains a test file."""
    inside = file.relative_to(TESTS)
    return next((str(path) for path in (inside, *inside.parents) if str(path) in names), None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--long`, which also runs the tests marked `long`, as `make test-long` does in CI."""
    parser.addoption("--long", action="store_true", help="run the tests that take long too")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sorts the longest tests first, and skips tests marked `long` unless `--long` is given."""
    seen: Counter[str] = Counter()
    for item in items:
        name = item.name.partition("[")[0]
        if seen[name] % SAMPLED.get(name, 1):
            item.add_marker(pytest.mark.long)
        seen[name] += 1
    if not config.getoption("--long"):
        takes_long = pytest.mark.skip(reason="it takes long: `make test-long` runs it")
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(takes_long)
    places = {item: _place(item.path, LONGEST) for item in items}
    items.sort(key=lambda item: LONGEST.index(places[item]) if places[item] else len(LONGEST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """With `--dist loadfile`, one test process runs all files of each folder in `FOLDERS`."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FolderScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return _place(config.rootpath / file, FOLDERS) or file

    config.option.loadscopereorder = False  # keeps the order of `LONGEST`
    return FolderScheduling(config, log)


@pytest.fixture(scope="session")
def tiny() -> GatedModel:
    """A gated Llama with random weights: 2 layers, 4 query heads on 2 KV heads."""
    from tiny import tiny_gated

    return tiny_gated()


@pytest.fixture(scope="session")
def reference() -> GatedModel:
    """The shipped model `reference`."""
    return broca.load("reference", device="cpu")


@pytest.fixture(scope="session")
def planted() -> GatedModel:
    """The shipped model `planted`."""
    return broca.load("planted", device="cpu")


@pytest.fixture(scope="session")
def planted_heads() -> dict[str, list[str]]:
    """The heads that each capability of `planted` was trained to rely on."""
    text = (files("broca") / "reference_models" / "planted" / "planted_heads.json").read_text()
    heads: dict[str, list[str]] = json.loads(text)
    return heads


@pytest.fixture(scope="session")
def small() -> GatedModel:
    """The shipped model `reference-small`."""
    return broca.load("reference-small", device="cpu")
