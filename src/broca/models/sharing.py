"""What the rows of a batch may share, proved on the loaded model.

Padding, cached prefixes, running batches and lower layers are shared only where a test on random
tokens shows that every row's log-probabilities stay what they are in the plain model, one row at a
time. Rules that look at positions (windows, chunks, scaled rotary embeddings) begin to matter at
some length: the proof holds for rows up to its length, and longer rows need a longer proof.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from broca.errors import UnsupportedModel, first_line, is_shortage
from broca.models.caches import Continuation, Reread, continuations, join, left_padded, trim_left
from broca.models.caches import is_plain as is_plain_cache
from broca.models.structure import adapted_matrix, is_plain, is_projection, text_config

if TYPE_CHECKING:
    from broca.models.gated import GatedModel

RowLayout = Callable[[Sequence[int]], Iterable[Continuation]]
"""Makes batches of rows of the test."""

SHORTEST = 16
"""Length of the shortest proof, in tokens."""

AT_LOAD = 64
"""Length of the proof when a model is loaded."""

_TOKENS_READ = 15
"""Approximate number of tokens that a proof reads, in units of its length."""

_FAST_ON_CPU = 1e12
"""Number of floating-point operations that a proof at load may take on a CPU: a few seconds."""

_GIVEN = (3, 1, 3, 2)
"""Number of last tokens of every row of the test that are given one at a time."""

_COMPARED = 5
"""Number of positions before them that are compared."""

_QUANTIZED = 1e-1
"""Tolerance for quantized weights, whose kernels round their inputs."""

_TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
"""Mean difference, relative to the spread, that counts as equal in the self-test."""

_ALMOST = {"float64": 1e-9, "float32": 3e-4}
"""Mean difference of rows, relative to the spread, that counts as equal."""

_ALMOST_COARSE = 1e-2
"""The same in other formats and for quantized weights."""

_ROUNDING = 3.0
"""The same in units of the row's rounding error."""

_CHAOTIC = 0.3
"""Maximum of the latter relative to the spread: rows that rounding changes more prove little."""


@dataclass(frozen=True)
class Sharing:
    """What was proved for rows up to some length.

    Attributes:
        decoding: broca's loop generates what transformers' `generate` does; else that is used.
        padding: Rows of unequal lengths, padded on the left, are read and decoded together.
        joining: Padding is trimmed and rows enter a running batch.
        prefixes: A cached prefix is read once for several rows.
        layers: Layers below the first ablated one are run once for several masks.
        details: What was measured, or the exception, for each of them by name.
        seconds: Time of the proof.
    """

    decoding: bool
    padding: bool
    joining: bool
    prefixes: bool
    layers: bool
    details: dict[str, str]
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether everything may be shared."""
        return all(getattr(self, way) for way in WAYS)


WAYS = {
    "decoding": "several rows are generated in one loop",
    "padding": "rows of unequal lengths run together",
    "joining": "rows enter a running batch",
    "prefixes": "a shared prefix is read once",
    "layers": "layers below the ablated ones are run once",
}
"""What is said of each way of sharing in `broca scan`."""


NOTHING = Sharing(False, False, False, False, False, dict.fromkeys(WAYS, "not tested"), 0.0)
"""What rows share that are longer than the model can run in a test."""


def proof_length(length: int) -> int:
    """Returns the length of the proof that rows of `length` tokens need: a power of two."""
    return max(SHORTEST, 1 << (length - 1).bit_length())


def load_length(model: GatedModel) -> int:
    """Returns the length of the proof at load: beyond the model's windows, if that is fast.

    The names of windows in configurations decide nothing else: a row that is longer than every
    proof so far is not run before a longer one.
    """
    config = text_config(model.model.config).to_dict()
    windows = [
        value
        for name, value in config.items()
        if ("window" in name or "chunk" in name) and type(value) is int
    ]
    length = proof_length(2 * max([AT_LOAD // 2, *windows]))
    weights = sum(weight.numel() for weight in model.model.parameters())
    operations = 2 * weights * _TOKENS_READ * length
    fast = operations <= (_FAST_ON_CPU if model.device.type == "cpu" else 100 * _FAST_ON_CPU)
    return length if fast else AT_LOAD


@torch.no_grad()
def prove(model: GatedModel, length: int) -> Sharing | None:
    """Tests what rows of up to `length` tokens may share, within `in_use`.

    Args:
        model: The model; its components must be intact.
        length: Length of the longest row of the test.

    Returns:
        What was proved; None if the model cannot run rows of this length.

    Raises:
        UnsupportedModel: The model gives the same tokens other answers each time.
    """
    start = time.perf_counter()
    try:
        test = _Test(model, length)
    except Exception as error:  # beyond its positions, the code of a model may raise anything
        if is_shortage(error):
            raise
        return None
    test.require_repeatable(test.noise)
    results: dict[str, bool] = {}
    details: dict[str, str] = {}

    def ask(name: str, check: Callable[[], Pairs]) -> None:
        if not results.get("padding", True):
            results[name], details[name] = False, "not without padding"
            return
        try:
            results[name], details[name] = test.agrees(check(), single=name == "decoding")
        except Exception as error:  # the code of a model may raise anything
            if isinstance(error, UnsupportedModel) or is_shortage(error):
                raise
            results[name], details[name] = False, f"{type(error).__name__}: {first_line(error)}"

    ask("decoding", test.generated)
    ask("padding", partial(test.decoded, test.padded, [(0, 2, 3), (1,)]))
    ask("joining", partial(test.decoded, test.padded, [(0, 1, 2)], joined=3))
    ask("prefixes", partial(test.decoded, test.shared, [(0, 1, 2)]))
    if results["prefixes"] and not test.reads_states():
        results["prefixes"], details["prefixes"] = False, "its recurrent states are not read"
    ask("layers", test.resumed)
    return Sharing(**results, details=details, seconds=time.perf_counter() - start)


def tolerance_of(model: GatedModel) -> float:
    """Returns the relative difference that counts as equal in the self-test of this model."""
    quantized = getattr(model.model.config, "quantization_config", None) is not None or any(
        is_projection(point.module) and not _holds_plain_weights(point.module)
        for point in model.points
    )
    return _QUANTIZED if quantized else _TOLERANCE.get(model.dtype, 1e-1)


def _holds_plain_weights(module: nn.Module) -> bool:
    weight = getattr(adapted_matrix(module) or module, "weight", None)
    return isinstance(weight, Tensor) and (is_plain(weight) or weight.is_meta)


Pairs = Sequence[tuple[Tensor, Tensor, float]]
"""Measured log-probabilities, `(positions, vocabulary)`, those of the plain model, and how far
rounding moves these."""


class _Test:
    """Four rows under three masks: two behind a long prefix, one behind a short one, one short row.

    The last tokens of every row are given one at a time; a row leaves its batch after them.

    Args:
        model: The model.
        length: Length of the longest row.
    """

    def __init__(self, model: GatedModel, length: int) -> None:
        self._model = model
        self._recurrent = False
        generator = torch.Generator().manual_seed(4)

        def draw(count: int) -> list[int]:
            return torch.randint(0, model.vocabulary, (count,), generator=generator).tolist()

        # odd lengths: recurrent layers read multiples of some power of two differently
        long, short = draw(length * 5 // 8 - 1), draw(length // 4 - 1)
        self._prefixes, self._group = (long, short), (0, 0, 1)
        self._rows = [
            long + draw(length - len(long)),
            long + draw(max(_GIVEN[1] + 1, length // 8)),
            short + draw(_GIVEN[2] + 1),
            draw(_GIVEN[3] + 2),
        ]
        masks = torch.rand(3, len(model.components), generator=generator) > 0.1
        self._gates = masks.float()[[0, 0, 1, 2]]
        state = torch.get_rng_state()
        alone = [self._alone(row) for row in range(len(self._rows))]
        drawn = not torch.equal(torch.get_rng_state(), state)  # by a model on a CPU
        self._reference = [single for single, _, _ in alone]
        self._rounding = [rounding for _, rounding, _ in alone]
        again = mean_difference(self._alone(0)[0], self._reference[0])
        self.noise = torch.inf if drawn else max(again, *(noise for _, _, noise in alone))
        """Largest difference of a row asked again, or of equal rows of a batch; infinite if the
        model draws random numbers."""
        values = torch.cat(self._reference)
        finite = values[values.isfinite()]
        self.spread = float(finite.std()) + 1e-12 if len(finite) > 1 else 1e-12
        """Standard deviation of the plain model's log-probabilities."""

    def _alone(self, row: int) -> tuple[Tensor, float, float]:
        """Returns a row's last log-probabilities in the plain model, `(positions, vocabulary)`.

        With them come their rounding error, and their difference from those of an equal row. The
        rounding error is the change in a batch of two whose gates differ from 1 in the last place:
        deep models amplify that, on some tokens a hundred times.
        """
        keep = min(_COMPARED + _GIVEN[row], len(self._rows[row]))
        gates = self._gates[[row]]
        dtype = self._model.dtype if self._model.dtype in _TOLERANCE else "bfloat16"
        steps = torch.randn(gates.shape, generator=torch.Generator().manual_seed(row))
        moved = gates * (1 + torch.finfo(getattr(torch, dtype)).eps * steps)
        read: list[Tensor] = []
        for each in (gates, moved.repeat(2, 1)):
            tokens = torch.tensor([self._rows[row]] * len(each), device=self._model.device)
            with self._model.gates(each):
                logits, _ = self._model.forward(tokens, torch.ones_like(tokens), keep=keep)
            read += log_probabilities(logits)
        single, rounded, equal = read
        return single, mean_difference(rounded, single), mean_difference(rounded, equal)

    def require_repeatable(self, difference: float) -> None:
        """Refuses a model that gives the same tokens other log-probabilities or logits each time.

        Raises:
            UnsupportedModel: The difference of two equal runs is larger than rounding explains.
        """
        if difference > _QUANTIZED * self.spread:
            raise UnsupportedModel(
                f"architecture '{self._model.architecture}' is not covered: it gives the same "
                "tokens other answers each time"
            )

    def agrees(self, measured: Pairs, *, single: bool = False) -> tuple[bool, str]:
        """Compares log-probabilities with those of the plain model.

        Args:
            measured: The log-probabilities of rows.
            single: Whether they went through single precision, as `generate` gives its logits.
        """
        quantized = tolerance_of(self._model) == _QUANTIZED
        known = {} if quantized else _ALMOST
        tolerance = known.get(self._model.dtype, _ALMOST_COARSE)
        tolerance = max(tolerance, _ALMOST["float32"] if single else 0)
        compared = []
        for values, reference, rounding in measured:
            most = max(tolerance, min(_ROUNDING * rounding / self.spread, _CHAOTIC)) * self.spread
            compared.append((mean_difference(values, reference), most))
        worst, allowed = max(compared, key=lambda one: one[0] / one[1])
        return worst <= allowed, f"mean difference {worst:.2g}, tolerance {allowed:.2g}"

    def padded(self, rows: Sequence[int]) -> list[Continuation]:
        """Lays out rows without their given tokens, padded on the left."""
        sequences = [self._read(row) for row in rows]
        return [Continuation(list(rows), *left_padded(sequences, device=self._model.device), None)]

    def shared(self, rows: Sequence[int], *, amplified: float = 1.0) -> Iterator[Continuation]:
        """Lays out rows without their given tokens behind prefixes that are read once.

        Args:
            rows: The rows.
            amplified: Factor of the recurrent states after the prefixes.
        """
        tokens, attention = left_padded(self._prefixes, device=self._model.device)
        with self._model.gates(self._gates[[self._group.index(0), self._group.index(1)]]):
            _, cache = self._model.forward(tokens, attention, keep=1, use_cache=True)
        if isinstance(cache, Reread):
            raise RuntimeError("the model has no cache")
        for layer in getattr(cache, "layers", ()):
            states = getattr(layer, "recurrent_states", {})
            for index, state in states.items():
                if isinstance(state, Tensor):
                    states[index] = state * amplified
                    self._recurrent = True
        members = [(self._group[row], self._read(row)) for row in rows]
        lengths = [len(prefix) for prefix in self._prefixes]
        batches = continuations(cache, lengths, members, rows=len(rows), device=tokens.device)
        for batch in batches:
            yield batch._replace(members=[rows[member] for member in batch.members])

    def reads_states(self) -> bool:
        """Whether rows behind a cached prefix depend on its recurrent states, if there are any.

        States that fade within the prefix would hide that they are not read.
        """
        if not self._recurrent:
            return True
        changed = self.decoded(partial(self.shared, amplified=1e3), [(0, 1, 2)])
        return not self.agrees(changed)[0]

    def _read(self, row: int) -> list[int]:
        return self._rows[row][: -_GIVEN[row]]

    def decoded(
        self, layout: RowLayout, groups: Sequence[Sequence[int]], *, joined: int | None = None
    ) -> Pairs:
        """Reads rows and then their given tokens one at a time.

        Args:
            layout: Makes batches of rows.
            groups: The rows; a batch has rows of one group.
            joined: A row that enters the batch after its first step. Then padding is trimmed too.

        Returns:
            The log-probabilities of each row, with those of the plain model.
        """
        device = self._model.device
        measured: dict[int, list[Tensor]] = {}
        left = dict(enumerate(_GIVEN))
        for batch in (batch for rows in groups for batch in layout(rows)):
            rows, attention, cache = self._prefilled(batch, measured)
            while rows:
                given = [[self._rows[row][-left[row]]] for row in rows]
                attention = nn.functional.pad(attention, (0, 1), value=1)
                with self._model.gates(self._gates[rows]):
                    logits, cache = self._model.forward(
                        torch.tensor(given, device=device), attention, keep=1, cache=cache,
                        use_cache=True,
                    )  # fmt: skip
                for row, value in zip(rows, logits, strict=True):
                    measured[row].append(log_probabilities(value))
                    left[row] -= 1
                stay = [at for at, row in enumerate(rows) if left[row]]
                if len(stay) < len(rows):
                    rows = [rows[at] for at in stay]
                    if stay:
                        index = torch.tensor(stay, device=attention.device)
                        cache.reorder_cache(index)
                        attention = attention[index]
                        if joined is not None:
                            attention = trim_left(cache, attention)
                if joined is not None and joined not in measured:
                    if not is_plain_cache(cache):
                        raise RuntimeError("its cache does not keep an entry for each token")
                    (entering,) = layout([joined])
                    entered, others_attention, other = self._prefilled(entering, measured)
                    rows += entered
                    attention = join(cache, attention, other, others_attention)
        together = [(row, torch.cat(rows)) for row, rows in measured.items()]
        return [
            (values, self._reference[row][-len(values) :], self._rounding[row])
            for row, values in together
        ]

    def _prefilled(
        self, batch: Continuation, measured: dict[int, list[Tensor]]
    ) -> tuple[list[int], Tensor, Any]:
        """Reads the new tokens of a batch; returns its rows, their attention mask and the cache."""
        rows, tokens, attention, cache = batch
        with self._model.gates(self._gates[rows]):
            logits, cache = self._model.forward(
                tokens, attention, keep=_COMPARED, cache=cache, use_cache=True
            )
        present = attention[:, -logits.shape[1] :].bool()
        for row, values, kept in zip(rows, logits, present, strict=True):
            measured[row] = [log_probabilities(values[kept])]
        return rows, attention, cache

    def generated(self) -> Pairs:
        """Returns the logits of `generate`, with those of the plain model on what it generated."""
        row, model = 1, self._model
        tokens = torch.tensor([self._read(row)], device=model.device)
        with model.gates(self._gates[[row]]):
            new, logits = model.generated(tokens, longest=max(_GIVEN))
            again, repeated = model.generated(tokens, longest=max(_GIVEN))
            for step in range(min(len(new), len(again))):
                if new[:step] == again[:step]:
                    self.require_repeatable(mean_difference(repeated[step], logits[step]))
            whole = torch.cat([tokens, torch.tensor([new[:-1]], device=model.device).long()], 1)
            plain, _ = model.forward(whole, torch.ones_like(whole), keep=len(new))
        return [(log_probabilities(logits), log_probabilities(plain[0]), self._rounding[row])]

    def resumed(self) -> Pairs:
        """Runs a padded batch from a middle layer on, and its attention from its projection on."""
        model = self._model
        if not model.resumption.possible:
            raise RuntimeError("layers cannot be skipped")
        rows = [0, 3]  # the longest and the shortest
        tokens, attention = left_padded([self._rows[row] for row in rows], device=model.device)
        middle = model.structure.layers // 2
        with model.resumption.layer_inputs() as inputs, model.resumption.head_outputs() as heads:
            model.forward(tokens, attention, keep=1)
        gates = self._gates[rows]
        gates[:, torch.tensor(model.first_layers) < middle] = 1
        with model.gates(gates):
            whole, _ = model.forward(tokens, attention, keep=_COMPARED)
            with model.resumption.at(middle, inputs[middle], heads.get(middle)):
                logits, _ = model.forward(tokens, attention, keep=_COMPARED)
        present = attention[:, -logits.shape[1] :].bool()
        rounding = max(self._rounding)
        return [(log_probabilities(logits[present]), log_probabilities(whole[present]), rounding)]


def mean_difference(first: Tensor, second: Tensor) -> float:
    """Returns the root of the mean squared difference.

    Equal infinities and two NaN do not differ. The largest difference would say little: rounding
    moves single positions a hundred times more than most.
    """
    equal = (first == second) | (first.isnan() & second.isnan())
    differences = torch.where(equal, 0.0, first - second).nan_to_num(torch.inf)
    return float(differences.square().mean().sqrt())


def log_probabilities(logits: Tensor) -> Tensor:
    """Returns log-probabilities in at least single precision."""
    return torch.log_softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)), dim=-1)
