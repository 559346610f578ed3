"""`scan`: what can be ablated in a model, and whether its gates hold."""

from broca.models import self_test, sharing_checks
from broca.options import ScanOptions, verb
from broca.results.checks import Scan
from broca.runs.progress import Stages
from broca.runs.session import model_in_use


@verb(ScanOptions)
def scan(options: ScanOptions) -> Scan:
    """Lists the components of a model and tests that its gates are exact.

    Raises:
        BrocaError: The model cannot be loaded, or its architecture is not covered.
    """
    stages = Stages(options.on_progress)
    with model_in_use(options.model, options.model_options, stages) as gated:
        structure, (length, sharing) = gated.structure, sharing_checks(gated)
        return Scan(
            model=gated.name, description=gated.describe(), architecture=gated.architecture,
            fingerprint=gated.fingerprint, dtype=gated.dtype, layers=structure.layers,
            kinds=gated.kinds, heads=gated.heads, kv_heads=gated.kv_heads,
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
            self_test=tuple(self_test(gated)), proved_tokens=length, sharing=sharing,
        )  # fmt: skip
