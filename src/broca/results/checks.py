"""The checks of a machine and of a model's gates, which `broca doctor` and `broca scan` print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from broca.results.base import Result
from broca.results.files import plain


@dataclass(frozen=True)
class Check:
    """A check of the self-test of gates.

    Attributes:
        name: Name of the check.
        passed: Whether it passed.
        detail: The measured figure and its place.
        seconds: Time of the check.
    """

    name: str
    passed: bool
    detail: str
    seconds: float


@dataclass(frozen=True)
class NotCovered:
    """A decoder layer that has no attention heads to gate.

    Attributes:
        layer: Number of the layer.
        path: Its module.
        reason: Why it has none.
    """

    layer: int
    path: str
    reason: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Scan(Result, file="scan.json", verb="broca scan"):
    """The components of a model and the self-test of their gates.

    Attributes:
        model: Name of the model.
        description: Description of the model in one line.
        architecture: Class of the model in transformers.
        fingerprint: Digest of the weights.
        dtype: Number format of the weights.
        layers: Number of decoder layers.
        kinds: Kinds of components, such as `heads+mlp`.
        heads: Number of query heads of an attention layer.
        kv_heads: Number of key/value heads of an attention layer.
        components: Names of the components, in column order.
        norms_across_heads: Norms over all heads before the output projection; heads are gated after
            them.
        gate_points: The modules at which components are gated.
        not_covered: Layers that have no attention heads to gate.
        without_mlp_block: Layers that have no single MLP block: number and module.
        self_test: Checks of the gates.
        proved_tokens: Length of the rows for which sharing was proved; longer rows are tested
            when they are met.
        sharing: What such rows may share, by test; what failed is not shared.
    """

    kind: Literal["scan"] = "scan"
    model: str
    description: str
    architecture: str
    fingerprint: str
    dtype: str
    layers: int
    kinds: str
    heads: int
    kv_heads: int
    components: tuple[str, ...]
    norms_across_heads: tuple[str, ...]
    gate_points: tuple[str, ...]
    not_covered: tuple[NotCovered, ...]
    without_mlp_block: tuple[tuple[int, str], ...]
    self_test: tuple[Check, ...]
    proved_tokens: int
    sharing: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every check of the self-test holds."""
        return all(check.passed for check in self.self_test)

    def summary(self) -> tuple[str, ...]:
        """Returns the outcome of the self-test and the size of the model."""
        failed = ", ".join(check.name for check in self.self_test if not check.passed)
        return (
            f"self-test failed: {failed}" if failed else "every check of the self-test holds",
            self.description,
            f"{len(self.components)} components ({self.kinds})",
        )

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each component."""
        from broca.components import Component  # imports NumPy, which a diagnosis may find broken

        parts = [Component.parse(name) for name in self.components]
        return [
            {"component": part.name, "kind": part.kind, "layer": part.layer, "index": part.index}
            for part in parts
        ]


CheckState = Literal["ok", "missing", "broken"]
"""`missing` marks an optional feature; broca cannot run if a check is `broken`."""


@dataclass(frozen=True)
class MachineCheck:
    """The result of a check.

    Attributes:
        name: Name of the check.
        state: `ok`, `missing` or `broken`.
        description: Version, place or state of what was checked.
        remedy: Command or advice that fixes it; empty if nothing needs fixing.
    """

    name: str
    state: CheckState
    description: str
    remedy: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Diagnosis(Result, file="doctor.json", verb="broca doctor"):
    """The results of all checks of a machine.

    Attributes:
        checks: The checks.
    """

    kind: Literal["diagnosis"] = "diagnosis"
    checks: tuple[MachineCheck, ...]

    @property
    def can_run(self) -> bool:
        """Whether broca can run here."""
        return all(check.state != "broken" for check in self.checks)

    def summary(self) -> tuple[str, ...]:
        """Returns whether broca can run here, and what is missing."""
        missing = [check.name for check in self.checks if check.state != "ok"]
        return (
            f"broca {'can' if self.can_run else 'cannot'} run here",
            f"{len(self.checks)} checks; missing or broken: {', '.join(missing) or 'none'}",
        )

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each check."""
        lines: list[dict[str, Any]] = plain(self.checks)
        return lines
