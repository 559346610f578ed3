"""Methods compared with one another: on models, and on simulated models whose answer is known."""

from broca.studies.methods.arena import Arena
from broca.studies.methods.cells import Cell, CellKey, budget_name, cell_file, parse_budgets
from broca.studies.methods.comparing import Comparison, compare_methods, conclude
from broca.studies.methods.running import Grid, parse_methods, run_cell, run_grid
from broca.studies.methods.simulations import (
    SCENARIOS,
    SimulatedCell,
    SimulatedGrid,
    SimulatedKey,
    SimulatedLine,
    run_simulations,
    simulate,
    simulated_file,
    summarize_simulations,
)
from broca.studies.methods.summary import Line, bootstrap, summarize
from broca.studies.methods.targets import CANDIDATE, Target, targets
from broca.studies.methods.truth import Exhaustive, ExhaustiveFolder

__all__ = [
    "CANDIDATE",
    "SCENARIOS",
    "Arena",
    "Cell",
    "CellKey",
    "Comparison",
    "Exhaustive",
    "ExhaustiveFolder",
    "Grid",
    "Line",
    "SimulatedCell",
    "SimulatedGrid",
    "SimulatedKey",
    "SimulatedLine",
    "Target",
    "bootstrap",
    "budget_name",
    "cell_file",
    "compare_methods",
    "conclude",
    "parse_budgets",
    "parse_methods",
    "run_cell",
    "run_grid",
    "run_simulations",
    "simulate",
    "simulated_file",
    "summarize",
    "summarize_simulations",
    "targets",
]
