"""The sentences of fields and parameters."""

import subprocess
import sys
from dataclasses import fields, is_dataclass
from importlib.metadata import EntryPoint

import pytest

from broca import options
from broca.options import ExecutorOptions, field_help, sentences

CLASSES = [
    cls for name, cls in vars(options).items() if name.endswith("Options") and is_dataclass(cls)
]


@pytest.mark.parametrize("cls", CLASSES)
def test_every_field_has_a_sentence_and_a_default(cls):
    """Every field has a sentence for `--help`; a class can be made without arguments."""
    assert list(field_help(cls)) == [field.name for field in fields(cls)]
    assert all(text.endswith(".") for text in field_help(cls).values())
    assert cls() == cls()


def test_names_of_records_stand_for_placeholders(monkeypatch):
    """Placeholders are replaced by the names of records, those of other packages last."""
    entry = EntryPoint("slurm", "theirs:SLURM", "broca.executors")
    monkeypatch.setattr(
        "importlib.metadata.entry_points",
        lambda group: [entry] if group == entry.group else [],
    )
    monkeypatch.setattr(sentences, "_names", sentences._names.__wrapped__)
    assert options.filled("Use {executors} or {ablations}; {other} stays.") == (
        "Use local, ray, slurm or zero, mean, resample; {other} stays."
    )
    assert "local, ray, slurm;" in field_help(ExecutorOptions)["executor"]


def test_nothing_heavy_is_loaded():
    """Reading the options for `--help` imports neither numpy, torch nor transformers."""
    code = (
        "import sys; from broca import options; options.field_help(options.AblationOptions);"
        "print([name for name in ('numpy', 'torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
