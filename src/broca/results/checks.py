"""The checks of a machine and of a model's gates, which `broca doctor` and `broca scan` print."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from broca.results.base import Result


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

    def terminal(self) -> Iterator[str]:
        """Yields the outcome of the self-test, the components, gaps and all checks."""
        failed = ", ".join(check.name for check in self.self_test if not check.passed)
        names, points, norms = self.components, self.gate_points, self.norms_across_heads
        yield f"self-test failed: {failed}" if failed else "every check of the self-test holds"
        yield self.description
        yield f"{len(names)} components ({self.kinds}): {names[0]} ... {names[-1]}"
        yield f"gated at: {points[0]} ... {points[-1]}"
        if norms:
            yield (
                f"a norm over all heads precedes the projection ({norms[0]}, ...): heads are gated "
                "at its input"
            )
        for layer, path in self.without_mlp_block:
            yield f"no single MLP block: layer {layer} ({path})"
        for gap in self.not_covered:
            yield f"not covered: layer {gap.layer} ({gap.path}): {gap.reason}"
        for check in self.self_test:
            state = "ok" if check.passed else "FAILED"
            yield f"self-test {state}: {check.name} ({check.detail}), {check.seconds:.2f} s"
        for check in self.sharing:
            state = f"{'' if check.passed else 'not '}shared, for rows up to {self.proved_tokens}"
            yield f"{state} tokens: {check.name} ({check.detail})"

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

_MARKS: dict[CheckState, str] = {"ok": "ok", "missing": "--", "broken": "!!"}


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


class Diagnosis(Result, file="doctor.json", verb="broca doctor", rows="checks"):
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

    def terminal(self) -> Iterator[str]:
        """Yields whether broca can run here, then every check with its remedy."""
        can = "can run here; features marked -- are optional" if self.can_run else "cannot run here"
        yield f"broca {can}."
        width = max((len(check.name) for check in self.checks), default=0)
        for check in self.checks:
            yield f"{_MARKS[check.state]}  {check.name:<{width}}  {check.description}"
            if check.remedy:
                yield f"    {'':<{width}}  -> {check.remedy}"
