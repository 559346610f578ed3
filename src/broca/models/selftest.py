"""Tests the gates on the loaded model, at every load.

Four checks, on random tokens: gates of one change no bit; every head contributes to its
projection's output, and the contributions plus the bias make up that output; gates of zero equal
the model with the weights behind them zeroed (columns of the output projection for heads); a batch
of different masks equals its rows one by one, in prefill and in decoding. What rows may share
beyond that is proved by `broca.models.sharing` and not required.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from broca.errors import BadInput, SelfTestFailed
from broca.models.gated import GatedModel
from broca.models.gates import GatePoint, captured
from broca.models.sharing import WAYS, load_length, log_probabilities, mean_difference, tolerance_of
from broca.models.structure import adapted_matrix, is_plain, is_projection, is_transposed, widths
from broca.results.checks import Check

_ROWS, _TOKENS, _DECODED = 3, 8, 2


def self_test(model: GatedModel) -> tuple[Check, ...]:
    """Runs every check and returns them, passed or not."""
    checks = (
        ("gates of one change no bit", _ones_are_exact),
        ("slices make up the projection's output", _slices_make_up_output),
        ("gates of zero equal zeroed weights", _zeros_equal_zeroed_weights),
        ("a batch of mixed masks equals its rows", _batch_equals_rows),
    )
    results = []
    for name, check in checks:
        start = time.perf_counter()
        with model.in_use(), torch.no_grad():
            passed, detail = check(model)
        results.append(Check(name, passed, detail, time.perf_counter() - start))
    return tuple(results)


def sharing_checks(model: GatedModel) -> tuple[int, tuple[Check, ...]]:
    """Returns the length of the proof at load, and what rows of up to this length may share."""
    length = load_length(model)
    sharing = model.sharing(length)
    return length, tuple(
        Check(name, getattr(sharing, way), sharing.details[way], sharing.seconds / len(WAYS))
        for way, name in WAYS.items()
    )


def require_self_test(model: GatedModel) -> tuple[Check, ...]:
    """Runs the self-test.

    Raises:
        SelfTestFailed: A check failed; the message names it.
        UnsupportedModel: The model gives the same tokens other answers each time.
        BadInput: A weight is NaN; the message names it.
    """
    for name, weight in model.model.named_parameters():
        if is_plain(weight) and bool(weight.isnan().any()):
            raise BadInput(
                f"model '{model.name}' cannot be run: {name} holds NaN; its checkpoint is damaged, "
                "or its training diverged: give another one"
            )
    checks = self_test(model)
    for check in checks:
        if not check.passed:
            raise SelfTestFailed(
                f"self-test of '{model.name}' failed: {check.name} does not hold "
                f"({check.detail}); no ablation of this model can be trusted, please report it"
            )
    model.sharing(load_length(model))
    return checks


def _tokens(model: GatedModel, rows: int = _ROWS, *, padded: bool = True) -> tuple[Tensor, Tensor]:
    """Returns random tokens and their attention mask, left-padded to different lengths or not."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, model.vocabulary, (rows, _TOKENS), generator=generator)
    attention = torch.ones_like(tokens)
    for row in range(rows if padded else 0):
        attention[row, : 2 * row] = 0
    return tokens.to(model.device), attention.to(model.device)


def _masks(model: GatedModel, rows: int) -> Tensor:
    """Returns gates `(rows, components)` with a tenth of the heads ablated, row by row."""
    generator = torch.Generator().manual_seed(2)
    gates = (torch.rand(rows, len(model.components), generator=generator) > 0.1).float()
    for point in model.points:
        if point.place == "input" and point.units > 1:
            gates[:, point.first_column] = 0  # every projection has a closed gate
    return gates


def _agree(model: GatedModel, measured: Tensor, reference: Tensor) -> tuple[bool, str]:
    difference = mean_difference(measured, reference)
    # those of -inf, as of padded vocabulary, say nothing of the others
    spread = float(reference[reference.isfinite()].std()) + 1e-12
    allowed = tolerance_of(model) * max(spread, 1.0)
    sound = not bool((measured.isnan() | measured.isposinf()).any())
    detail = f"mean difference {difference:.2g}, tolerance {allowed:.2g}"
    return sound and difference <= allowed, detail


def _ones_are_exact(model: GatedModel) -> tuple[bool, str]:
    tokens, attention = _tokens(model)
    bare, _ = model.forward(tokens, attention, keep=_TOKENS)
    ones = torch.ones(len(tokens), len(model.components))
    with model.gates(ones, force=True):
        hooked, _ = model.forward(tokens, attention, keep=_TOKENS)
    changed = int((bare != hooked).sum())
    return changed == 0, f"{changed} of {bare.numel()} logits changed"


def _slices_make_up_output(model: GatedModel) -> tuple[bool, str]:
    points = [point for point in model.points if point.place == "input"]
    if not points:
        return True, "no component is a slice of a projection's input"
    tokens, attention = _tokens(model)
    with captured(points) as inputs:
        model.run_whole(tokens, attention)
    unreached = [point.path for point in points if point not in inputs]
    if unreached:
        return False, f"{unreached[0]} was never run"
    worst = 0.0
    for point in points:
        # the last token is never padding: (rows, units * width)
        x = inputs[point].reshape(*tokens.shape, -1)[:, -1]
        output, zero = _precise(point.module(x)), _precise(point.module(torch.zeros_like(x)))
        linear, total = is_projection(point.module), zero
        for part in _parts(point).to(x.device):
            only = torch.where(part, x, 0)
            if linear:
                change = _precise(point.module(only)) - zero
                total = total + change
            else:  # a norm, which mixes the slices
                change = output - _precise(point.module(torch.where(part, 0, x)))
            if point.width > 1 and not bool(change.any()) and not _pruned(point, part, only):
                unit = int(part.int().argmax()) // point.width
                name = model.components[point.first_column + unit].name
                return False, f"{name} contributes nothing at {point.path}"
        if not linear:
            continue
        if not bool(total.isfinite().all()):
            return False, f"zeros in what enters {point.path} give numbers that are not finite"
        scale = float(output.abs().max()) + 1e-12
        worst = max(worst, float((total - output).abs().max()) / scale)
    tolerance = tolerance_of(model)
    return worst <= tolerance, f"largest relative difference {worst:.2g}, tolerance {tolerance:.2g}"


def _parts(point: GatePoint) -> Tensor:
    """Returns the columns of every unit in the input of a gate point, `(units, units * width)`.

    Of neurons, which are thousands and many inactive, two random halves stand for the units.
    """
    if point.width > 1:
        return torch.eye(point.units).repeat_interleave(point.width, 1).bool()
    half = torch.rand(point.units, generator=torch.Generator().manual_seed(3)) < 0.5
    return torch.stack([half, ~half])


def _precise(values: Tensor) -> Tensor:
    """Returns values in at least single precision."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _pruned(point: GatePoint, part: Tensor, only: Tensor) -> bool:
    """Whether a unit has no effect because its weights or its outputs are zero.

    A pruned or exported model has such units.

    Args:
        point: The gate point.
        part: The unit's columns in the input of the gate point, `(units * width,)`.
        only: The input with only these columns, `(rows, units * width)`.
    """
    if not bool(only.any()):
        return True
    if not is_projection(point.module):
        return False
    matrices = _matrices(point)
    if matrices is None:  # an adapter with a rule of its own, such as IA3's factors, may be zero
        return adapted_matrix(point.module) is not None
    return not any(bool(_by_input(matrix)[part].any()) for matrix in matrices)


def _matrices(point: GatePoint) -> list[nn.Module] | None:
    """Returns the matrices that read a gate point's input, or that write its output.

    There is one matrix, and with a low-rank adapter its first or last factor too. None if zeroing
    weights does not equal a gate, as for packed or computed weights and other adapters.
    """
    base = adapted_matrix(point.module)
    matrices = [base or point.module]
    if base is not None:
        factors: Any = getattr(point.module, "lora_A" if point.place == "input" else "lora_B", None)
        if factors is None or len(getattr(point.module, "lora_magnitude_vector", ())):
            return None
        active: Any = point.module.active_adapters
        matrices += [factors[name] for name in active if name in factors]
    for matrix in matrices:
        weight = getattr(matrix, "weight", None)
        # one that is computed from others, as by weight norm, is no parameter
        if not isinstance(weight, nn.Parameter) or not is_plain(weight) or weight.dim() != 2:
            return None
    return matrices


def _by_input(matrix: nn.Module) -> Tensor:
    """Returns a matrix's weight, `(inputs, outputs)`, as a writable view."""
    weight: Tensor = matrix.weight  # type: ignore[assignment]
    return weight if is_transposed(matrix) else weight.T


def _zeros_equal_zeroed_weights(model: GatedModel) -> tuple[bool, str]:
    tokens, attention = _tokens(model, rows=1)
    gates = _masks(model, rows=1)
    zeroable = [p for p in model.points if p.place in ("input", "output") and _matrices(p)]
    owners = Counter(_weight_place(point) for point in zeroable)
    # a weight that several layers share would be zeroed in all of them
    zeroable = [point for point in zeroable if owners[_weight_place(point)] == 1]
    for point in model.points:
        if point not in zeroable:
            gates[:, point.columns] = 1
    if not zeroable:
        return True, "no component has weights of its own to zero"
    with model.gates(gates):
        gated, _ = model.forward(tokens, attention, keep=_TOKENS)
    named = [_named_projection(model, point) for point in zeroable]
    for point, module in zip(zeroable, named, strict=True):
        if widths(module)[0] != widths(point.module)[0]:
            return False, f"{point.path} is not the output projection that its block names"
    zeroable = [replace(p, module=module) for p, module in zip(zeroable, named, strict=True)]
    with _zeroed_weights(zeroable, gates[0]):
        reference, _ = model.forward(tokens, attention, keep=_TOKENS)
    return _agree(model, log_probabilities(gated), log_probabilities(reference))


_OUTPUT_PROJECTIONS = ("o_proj", "out_proj", "c_proj", "wo", "dense", "o_lin", "attn_output")
"""Usual names of the output projection in an attention block."""


def _named_projection(model: GatedModel, point: GatePoint) -> nn.Module:
    """Returns the projection that the attention block of a gate point names, or the point's module.

    Where heads are gated is found by function; that the name says the same is an independent check.
    """
    found = next((p for p in model.structure.projections if p.path == point.path), None)
    if point.place == "input" and found is not None:
        block = model.model.get_submodule(found.path.rpartition(".")[0])
        for name in _OUTPUT_PROJECTIONS:
            named = getattr(block, name, None)
            if isinstance(named, nn.Module) and is_projection(named):
                return named
    return point.module


def _weight_place(point: GatePoint) -> tuple[int, str]:
    """Returns the identity of a point's weight, which modules may share."""
    weight: Tensor = (adapted_matrix(point.module) or point.module).weight  # type: ignore[assignment]
    return weight.data_ptr(), point.place


@contextmanager
def _zeroed_weights(points: Sequence[GatePoint], gates: Tensor) -> Iterator[None]:
    """A context in which the weights behind every closed gate are zero.

    For a gate at the input of a projection these are the slice's columns, at the output the whole
    weight and the bias.
    """
    saved: list[tuple[Tensor, Tensor]] = []
    try:
        for point in points:
            whole = point.place == "output"
            factor = gates[point.columns].repeat_interleave(max(1, point.width))
            for matrix in _matrices(point) or ():
                changed = [(_by_input(matrix), factor if whole else factor[:, None])]
                if whole and isinstance(bias := getattr(matrix, "bias", None), Tensor):
                    changed.append((bias, factor))
                for tensor, by in changed:
                    saved.append((tensor, tensor.detach().clone()))
                    tensor.mul_(by.to(tensor))
        yield
    finally:
        for tensor, original in reversed(saved):
            tensor.copy_(original)


def _batch_equals_rows(model: GatedModel) -> tuple[bool, str]:
    tokens, attention = _tokens(model, padded=False)
    gates = _masks(model, rows=len(tokens))
    together = _decode(model, tokens, attention, gates)
    rows = [slice(row, row + 1) for row in range(len(tokens))]
    alone = [_decode(model, tokens[row], attention[row], gates[row]) for row in rows]
    return _agree(model, together, torch.cat(alone))


def _decode(model: GatedModel, tokens: Tensor, attention: Tensor, gates: Tensor) -> Tensor:
    """Returns log-probabilities after the prompt and after each of a few given tokens.

    The decoded tokens are the first tokens of the prompt, so that a near-tie between two
    continuations cannot separate two correct runs.
    """
    steps = []
    with model.gates(gates):
        logits, cache = model.forward(tokens, attention, keep=1, use_cache=True)
        steps.append(log_probabilities(logits))
        for step in range(_DECODED):
            attention = nn.functional.pad(attention, (0, 1), value=1)
            logits, cache = model.forward(
                tokens[:, step : step + 1], attention, keep=1, cache=cache, use_cache=True
            )
            steps.append(log_probabilities(logits))
    return torch.cat(steps, dim=1)
