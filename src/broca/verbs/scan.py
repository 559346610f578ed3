"""`scan`: what can be ablated in a model, and whether its gates hold."""

from __future__ import annotations

from broca.models import GatedModel, self_test, sharing_checks
from broca.options import ModelOptions, takes_options
from broca.results.scan import Scan
from broca.runs.progress import Report, Stages
from broca.runs.setup import model_in_use


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
        structure, (length, sharing) = gated.structure, sharing_checks(gated)
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
            proved_tokens=length,
            sharing=sharing,
        )
