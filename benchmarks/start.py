"""Time from the start of a command to its first row, by part: `python benchmarks/start.py`.

Each part is given in processor time, which other programs on the machine hardly change, and in
wall-clock time. `--model`, `--task` and `--include-path` choose the run.
"""

from __future__ import annotations

import time

CLOCKS = [(time.process_time(), time.perf_counter())]
NAMES = ["start of Python"]


def enter(name: str) -> None:
    """Records the start of a part, once for each part."""
    if name != NAMES[-1]:
        NAMES.append(name)
        CLOCKS.append((time.process_time(), time.perf_counter()))


def main() -> None:
    """Runs a small localization and prints the parts before its first row."""
    import argparse
    import os

    os.environ.setdefault("TQDM_DISABLE", "1")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="reference")
    parser.add_argument("--task", default="addition")
    parser.add_argument("--include-path")
    parser.add_argument("--rows", type=int, default=2400)
    arguments = parser.parse_args()
    enter("imports of broca")
    from broca.executors.process import tune_process

    tune_process()
    from broca import localize

    def report(text: str, progress: object = None) -> None:
        parts = {"loading": "model: weights, structure, self-test", "building": "tasks"}
        enter(parts.get(text.split()[0], text.splitlines()[0]))

    enter("first stage")
    localize(
        arguments.model, arguments.task, include_path=arguments.include_path, rows=arguments.rows,
        on_progress=report,
    )  # fmt: skip
    enter("end")
    total = [last - first for first, last in zip(CLOCKS[0], CLOCKS[-1], strict=True)]
    print("| part | processor, s | clock, s | share of the processor's time |\n|---|---|---|---|")
    for name, begin, end in zip(NAMES, CLOCKS, CLOCKS[1:], strict=False):
        cpu, wall = end[0] - begin[0], end[1] - begin[1]
        print(f"| {name} | {cpu:.2f} | {wall:.2f} | {cpu / total[0]:.0%} |")
    print(f"| all | {total[0]:.2f} | {total[1]:.2f} | 100% |")


if __name__ == "__main__":
    main()
