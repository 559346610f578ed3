"""The protocol of executors, and the settings that identify engines."""

import inspect

import pytest
import torch

from broca.executors import LocalExecutor, RayExecutor
from broca.executors.base import Executor, Setting


@pytest.mark.parametrize("kind", [LocalExecutor, RayExecutor])
def test_every_executor_has_what_the_protocol_says(kind):
    """Every executor has each member of the protocol, and its methods have the same parameters."""
    for name, member in vars(Executor).items():
        if name.startswith("_"):
            continue
        attribute = inspect.getattr_static(kind, name, None)
        assert attribute is not None or name in kind.__init__.__code__.co_names, name
        if inspect.isfunction(member):
            assert list(inspect.signature(attribute).parameters) == list(
                inspect.signature(member).parameters
            )


def test_settings_are_equal_by_identity_and_show_no_activations():
    """Settings are equal by identity alone, and their repr omits tensors: both would be slow."""
    setting, equal_setting = (Setting("mean", donors=(torch.zeros(3),)) for _ in range(2))
    assert setting != equal_setting
    assert setting in {setting}
    assert "tensor" not in repr(setting)
