"""What is refused ends in one line and exit code 2; any other words, in a known exit code."""

import shlex
import subprocess
import sys

import pytest
import torch
from cli.running import assert_refused, broca, names
from harness_tasks import write_task
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny import save_tiny, tiny_llama

from broca.errors import BadInput, UnknownName
from broca.integrations.lm_eval import BrocaLM

ADDITION = "localize reference --task addition"
REFUSED = [
    ("localize ./nowhere --task addition", "folder './nowhere' does not exist"),
    (f"localize reference --task {'x' * 300}.jsonl", "cannot be opened .File name too long"),
    ("verify ~none-such/x", "cannot be opened .Could not determine home directory"),
    ("localize reference --task calls --others '' --rows 50", "--rows 50 is too few"),
    ("localize reference --task mbpp --others ''", r"off by default.*--allow-code.*docs/sandbox"),
    (f"{ADDITION} --k 0", "--k must be at least 1"), ("localize", "MODEL is missing"),
    (f"{ADDITION} --seed -1", "at least 0"), (f"{ADDITION} --max-minutes inf", "must be at most"),
    # JSON has none of these, and the folder of such a run could not be read again
    (f"{ADDITION} --batch-limit inf", "at most"), (f"{ADDITION} --rows 2000000000", "at most"),
    (f"{ADDITION} --scale nan", "be a number"),
    (f"{ADDITION} --executor ray --gpus-per-worker inf", "--gpus-per-worker must be at most"),
    (f"{ADDITION} --claim --no-verify", "leave --verify on"),
    ("verify reference", "or name --heads"), (f"{ADDITION} --option masks", "NAME=VALUE"),
    ("verify reference --heads L0H1 --task a --model planted", "--model replaces that of a run"),
    (f"{ADDITION} --others addition", "not a control of itself"),
    (f"{ADDITION} --num-fewshot 1001", "--num-fewshot 1001 is mo"),
    (f"{ADDITION} --chat-template", "no chat template"), (f"{ADDITION} --reference x", "use own"),
    (f"{ADDITION} --include-path ./nope", "is not a folder"),
    (f"{ADDITION} --out /dev/null/x", "cannot be written"),
    (f"{ADDITION} --components experts", "no experts were found"),
    (f"{ADDITION} --log wandbb", "--log 'wandbb' is unknown; did you mean 'wandb'"),
    (f"{ADDITION} --log-project p", "a project of the tracker that --log names"),
    ("report '~no such user/run'", "home directory"), (f"{ADDITION} --others \udcff", "not UTF-8 "),
    ("neurons erase reference --task capitals --matching x", "--matching"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "message"), REFUSED)
def test_bad_input_is_one_line_and_exit_code_2(command, message, tmp_path, monkeypatch):
    """The line names flags, stdout stays empty, and no folder is left."""
    monkeypatch.delenv("HF_ALLOW_CODE_EVAL", raising=False)
    for name in [name for name in sys.modules if name.startswith("lm_eval.tasks.mbpp")]:
        monkeypatch.delitem(sys.modules, name)  # as in a new process
    out = [] if "--out" in command else ["--out", tmp_path / "a" / "b"]
    assert_refused(broca(*shlex.split(command), *out), message)
    assert list(tmp_path.iterdir()) == []


def test_task_that_the_model_cannot_do_is_refused(tmp_path):
    """A task on which the intact model scores 0 is refused."""
    data = [{"question": f"qqqqqq {n} ?", "answer": f"zz{n}zz"} for n in range(16)]
    settings = {"until": ["\n"], "max_gen_toks": 4}
    write_task(tmp_path, "impossible", data, generation_kwargs=settings)
    for k in (1, 2):  # the folder of the first is free for the second
        done = broca(
            "localize", "reference", "--task", "impossible", "--include-path", tmp_path,
            "--others", "", "--out", tmp_path / "out", "--k", k,
        )  # fmt: skip
        assert_refused(done, "scores 0.000 on 'impossible'.*nothing to localize")


WEIGHTS = {
    "localize": "MODEL --task addition --out out",
    "scan": "MODEL", "atlas": "MODEL --out out", "plan": "MODEL --task addition",
    "explore": "MODEL --port 0",
    "verify": "MODEL --heads L0H0 --task addition --out out",
    "stress": "MODEL --heads L0H0 --out out",
    "compare": "MODEL reference-small --tasks addition --out out",
    "export": "MODEL --heads L0H0 --to out",
    "chat": "MODEL --heads L0H0",
    "reproduce": "table3 MODEL --out out",
    **{f"neurons {verb}": "MODEL --task addition --out out" for verb in ("locate", "erase")},
}  # fmt: skip
"""Commands that load weights, with the arguments that they need."""

NO_WEIGHTS = {
    "tasks", "journal", "rerun", "refit", "lm-eval", "published", "report", "view", "doctor",
    "replicate",
}  # fmt: skip
"""Commands that load no weights, only shipped ones, or the model of a run or a claim."""


def words(command, model):
    """Returns the words of a command that loads a model."""
    return f"{command} {WEIGHTS[command].replace('MODEL', str(model))}".split()


@pytest.fixture(scope="module")
def pickled(tmp_path_factory):
    """The folder of a model whose weights are pickled."""
    folder = save_tiny(tmp_path_factory.mktemp("pickled") / "model")
    (folder / "model.safetensors").unlink()
    torch.save(tiny_llama().state_dict(), folder / "pytorch_model.bin")
    return folder


def test_every_command_is_known_here():
    """Every command is in `WEIGHTS` or in `NO_WEIGHTS`."""
    assert set(names()) == set(WEIGHTS) | NO_WEIGHTS


@pytest.mark.parametrize("command", WEIGHTS)
def test_pickled_weights_are_refused(command, pickled, monkeypatch, tmp_path):
    """Pickled weights are refused in one line that names `--allow-pickle`."""
    monkeypatch.chdir(tmp_path)
    done = broca(*words(command, pickled))
    assert_refused(done, "no file named model.safetensors.*--allow-pickle")


def test_lm_eval_takes_it_among_the_model_arguments(pickled):
    """lm-eval's model arguments have `allow_pickle`; without it, pickled weights are refused."""
    with pytest.raises(BadInput, match="`allow_pickle`"):
        BrocaLM(pretrained=str(pickled))
    assert BrocaLM(pretrained=str(pickled), allow_pickle=True).max_length


@pytest.mark.long
def test_offline_makes_no_network_call(tmp_path):
    """With `--offline`, a shipped model is scanned, and every verb refuses an unknown model.

    Every function that opens a connection raises an error. The hub libraries are imported after
    the flag is read for the first command, and before for all others.
    """
    code = (
        "import os, socket, sys\n"
        "def refuse(*a, **k): raise SystemError('a network call')\n"
        "socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse\n"
        "from broca.cli import main\n"
        "for line in sys.stdin.read().splitlines():\n"
        "    hub = sys.modules.get('huggingface_hub.constants')\n"
        "    if hub: hub.HF_HUB_OFFLINE = False\n"
        "    for name in ('HF_HUB_OFFLINE', 'HF_DATASETS_OFFLINE', 'TRANSFORMERS_OFFLINE'):\n"
        "        os.environ.pop(name, None)\n"
        "    sys.argv = ['broca', '--offline', *line.split()]\n"
        "    try: main()\n"
        "    except SystemExit as end: print('exit', end.code)\n"
    )
    lines = ["scan reference-small"]
    lines += [" ".join(words(command, "no/such-model")) for command in WEIGHTS]
    lines.append("neurons locate reference --task data:no/such-set --out out")
    done = subprocess.run(
        [sys.executable, "-c", code], input="\n".join(lines), capture_output=True, text=True,
        cwd=tmp_path,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "a network call" not in done.stderr
    assert "48 components" in done.stdout
    codes = [line for line in done.stdout.splitlines() if line.startswith("exit")]
    assert codes == ["exit 0"] + ["exit 2"] * (len(lines) - 1), done.stderr


ANY = st.sampled_from([
    "localize", "journal", "rerun", "tasks", "scan", "reference", "addition", "--task", "--k",
    "--rows", "--items", "--seed", "--out", "--others", "--method", "--option", "--scale",
    "--keep-outputs", "--fresh", "--journal", "--export", "--json", "--from-scratch",
    "--offline", "--token-budget", "--response", "--limit", "--include-path", "x=1", "=", "-1",
    "0", "3", "nan", "1e999", "", "..", "/dev/null", "result.json", "\udcff",
]) | st.text(max_size=6).filter(lambda text: "\0" not in text)  # fmt: skip


@pytest.fixture
def no_models(monkeypatch, tmp_path):
    """Makes every model unknown, so that commands end before a model is loaded."""

    def unknown(*_, **__):
        raise UnknownName("no models here")

    monkeypatch.setattr("broca.runs.session.load", unknown)
    monkeypatch.setattr("broca.models.load", unknown)
    monkeypatch.chdir(tmp_path)


@pytest.mark.long
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    verb=st.sampled_from(["localize", "journal", "rerun", "scan", "localize reference --task a"]),
    words=st.lists(ANY, max_size=6),
)
def test_any_words_end_in_a_known_exit_code(no_models, verb, words):
    """Any words raise only `SystemExit`, with a documented exit code."""
    assert broca(*verb.split(), *words).returncode in (0, 1, 2, 130)
