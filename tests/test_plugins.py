"""Records of other packages are found by entry points, in a new process."""

import subprocess
import sys

import pytest

PROGRAM = """
from broca.recovery import RECOVERIES, make_recovery
from broca.searches import METHODS, Problem, run
import numpy as np
from broca.testing import planted_problem
planted = planted_problem(components=20, seed=0)
print(list(METHODS)[-1], list(RECOVERIES)[-1], METHODS["their-method"].help)
search = METHODS["their-method"].search(Problem(20, np.arange(4), 2, None, 0), {"column": 3})
fitted = make_recovery("their-recovery").fit([[0], [1]], [1, 0])
print(run(search, planted.run).selected, fitted.coef_)
"""

MODULE = '''
from __future__ import annotations
from dataclasses import dataclass
import numpy as np
from sklearn.linear_model import LinearRegression
from broca.measurement import Plan
from broca.recovery import Recovery
from broca.searches import Method, Ranking

@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Selects the column of its option."""

    column: int

    def most_rows(self, problem):
        return len(problem.items)

    def generate(self, problem):
        mask = np.zeros((1, problem.components), dtype=bool)
        measurement = yield Plan.crossed(mask, problem.items)
        effects = np.zeros(problem.components)
        effects[self.column] = -measurement.responses.mean()
        return Ranking(effects, tuple(np.argsort(effects, kind="stable")), (self.column,))

METHOD = Method(name="their-method", measures="nothing", answers="which column is set",
                rows="items", make=Chosen)

RECOVERY = Recovery(name="their-recovery", help="least squares", make=LinearRegression)
TAKEN = Method(name="greedy", measures="", answers="", rows="", make=Chosen)
'''


def package(folder, entries):
    """Writes an installed package `theirs` with the given entry points."""
    (folder / "theirs.py").write_text(MODULE)
    info = folder / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)


def python(folder, program):
    """Returns the output of a new process that sees the package."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{program}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.long
def test_methods_and_recoveries_of_another_package_come_last(tmp_path):
    """They take options, run and fit like broca's."""
    entries = "[broca.searches]\nm = theirs:METHOD\n[broca.recoveries]\nr = theirs:RECOVERY\n"
    package(tmp_path, entries)
    names, found = python(tmp_path, PROGRAM).splitlines()
    assert names == "their-method their-recovery Nothing: which column is set."
    assert found == "(3,) [-1.]"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("m = nowhere:METHOD", "cannot be loaded (ModuleNotFoundError: No module named 'nowhere')"),
        ("m = theirs:NOTHING", "cannot be loaded (AttributeError: module 'theirs' has no"),
        ("m = theirs:Chosen", "is a type and no Method"),
        ("m = theirs:TAKEN", "has the name 'greedy', which is taken"),
    ],
)
def test_broken_entry_point_is_refused_in_one_line_that_names_the_package(tmp_path, entry, message):
    """The error comes at the first look-up, not at the import."""
    package(tmp_path, f"[broca.searches]\n{entry}\n")
    printed = python(
        tmp_path,
        "from broca.errors import BadInput\nfrom broca.searches import METHODS\nprint('imported')\n"
        "try: list(METHODS)\nexcept BadInput as error: print(error)",
    )
    imported, line = printed.splitlines()
    assert imported == "imported"
    assert line.startswith("'m' in broca.searches of package 'theirs' ")
    assert message in line


def test_names_come_without_heavy_libraries(tmp_path):
    """`--help` lists methods and recoveries: neither scikit-learn nor SciPy nor torch is loaded."""
    printed = python(
        tmp_path,
        "from broca.searches import METHODS\nfrom broca.recovery import RECOVERIES\n"
        "import broca.neurons.methods\n"
        "print(METHODS['pooled'].help[:6], *list(RECOVERIES)[:2])\n"
        "print([name for name in ('sklearn', 'scipy', 'torch', 'pandas') if name in sys.modules])",
    )
    assert printed.splitlines() == ["Random lasso lasso-cv", "[]"]
