"""Comparisons of methods on models, and on simulated models with known answers."""

from broca.studies.methods.cells import (
    Cell,
    CellFolder,
    CellKey,
    budget_name,
    method_cells,
    parse_budgets,
)
from broca.studies.methods.comparing import (
    CANDIDATE,
    MethodComparison,
    compare_methods,
)
from broca.studies.methods.running import Grid, parse_methods
from broca.studies.methods.simulations import (
    SCENARIOS,
    SimulatedCell,
    SimulatedGrid,
    SimulatedKey,
    SimulatedSummary,
    run_simulations,
    simulate,
    simulate_methods,
    simulated_cells_of,
    summarize_simulations,
)
from broca.studies.methods.summary import MethodSummary, bootstrap, shared_gap, summarize

__all__ = [
    "CANDIDATE",
    "SCENARIOS",
    "Cell",
    "CellFolder",
    "CellKey",
    "Grid",
    "MethodComparison",
    "MethodSummary",
    "SimulatedCell",
    "SimulatedGrid",
    "SimulatedKey",
    "SimulatedSummary",
    "bootstrap",
    "budget_name",
    "compare_methods",
    "method_cells",
    "parse_budgets",
    "parse_methods",
    "run_simulations",
    "shared_gap",
    "simulate",
    "simulate_methods",
    "simulated_cells_of",
    "summarize",
    "summarize_simulations",
]
