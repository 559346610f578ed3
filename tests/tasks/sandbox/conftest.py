"""A sandbox of each isolation that this machine offers."""

import pytest

from broca.errors import BadInput
from broca.tasks.sandbox import ISOLATIONS, Limits, Sandbox

LIMITS = Limits(cpu_s=1, wall_s=5.0, memory_mib=512)


@pytest.fixture(scope="module", params=ISOLATIONS)
def sandbox(request):
    """A sandbox of each isolation; isolations that this machine lacks are skipped."""
    try:
        return Sandbox(LIMITS, isolation=request.param, workers=2)
    except BadInput as error:
        pytest.skip(str(error))
