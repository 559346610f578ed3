"""The callback measures a model during training and does not change it."""

import json
import random

import pytest
import torch
from claims import claimed
from independent import plain_loglikelihood, zeroed_by_hand
from integrations.recorder import Recorder
from journals import totals
from tiny import tiny_llama, tiny_tokenizer
from transformers import Trainer, TrainerState, TrainingArguments
from transformers import TrainerCallback as TransformersCallback

from broca.errors import BadInput, UnknownName
from broca.integrations import Log, TrainerCallback
from broca.models import GatedModel
from broca.store import Condition, Journal


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """Two files of choices that can score a random model."""
    folder = tmp_path_factory.mktemp("tasks")
    for name in ("first", "second"):
        lines = (
            {"prompt": f"{name} {n} is", "choices": [" a", " b", " c"], "label": n % 3}
            for n in range(40)
        )
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return [str(folder / f"{name}.jsonl") for name in ("first", "second")]


def train(model, folder, callback, steps=4):
    """Trains for a few steps."""
    tokens = [{"input_ids": [3 + n, 5, 7, 9], "labels": [3 + n, 5, 7, 9]} for n in range(16)]
    arguments = TrainingArguments(
        output_dir=str(folder), max_steps=steps, per_device_train_batch_size=2, report_to=[],
        save_strategy="no", logging_strategy="no", learning_rate=1e-2, use_cpu=True, seed=0,
        disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(
        model=model, args=arguments, train_dataset=tokens, processing_class=tiny_tokenizer(),
        callbacks=[callback],
    )  # fmt: skip
    trainer.train()
    return trainer


def test_the_specific_drop_is_measured_every_few_steps(tasks, tmp_path):
    """The drop equals a plain computation and is logged; the weights are trained as without it."""
    recorder = Recorder()
    with Log(recorder.kind) as log:
        callback = TrainerCallback(
            tasks[0], "L0H1+L1H2", others=tasks[1:], every=2, limit=12, log=log
        )
        trainer = train(tiny_llama(), tmp_path / "with", callback)
    assert [values["step"] for values in callback.history] == [2, 4]
    assert [line for line in trainer.state.log_history if "broca/drop" in line] == callback.history
    assert [step for _, step in recorder.named("log")] == [2, 4]
    for values in callback.history:
        lost = {
            task: values[f"broca/intact/{task}"] - values[f"broca/ablated/{task}"] for task in tasks
        }
        assert values["broca/drop"] == pytest.approx(lost[tasks[0]])
        assert values["broca/specific_drop"] == pytest.approx(lost[tasks[0]] - lost[tasks[1]])

    drawn = random.getstate()
    plain = train(tiny_llama(), tmp_path / "without", TransformersCallback())
    assert random.getstate() == drawn
    for name, weight in plain.model.named_parameters():
        assert torch.equal(weight, trainer.model.get_parameter(name)), name
        assert trainer.model.get_parameter(name).requires_grad
    plain = zeroed_by_hand(trainer.model, [(0, 1), (1, 2)])
    ablated = callback.history[-1][f"broca/ablated/{tasks[0]}"]
    assert ablated == pytest.approx(accuracy(plain, tasks[0], limit=12))


def accuracy(model, path, *, limit):
    """Returns the accuracy on the callback's report items by the largest log-likelihood."""
    tokenizer = tiny_tokenizer()
    gated = GatedModel.wrap(model, tokenizer, name="plain")
    tasks = claimed(gated, path, others=[], items=8, seed=0, limit=limit, searched="task")
    right = []
    for place in tasks.places["report"][path]:
        document = tasks.benchmarks[path].document(tasks.bank[place][1])
        prompt, *choices = map(tokenizer.encode, [document["prompt"], *document["choices"]])
        scores = [plain_loglikelihood(model, prompt, choice)[0] for choice in choices]
        right.append(scores.index(max(scores)) == document["label"])
    return sum(right) / len(right)


def test_a_repeated_training_measures_nothing_again(tasks, tmp_path):
    """A journal keeps the rows of every step; the same training, interrupted before, reads it."""
    histories, rows = [], []
    begun = {"model": tiny_llama(), "processing_class": tiny_tokenizer()}
    journal = tmp_path / "j.sqlite"
    for number in range(2):
        callback = TrainerCallback(tasks[0], "L0H1+L1H2", every=2, limit=12, journal=journal)
        callback.on_train_begin(None, TrainerState(), None, **begun)
        assert callback._options.journal_options.journal.journal  # held by what was interrupted
        train(tiny_llama(), tmp_path / str(number), callback)
        histories.append(callback.history)
        with Journal(journal, read_only=True) as opened:
            rows.append(totals(opened))
            conditions = [Condition.read(line.text) for line in opened.lines("conditions")]
    assert histories[0] == histories[1]
    assert rows[0] == rows[1]
    assert rows[0]["rows"] == 2 * 2 * 12  # steps, masks, items
    assert len({condition.weights for condition in conditions}) == 2


@pytest.mark.parametrize(
    ("name", "number"), [("every", 0), ("limit", 2.5), ("seed", -1), ("dtype", "half")]
)
def test_bad_input_is_refused_before_training(tasks, tmp_path, name, number):
    """No heads, bad numbers, and before the first step a missing component are refused."""
    with pytest.raises(BadInput, match="no heads are named"):
        TrainerCallback(tasks[0], "")
    for given, message in (({"scale": 1}, "ablates nothing"), ({"log": "wandb"}, "give an open")):
        with pytest.raises(BadInput, match=message):
            TrainerCallback(tasks[0], "L0H1", **given)
    with pytest.raises(BadInput, match=f"`{name}` (must be a whole .* {number}$|is for loading)"):
        TrainerCallback(tasks[0], "L0H1", **{name: number})
    with pytest.raises(UnknownName, match="no component 'L9H1'"):
        train(tiny_llama(), tmp_path, TrainerCallback(tasks[0], "L9H1"))
    with pytest.raises(BadInput, match="has no metric 'f1'"):
        TrainerCallback(tasks[0], "L0H1", metric="f1").on_train_begin(
            None, TrainerState(), None, model=tiny_llama(), processing_class=tiny_tokenizer()
        )
