"""How much the constants of the default search matter: `python benchmarks/constants.py --out FILE`.

Each constant of `pooled` is halved and doubled (shares of rows are kept below 1), one at a time, on
the simulated tasks of `benchmarks/methods.py`: `small` and `backups`, 40 components, 4,800 rows,
with seeds that no constant was chosen on. FILE has a line for each search, and the same command
resumes. `--write` makes the table of RESULTS.md from FILE, starting with the unchanged search.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from prepared import prepare

prepare()

import numpy as np
from pages import write_section
from simulated_tasks import TASK_SCENARIOS
from simulations import SimulatedKey, simulate

from broca.searches.pooled import beliefs, measurer, posterior, search

PAGE = Path(__file__).parent / "RESULTS.md"
TITLE = "## How much the constants of the search matter"
COMPONENTS, ROWS, K = 40, 4800, 5
FIRST_SEED, SEEDS = 1000, 8
FACTORS = (0.5, 2.0)
MOST_SHARE = 0.95
CONSTANTS: tuple[tuple[ModuleType, str], ...] = (
    (search, "_SCREEN"),
    (search, "_ROUNDS"),
    (search, "_NUMBER"),
    (search, "_ROUND"),
    (search, "_SHARED"),
    (search, "_SPREAD"),
    (search, "_SHORT"),
    (search, "_HOPE"),
    (search, "_HARMFUL"),
    (search, "_MEETING"),
    (search, "_HEATS"),
    (search, "_PART"),
    (search, "_SPECIFIC"),
    (search, "_DOUBT"),
    (search, "_MEMBERS"),
    (search, "_LASTING"),
    (posterior, "_CHAINS"),
    (posterior, "_WARMING"),
    (posterior, "_KEPT"),
    (posterior, "_LEAST_NOISE"),
    (posterior, "_WIDTHS"),
    (posterior, "_PRIOR"),
    (beliefs, "_ENOUGH"),
    (beliefs, "_LEAST_NOISE"),
    (measurer, "_DOUBT"),
    (measurer, "_IMAGINED"),
)
"""Constants of the search, without those that only affect the wording of an answer."""
SHARES = {"_SCREEN", "_ROUNDS", "_SHARED", "_MEMBERS", "_LASTING"}


def label(module: ModuleType, name: str) -> str:
    """Returns the name of a constant with its file."""
    return f"`{module.__name__.removeprefix('broca.searches.')}.{name}`"


def changed(value: Any, factor: float, name: str) -> Any:
    """Returns a constant times a factor, of the same type."""
    if isinstance(value, int):
        return max(1, round(value * factor))
    scaled = value * factor
    return min(scaled, MOST_SHARE) if name in SHARES else scaled


def variants() -> Iterator[tuple[str, ModuleType | None, str, Any]]:
    """Yields the unchanged search, then every constant with every factor."""
    yield "as it is", None, "", None
    for module, name in CONSTANTS:
        for factor in FACTORS:
            value = changed(getattr(module, name), factor, name)
            yield f"{label(module, name)} x {factor:g}", module, name, value


def run(out: Path, seeds: int) -> None:
    """Runs the searches that the file lacks, seed by seed."""
    done = {(stored["variant"], stored["scenario"], stored["seed"]) for stored in read(out)}
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        for variant, module, name, value in variants():
            before = getattr(module, name) if module else None
            if module:
                setattr(module, name, value)
            try:
                for scenario in TASK_SCENARIOS:
                    if (variant, scenario, seed) in done:
                        continue
                    key = SimulatedKey(COMPONENTS, scenario, "pooled", ROWS, seed, K)
                    specific = simulate(key).specific
                    line = {
                        "variant": variant, "scenario": scenario, "seed": seed,
                        "specific": specific,
                    }  # fmt: skip
                    with out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(line) + "\n")
            finally:
                if module:
                    setattr(module, name, before)


def read(out: Path) -> list[dict[str, Any]]:
    """Returns the lines of the file; none if it does not exist."""
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def table(lines: list[dict[str, Any]]) -> str:
    """Returns mean specific drops, and differences from the unchanged search ± standard errors."""
    values: dict[str, dict[tuple[str, int], float]] = {}
    for line in lines:
        values.setdefault(line["variant"], {})[line["scenario"], line["seed"]] = line["specific"]
    plain = values["as it is"]
    count = {scenario: sum(name == scenario for name, _ in plain) for scenario in TASK_SCENARIOS}
    means = ", ".join(
        f"`{scenario}` {np.mean([plain[key] for key in plain if key[0] == scenario]):.3f}"
        for scenario in TASK_SCENARIOS
    )
    shown = [
        f"As it is: {means} ({min(count.values())} seeds each).\n",
        "| constant | value | " + " | ".join(
            f"`{scenario}`, x {factor:g}" for scenario in TASK_SCENARIOS for factor in FACTORS
        ) + " |",
        f"|{'---|' * (2 + len(TASK_SCENARIOS) * len(FACTORS))}",
    ]  # fmt: skip
    for module, name in CONSTANTS:
        cells = [label(module, name), value_text(getattr(module, name))]
        for scenario in TASK_SCENARIOS:
            for factor in FACTORS:
                drops = values.get(f"{label(module, name)} x {factor:g}", {})
                gains = [
                    drops[key] - plain[key] for key in drops if key[0] == scenario and key in plain
                ]
                error = np.std(gains, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.nan
                cells.append(f"{np.mean(gains):+.3f} ± {error:.3f}" if gains else "not run")
        shown.append(f"| {' | '.join(cells)} |")
    return "\n".join(shown) + "\n"


def value_text(value: Any) -> str:
    """Returns a constant's value as text, or the number of its values."""
    return f"{len(value)} values" if isinstance(value, np.ndarray) else f"{value:g}"


def write(lines: list[dict[str, Any]], page: Path = PAGE) -> None:
    """Writes the section of RESULTS.md."""
    section = (
        f"{TITLE}\n\n`python benchmarks/constants.py --out FILE`, then with `--write`: what the "
        "specific drop gains or loses when one constant of `pooled` is halved or doubled, beside "
        "the same seeds with the constant as it is (± standard error). Simulated tasks of 40 "
        f"components, {ROWS:,} rows.\n\n{table(lines)}\n"
    )
    write_section(page, section)


def main() -> None:
    """Runs the searches, or writes the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="file of the searches")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--write", action="store_true", help="write RESULTS.md; run nothing")
    options = parser.parse_args()
    if options.write:
        write(read(options.out))
    else:
        run(options.out, options.seeds)
        print(table(read(options.out)))


if __name__ == "__main__":
    main()
