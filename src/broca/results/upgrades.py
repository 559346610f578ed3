"""Upgrades files of older schemas, as parsed JSON, to the current schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from broca.errors import BadInput

Data = dict[str, Any]

_LOWER_IS_BETTER = {"word_perplexity", "byte_perplexity", "bits_per_byte", "perplexity", "ter"}


def upgraded(kind: str, data: Data, *, to: int) -> Data:
    """Upgrades a file to a schema, step by step.

    Args:
        kind: Kind of the result, such as `localization`.
        data: The file's content; it is not changed.
        to: The schema to which it is upgraded.

    Raises:
        BadInput: The file is newer than this version of broca, or its schema never existed.
        KeyError: The file lacks a key of its schema.
    """
    schema = data["schema"]
    while schema != to:
        step = _STEPS.get((kind, schema)) if type(schema) is int else None
        if step is None:
            raise BadInput(
                f"the {kind} has schema {schema}, this broca reads schema {to} and older: use the "
                "version of broca that wrote it"
            )
        schema += 1
        data = {**step(data), "schema": schema, "kind": kind}
    for path, former, key in _RENAMED.get(kind, ()):
        data = _with_key(data, path, former, key)
    return data


def _with_key(data: Any, path: tuple[str, ...], former: str, key: str) -> Any:
    """Returns a copy of data in which the objects at a path have `key` instead of `former`."""
    if isinstance(data, list):
        return [_with_key(part, path, former, key) for part in data]
    if not isinstance(data, dict):
        return data
    if not path:
        return {key if name == former else name: value for name, value in data.items()}
    step, *others = path
    if step not in data:
        return data
    return {**data, step: _with_key(data[step], tuple(others), former, key)}


def _localization(old: Data) -> Data:
    """Schema 1 kept the statistics separately, as `evidence`, and repeated every score there."""
    held_out, evidence = old["verification"], old.get("evidence")
    statistics = (
        {"drops": _plain_drops(old), "verdict": None} if evidence is None else _statistics(evidence)
    )
    return {
        **{name: value for name, value in old.items() if name not in ("evidence", "metrics")},
        "verification": {
            **statistics,
            **{name: held_out[name] for name in ("off_target_drop", "specific_drop")},
        },
    }


def _plain_drops(old: Data) -> list[Data]:
    """Returns drops without statistics; schema 1 has only the drop of the claimed task."""
    task, same_skill = old["task"], old.get("same_skill", ())
    held_out = old["verification"]
    drops = []
    for name in (task, *same_skill, *old["others"]):
        metric = old["metrics"].get(name, "")
        lost = old["baseline"][name] - held_out["after"][name]
        if metric in _LOWER_IS_BETTER:
            lost = -lost
        drops.append(
            {
                "task": name,
                "role": "task" if name == task else "same_skill" if name in same_skill else "other",
                "metric": metric,
                "items": held_out["items"][name],
                "before": old["baseline"][name],
                "after": held_out["after"][name],
                "drop": held_out["drop"] if name == task else lost,
            }
        )
    return drops


def _statistics(old: Mapping[str, Any]) -> Data:
    """Returns the `evidence` of schema 1, without scores and without the claim."""
    off_target, specific = old["off_target"], old["specific"]
    return {
        "drops": [
            {
                **{
                    name: line[name]
                    for name in ("task", "role", "metric", "items", "before", "after")
                },
                "drop": line["drop"]["value"],
                "ci": _ends(line["drop"]),
                **{name: line[name] for name in ("test", "p", "p_holm")},
            }
            for line in old["drops"]
        ],
        "off_target_ci": _ends(off_target),
        "specific_ci": _ends(specific),
        **{
            name: old[name]
            for name in (
                "level", "controls", "members", "curve", "ablations", "crossings", "failures",
                "samples", "verdict", "notes",
            )
        },
    }  # fmt: skip


def _ends(interval: Mapping[str, float] | None) -> list[float] | None:
    return None if interval is None else [interval["low"], interval["high"]]


def _verification(old: Data) -> Data:
    """Schema 1 kept every score in `drops`, and name and fingerprint instead of the model."""
    off_target, specific = old["off_target"], old["specific"]
    claimed = next(line for line in old["drops"] if line["role"] == "task")
    return {
        "broca": old["broca"],
        "model": {"name": old["model"], "fingerprint": old["fingerprint"]},
        **{name: old[name] for name in ("task", "heads", "seed", "rows")},
        "ablation": {"kind": old["ablation"], "scale": old["scale"]},
        "off_target_drop": None if off_target is None else off_target["value"],
        "specific_drop": (specific or claimed["drop"])["value"],
        **_statistics(old),
    }


def _stress_test(old: Data) -> Data:
    """Schema 1 had name and fingerprint instead of the model, and no version of broca."""
    return {
        **{name: value for name, value in old.items() if name != "fingerprint"},
        "broca": "",
        "model": {"name": old["model"], "fingerprint": old["fingerprint"]},
    }


def _neuron_experiment(old: Data) -> Data:
    """Schema 1 called the value of an interval `mean`, and repeated the number of items as `n`."""
    return {**old, "result": _with_value(old["result"])}


def _with_value(data: Any) -> Any:
    if isinstance(data, list):
        return [_with_value(part) for part in data]
    if not isinstance(data, dict):
        return data
    if {*data} == {"mean", "low", "high", "n"}:
        return {"value": data["mean"], "low": data["low"], "high": data["high"]}
    return {name: _with_value(part) for name, part in data.items()}


def _unchanged(old: Data) -> Data:
    """Schema 1 lacks only the kind."""
    return old


_RENAMED = {
    "localization": ((("verification", "members"), "beside", "other_members"),),
    "verification": ((("members",), "beside", "other_members"),),
    "comparison": ((("carries",), "own", "own_selection"),),
    "diagnosis": ((("checks",), "found", "description"),),
}
"""Keys that were renamed within schema 2: their place, the former name, and the name."""

_STEPS: dict[tuple[str, int], Callable[[Data], Data]] = {
    ("localization", 1): _localization,
    ("verification", 1): _verification,
    ("atlas", 1): _unchanged,
    ("stress test", 1): _stress_test,
    ("neuron set", 1): _unchanged,
    ("neuron experiment", 1): _neuron_experiment,
    ("refit", 1): _unchanged,
    ("reproduction", 1): _unchanged,
}
"""Functions that upgrade a kind from a schema to the next."""
