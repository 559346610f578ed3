"""Verbs that load a model refuse pickled weights by default and obey `--offline`."""

import subprocess
import sys

import pytest
import torch
from cli.running import names

from broca.cli import main
from broca.testing import tiny_llama, tiny_tokenizer

VERBS = {
    "localize": "--task addition --out out",
    "scan": "",
    "explore": "--port 0",
    "verify": "--heads L0H0 --task addition --out out",
    "stress": "--heads L0H0 --out out",
    "atlas": "--out out",
    "plan": "--task addition",
    "compare": "reference-small --tasks addition --out out",
    "export": "--heads L0H0 --to out",
    "chat": "--heads L0H0",
    "reproduce": "--out out",
    **{
        f"neurons {verb}": "--task addition --out out"
        for verb in ("locate", "fidelity", "reliability", "erase", "enhance")
    },
    "neurons decouple": "--out out",
    "neurons overlap": "--tasks addition,sorting --out out",
    "neurons cross": "--tasks addition,sorting --out out",
}
"""Verbs that load weights, with the arguments that they need besides the model."""

NO_WEIGHTS = {
    "tasks", "journal", "rerun", "refit", "lm-eval", "published", "report",
    "view", "doctor",
}  # fmt: skip
"""Verbs that load no weights, only shipped ones, or the model of a run (`rerun`)."""


def words(verb, model, *more):
    """Returns the command line of a verb."""
    first = ["table3", model] if verb == "reproduce" else [model]
    return ["broca", *verb.split(), *first, *VERBS[verb].split(), *more]


def run(monkeypatch, arguments):
    """Runs a command line in this process and returns its exit code."""
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


@pytest.fixture(scope="module")
def pickled(tmp_path_factory):
    """The folder of a model whose weights are pickled."""
    folder = tmp_path_factory.mktemp("pickled") / "model"
    tiny_llama().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    (folder / "model.safetensors").unlink()
    torch.save(tiny_llama().state_dict(), folder / "pytorch_model.bin")
    return folder


def test_every_verb_is_known_here():
    """Every verb is in `VERBS` or in `NO_WEIGHTS`."""
    assert set(names()) == set(VERBS) | NO_WEIGHTS


@pytest.mark.parametrize("verb", VERBS)
def test_pickled_weights_are_refused(verb, pickled, monkeypatch, tmp_path, capsys):
    """Pickled weights are refused in one line that names `--allow-pickle`."""
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, words(verb, str(pickled))) == 2
    (line,) = [text for text in capsys.readouterr().err.splitlines() if text.startswith("broca: ")]
    assert "--allow-pickle" in line


def test_lm_eval_takes_it_among_the_model_arguments(pickled, monkeypatch):
    """lm-eval's model arguments have `allow_pickle`; without it, pickled weights are refused."""
    from broca.errors import BadInput
    from broca.integrations.lm_eval import BrocaLM

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
        "    sys.argv = line.split()\n"
        "    try: main()\n"
        "    except SystemExit as end: print('exit', end.code)\n"
    )
    lines = ["broca scan reference-small"]
    lines += [" ".join(words(verb, "no/such-model")) for verb in VERBS]
    lines.append("broca neurons locate reference --task data:no/such-set --out out")
    done = subprocess.run(
        [sys.executable, "-c", code],
        input="\n".join(line.replace("broca ", "broca --offline ", 1) for line in lines),
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert "Traceback" not in done.stderr
    assert "a network call" not in done.stderr
    assert "48 components" in done.stdout
    codes = [line for line in done.stdout.splitlines() if line.startswith("exit")]
    assert codes == ["exit 0"] + ["exit 2"] * (len(lines) - 1), done.stderr
