"""The isolation of programs from the machine."""

import ast
import json
from pathlib import Path

import pytest

from broca.errors import BadInput
from broca.tasks.sandbox import ISOLATIONS, Limits, Sandbox
from broca.tasks.sandbox.isolation import launch, possible

LIMITS = Limits(cpu_s=1, wall_s=5.0, memory_mib=512)


def test_strongest_isolation_that_holds_is_taken():
    """The default is the strongest isolation that passes its trial, with its description."""
    chosen = Sandbox(LIMITS)
    held = []
    for isolation in possible():
        try:
            held.append(Sandbox(LIMITS, isolation=isolation).isolation)
        except BadInput:
            continue
    assert chosen.isolation == held[0]
    assert chosen.description == ISOLATIONS[chosen.isolation]


def test_isolation_that_does_not_enclose_is_not_taken(monkeypatch):
    """A sandbox whose trial programs reach outside is refused."""
    monkeypatch.setattr(
        "broca.tasks.sandbox.runner.launch",
        lambda isolation, *args, **kwargs: launch("none", *args, **kwargs),
    )
    with pytest.raises(BadInput, match=r"nothing encloses programs.*install bubblewrap"):
        Sandbox(LIMITS)


def test_a_launch_says_everything_in_its_command():
    """The command has limits, folder and token; the environment is fixed and has no secrets."""
    worker = launch("guard", LIMITS, folder="/tmp/empty", slot=3, token_length=32)
    assert worker.command[0] == worker.command[0].strip()
    assert Path(worker.command[0]).is_file()
    literal = worker.command[-1].rsplit("main(json.loads(", 1)[1].removesuffix("))")
    settings = json.loads(ast.literal_eval(literal))
    assert (settings["isolation"], settings["folder"], settings["token"]) == (
        "guard", "/tmp/empty", 32,
    )  # fmt: skip
    assert settings["limits"]["RLIMIT_CPU"] == LIMITS.cpu_s
    assert settings["limits"]["RLIMIT_AS"] == LIMITS.memory_mib * 2**20
    assert worker.environment["PYTHONHASHSEED"] == "0"
    assert not {"PATH", "HF_TOKEN", "LD_PRELOAD"} & set(worker.environment)


def test_isolations_are_tried_strongest_first():
    """Isolations are tried in the order of their table."""
    order = list(ISOLATIONS)
    offered = list(possible())
    assert offered == sorted(offered, key=order.index)
