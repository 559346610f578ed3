"""A model in use: in evaluation mode, frozen and not compiled; its state is restored afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from torch import nn

from broca.models.fingerprint import fingerprint


class Usage:
    """Counts the users of a model, from any thread, and keeps the state to restore.

    A model has one, which all its wrappers and copies around the same weights share: the weights
    are frozen once and restored when the last user is done. `Usage.of` returns it.

    Args:
        model: The transformers model.
    """

    _of_models: ClassVar[WeakValueDictionary[int, Usage]] = WeakValueDictionary()

    def __init__(self, model: nn.Module) -> None:
        self._model = model  # the reference keeps the model's id valid
        self._belongs_to_caller = False
        self._begin()

    @classmethod
    def of(cls, model: nn.Module, *, belongs_to_caller: bool) -> Usage:
        """Returns the usage of a model, a new one at its first wrapper.

        Args:
            model: The transformers model.
            belongs_to_caller: Whether the caller may change its weights between two uses.
        """
        usage = cls._of_models.setdefault(id(model), cls(model))
        if belongs_to_caller and not usage._belongs_to_caller:
            usage._belongs_to_caller, usage._fingerprint = True, ""
        return usage

    def _begin(self) -> None:
        self._lock = RLock()
        self._users = 0
        self._modes: list[tuple[nn.Module, bool]] = []
        self._trained: list[nn.Parameter] = []
        self._compiled: list[tuple[nn.Module, Any]] = []
        self._fingerprint = ""
        self.ablated: list[str] = []
        """Names of the components that `GatedModel.ablated` ablates now."""

    def __getstate__(self) -> dict[str, Any]:
        return {"_model": self._model, "_belongs_to_caller": self._belongs_to_caller}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    @contextmanager
    def held(self) -> Iterator[None]:
        """A context in which the model is in evaluation mode and its weights are frozen."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._freeze()
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._restore()

    @property
    def fingerprint(self) -> str:
        """Returns the digest of the weights, computed again in each use of a caller's model."""
        with self._lock:
            digest = self._fingerprint or fingerprint(self._model)
            if self._users or not self._belongs_to_caller:
                self._fingerprint = digest
            return digest

    def _freeze(self) -> None:
        # the attribute, not eval(): a module's own eval() may change its weights (merged adapters)
        self._modes = [(module, module.training) for module in self._model.modules()]
        self._trained = [weight for weight in self._model.parameters() if weight.requires_grad]
        # a compiled forward pass would skip later hooks
        self._compiled = [
            (module, module._compiled_call_impl)
            for module, _ in self._modes
            if module._compiled_call_impl is not None
        ]
        self._set(as_found=False)

    def _restore(self) -> None:
        self._set(as_found=True)
        self._modes, self._trained, self._compiled = [], [], []
        if self._belongs_to_caller:
            self._fingerprint = ""

    def _set(self, *, as_found: bool) -> None:
        for module, compiled in self._compiled:
            module._compiled_call_impl = compiled if as_found else None
        for module, training in self._modes:
            module.training = training and as_found
        for parameter in self._trained:
            parameter.requires_grad_(as_found)
