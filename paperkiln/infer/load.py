"""Open a model, whatever it is stored as: a run folder, a Hugging Face folder or a GGUF file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paperkiln.errors import PaperkilnError
from paperkiln.infer.decode import NumpyDecoder
from paperkiln.models.config import ModelConfig, parameter_shapes
from paperkiln.train.tokenizers import Tokenizer

if TYPE_CHECKING:
    import numpy as np


@dataclass
class LoadedModel:
    """A model with its tokenizer, ready to use; `spec` is what its file says about its making."""

    config: ModelConfig
    params: dict[str, np.ndarray]  # canonical names, float32
    tokenizer: Tokenizer
    spec: dict[str, Any]  # a run's resolved spec, a GGUF's metadata, or empty
    notes: list[str] = field(default_factory=list)  # what was converted or left out on the way

    @cached_property
    def decoder(self) -> NumpyDecoder:
        """The decoder that generates; its weights are prepared on first use."""
        return NumpyDecoder(self.config, self.params)


def load_run(path: str | os.PathLike[str]) -> LoadedModel:
    """Load the model at `path`: a run folder, a Hugging Face folder or a .gguf file.

    Raises PaperkilnError saying what is missing, foreign or of another version.
    """
    path = Path(path)
    if not path.exists():
        raise PaperkilnError(f"{path}: no such run folder or model file")
    if path.is_file():
        model = _load_file(path)
    elif (path / "spec.json").exists():
        model = _load_run_folder(path)
    elif (path / "config.json").exists():
        from paperkiln.formats.hf import load_hf

        config, params, tokenizer, notes = load_hf(path)
        model = LoadedModel(config, params, tokenizer, {}, notes)
    else:
        raise PaperkilnError(
            f"{path}: no spec.json (a run folder) and no config.json (a Hugging Face folder)"
        )
    if model.tokenizer is None:
        raise PaperkilnError(f"{path}: no usable tokenizer: {'; '.join(model.notes)}")
    if model.tokenizer.vocab_size > model.config.vocab_size:
        raise PaperkilnError(
            f"{path}: the tokenizer has {model.tokenizer.vocab_size} tokens, the model only "
            f"{model.config.vocab_size}; they do not belong together"
        )
    return model


def _load_file(path: Path) -> LoadedModel:
    with path.open("rb") as file:
        magic = file.read(4)
    if magic != b"GGUF":
        hint = "give its folder" if path.suffix in (".safetensors", ".json") else "not a model"
        raise PaperkilnError(f"{path}: not a GGUF file; {hint}")
    from paperkiln.formats.gguf_io import load_gguf
    from paperkiln.formats.gguf_tokenizer import why_none

    config, params, tokenizer, metadata = load_gguf(path)
    notes = [] if tokenizer else [why_none(metadata)]
    return LoadedModel(config, params, tokenizer, metadata, notes)


def _load_run_folder(folder: Path) -> LoadedModel:
    from paperkiln.formats.hf import params_from_tensors
    from paperkiln.formats.safetensors_io import load_tensors
    from paperkiln.spec import read_spec

    weights, notes = folder / "model.safetensors", []
    if not weights.exists() and (folder / "best.safetensors").exists():
        weights = folder / "best.safetensors"
        notes.append(f"{folder}: the run has not finished; these are its best weights so far")
    for path in (folder / "tokenizer.json", weights):
        if not path.exists():
            raise PaperkilnError(
                f"{folder}: no {path.name}; the run has not finished: continue it with --resume"
            )
    spec = read_spec(folder / "spec.json")
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    if spec.arch.vocab_size is None:
        raise PaperkilnError(f"{folder / 'spec.json'}: arch.vocab_size is unset: not a run's spec")
    tensors, _, converted = load_tensors(weights)
    if weights.name == "model.safetensors":  # which has the names of the world outside
        tensors = params_from_tensors(spec.arch, tensors, str(weights))
    elif {n: t.shape for n, t in tensors.items()} != parameter_shapes(spec.arch):
        raise PaperkilnError(f"{weights}: its parameters are not those of the model; it is damaged")
    return LoadedModel(spec.arch, tensors, tokenizer, spec.model_dump(), notes + converted)
