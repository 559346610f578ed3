"""Ray for the tests of one file."""

import os
from contextlib import contextmanager

import pytest

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")


@contextmanager
def ray_on(cores):
    """Runs Ray on some cores of this machine, with a second attempt where it is busy."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    for last in (False, True):
        try:
            ray.init(
                num_cpus=cores, include_dashboard=False, log_to_driver=False,
                object_store_memory=80 * 2**20,
            )  # fmt: skip
            break
        except Exception as error:  # noqa: BLE001  # Ray raises plain Exceptions
            ray.shutdown()
            if last:
                pytest.skip(f"Ray does not start on this machine: {error}")
    yield
    ray.shutdown()
