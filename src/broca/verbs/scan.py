"""`scan`: what can be ablated in a model, and whether its gates hold."""

from __future__ import annotations

from dataclasses import dataclass

from broca.models import Check, GatedModel, self_test
from broca.models.structure import NotCovered
from broca.options import ModelOptions, takes_options
from broca.runs.progress import Report, Stages
from broca.runs.setup import model_in_use


@dataclass(frozen=True)
class Scan:
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
    """

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

    @property
    def passed(self) -> bool:
        """Whether every check of the self-test holds."""
        return all(check.passed for check in self.self_test)


@takes_options
def scan(
    model: str | GatedModel, *, on_progress: Report | None = None, model_options: ModelOptions
) -> Scan:
    """Lists the components of a model and tests that its gates are exact.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        on_progress: Receives the current stage and the progress of the run.

    Raises:
        BrocaError: The model cannot be loaded, or its architecture is not covered.
    """
    with model_in_use(model, model_options, Stages(on_progress)) as gated:
        structure = gated.structure
        return Scan(
            model=gated.name,
            description=gated.describe(),
            architecture=gated.architecture,
            fingerprint=gated.fingerprint,
            dtype=gated.dtype,
            layers=structure.layers,
            kinds=gated.kinds,
            heads=gated.heads,
            kv_heads=gated.kv_heads,
            components=tuple(gated.components.names),
            norms_across_heads=tuple(
                projection.norm.path
                for projection in structure.projections
                if projection.norm is not None
            ),
            gate_points=tuple(point.path for point in gated.points),
            not_covered=structure.not_covered,
            without_mlp_block=tuple(
                (part.layer, part.decoder_layer.path)
                for part in structure.parts
                if part.feed_forward is None
            ),
            self_test=tuple(self_test(gated)),
        )
