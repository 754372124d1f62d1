"""RunSpec: one validated object describes a run; every default is written here.

Standard library and pydantic only: the browser's spec builder is made from this file.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from paperkiln.errors import PaperkilnError
from paperkiln.models.config import ModelConfig

FORMAT_VERSION = 1  # of spec.json; raised when an older reader would misread a newer file
_MAX_SPEC_BYTES = 1 << 20
_MANY = 10**12  # steps: more than anyone takes, and a number that every reader can hold
_SHOWN = 100  # characters of a wrong value that a message repeats

Device = Literal["cpu", "cpu-fast", "torch-cpu", "cuda", "mps"]
GgufType = Literal["f32", "f16", "q8_0"]


def _check_path(path: str | None) -> str | None:
    if re.search("[\0\ud800-\udfff]", path or ""):
        raise ValueError("a path is UTF-8 text without the character NUL")
    # The shell leaves the ~ of --set data.corpus=~/text alone.
    return os.path.expanduser(path) if path else path


_IS_PATH = AfterValidator(_check_path)


class _Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False
    )


class DataSpec(_Section):
    """What is read, how it becomes tokens, and what is held out."""

    corpus: Annotated[str, _IS_PATH] = Field(
        "tinychat",
        min_length=1,
        description="A text file, a folder of .txt files, or 'tinychat' (generated).",
    )
    validation: Annotated[str | None, _IS_PATH] = Field(
        None,
        min_length=1,
        description="A text file or folder to validate on; otherwise val_fraction is split.",
    )
    val_fraction: float = Field(
        0.05, gt=0, lt=1, description="Share of the corpus, its end, that is held out."
    )
    tokenizer: Literal["bpe", "word", "byte"] = Field(
        "bpe", description="Byte-level BPE, whole words (closed vocabulary), or raw bytes."
    )
    vocab_size: int = Field(
        1024, ge=260, le=1_000_000, description="Most tokens a bpe or word tokenizer learns."
    )
    dialogues: int = Field(
        20_000, ge=10, le=10_000_000, description="tinychat: how many dialogues to generate."
    )
    seed: int = Field(1, ge=0, lt=2**63, description="tinychat: of the generator.")


class EarlyStopping(_Section):
    """When to stop before the last step."""

    patience: int = Field(
        0,
        ge=0,
        le=_MANY,
        description="Stop after this many evaluations without improvement; 0 never stops.",
    )
    min_delta: float = Field(
        0.0, ge=0, description="Nats by which the validation loss must fall to be an improvement."
    )


class TrainSpec(_Section):
    """How the model is trained."""

    steps: int = Field(500, ge=1, le=_MANY, description="Optimiser updates.")
    batch: int = Field(16, ge=1, le=65536, description="Sequences in a micro-batch.")
    accum: int = Field(1, ge=1, le=65536, description="Micro-batches summed into one update.")
    seed: int = Field(7, ge=0, lt=2**63, description="Of initial weights, batches and dropout.")
    device: Device = Field(
        "cpu", description="cpu is the numpy tape, cpu-fast adds C kernels; the others are torch."
    )
    shards: int = Field(
        2, ge=1, le=256,
        description="Parts of a batch that run on their own threads; sets the order of sums.",
    )  # fmt: skip
    optimizer: Literal["adamw", "sgd", "muon"] = Field(
        "adamw", description="muon steps the matrices inside blocks, adamw the rest."
    )
    lr: float = Field(3e-3, gt=0, le=100, description="Peak learning rate.")
    beta1: float = Field(0.9, ge=0, lt=1, description="AdamW: decay of the first moment.")
    beta2: float = Field(0.95, ge=0, lt=1, description="AdamW: decay of the second moment.")
    eps: float = Field(1e-8, gt=0, description="AdamW: added to the root of the second moment.")
    weight_decay: float = Field(0.1, ge=0, description="Decoupled decay of the weights.")
    decay_all: bool = Field(
        False, description="Decay norms, biases and embeddings too, not only matrices."
    )
    momentum: float = Field(0.9, ge=0, lt=1, description="SGD: momentum.")
    muon_lr: float = Field(0.02, gt=0, le=100, description="Muon: its own peak learning rate.")
    muon_momentum: float = Field(0.95, ge=0, lt=1, description="Muon: Nesterov momentum.")
    muon_per_head: bool = Field(
        False, description="Muon: orthogonalise each head of q, k and v on its own."
    )
    schedule: Literal["constant", "cosine", "step"] = Field(
        "cosine", description="Of the learning rate, after a linear warm-up."
    )
    warmup_steps: int = Field(
        50, ge=0, le=_MANY, description="Steps from 0 to the peak learning rate."
    )
    min_lr_ratio: float = Field(
        0.1, ge=0, le=1, description="cosine: the last learning rate, as a part of the peak."
    )
    step_every: int = Field(1000, ge=1, le=_MANY, description="step: steps between two drops.")
    step_gamma: float = Field(0.1, gt=0, le=1, description="step: factor of each drop.")
    clip: float = Field(1.0, ge=0, description="Largest global gradient norm; 0 does not clip.")
    eval_every: int = Field(
        100, ge=1, le=_MANY, description="Steps between evaluations (whole split)."
    )
    checkpoint_every: int = Field(100, ge=1, le=_MANY, description="Steps between checkpoints.")
    gradmap_every: int = Field(
        10, ge=0, le=_MANY, description="Steps between per-module gradient norms; 0 writes none."
    )
    checkpoint_activations: bool = Field(
        False, description="Recompute each block going back: less memory, about a third slower."
    )
    early_stopping: EarlyStopping = Field(EarlyStopping(), description="When to stop early.")


class ExportSpec(_Section):
    """What a finished run writes beside model.safetensors."""

    gguf: GgufType | None = Field("f32", description="Tensor type of model.gguf; null writes none.")
    weights: Literal["best", "last"] = Field(
        "best", description="Export the weights of the lowest validation loss, or the last ones."
    )


class RunSpec(_Section):
    """A run: what model, on what text, trained how, exported as what."""

    version: Literal[1] = Field(FORMAT_VERSION, description="Of this file's format.")
    name: str = Field(
        "run", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
        description="Letters, digits, dot, dash and underscore.",
    )  # fmt: skip
    out_dir: Annotated[str | None, _IS_PATH] = Field(
        None, description="Run folder; runs/NAME when unset."
    )
    notes: tuple[str, ...] = Field(
        (), max_length=200, description="Remarks that are kept with the run, as where it came from."
    )
    arch: ModelConfig = Field(ModelConfig(), description="The model.")
    data: DataSpec = Field(DataSpec(), description="The text.")
    train: TrainSpec = Field(TrainSpec(), description="The training.")
    export: ExportSpec = Field(ExportSpec(), description="The artefacts.")

    @property
    def folder(self) -> Path:
        """The run folder."""
        return Path(self.out_dir) if self.out_dir else Path("runs") / self.name


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a spec, as kept in specs/run.schema.json."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | RunSpec.model_json_schema()


def read_spec(path: Path, overrides: list[str] | None = None) -> RunSpec:
    """Return the spec in the JSON file at `path` after `section.field=value` overrides.

    Raises PaperkilnError naming the path, the value and the nearest valid name.
    """
    try:
        if path.stat().st_size > _MAX_SPEC_BYTES:
            raise PaperkilnError(f"{path}: {path.stat().st_size:,} bytes is no run spec")
        values = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise PaperkilnError(f"{path}: no such spec file") from None
    except json.JSONDecodeError as error:
        mend = "; a spec of a paper: paperkiln paper FILE --spec spec.json"
        raise PaperkilnError(
            f"{path}:{error.lineno}:{error.colno}: not JSON ({error.msg})"
            f"{mend if path.suffix == '.tex' else ''}"
        ) from None
    except (OSError, ValueError, RecursionError) as error:  # ValueError: UTF-16, endless integers
        raise PaperkilnError(f"{path}: cannot be read as a spec ({error})") from None
    if not isinstance(values, dict):
        raise PaperkilnError(f"{path}: a spec is a JSON object, not {type(values).__name__}")
    for override in overrides or []:
        apply_override(values, override)
    return parse_spec(values, source=str(path))


def apply_override(values: dict[str, Any], override: str) -> None:
    """Set `section.field=value` in the nested dict; the value is JSON, else a string."""
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise PaperkilnError(f"--set {override!r}: write section.field=value, as in train.lr=1e-3")
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = text
    except (ValueError, RecursionError) as error:  # thousands of digits or of brackets
        raise PaperkilnError(f"--set {key}: {error}; give a shorter value") from None
    *sections, field = key.strip().split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise PaperkilnError(f"--set {key}: {section!r} is a value, it has no fields")
    values[field] = value


def parse_spec(values: dict[str, Any], source: str = "spec") -> RunSpec:
    """Return the validated spec; `source` begins the error message."""
    try:
        return RunSpec.model_validate(values)
    except ValidationError as error:
        raise PaperkilnError(f"{source}: {explain(error, RunSpec)}") from None


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """Return what is wrong with values that are no `model`, each as path, value and mend."""
    return "; ".join(_explain(e, model) for e in error.errors())


def _explain(error: Any, model: type[BaseModel]) -> str:
    location = [str(part) for part in error["loc"]]
    path = ".".join(location)
    if error["type"] == "extra_forbidden":
        known = list(_fields_at(location[:-1], model))
        near = difflib.get_close_matches(location[-1], known, n=1)
        mend = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"
        return f"{path}: unknown name, {mend}"
    if location == ["version"]:
        return f"version {error['input']}, but this paperkiln reads {FORMAT_VERSION}; update it"
    message = error["msg"].removeprefix("Value error, ")
    if isinstance(error["input"], dict):
        return f"{path}: {message}" if path else message
    shown = json.dumps(error["input"], default=str)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    near = []
    if error["type"] == "literal_error" and isinstance(error["input"], str):
        choices = error["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        near = difflib.get_close_matches(error["input"].lower(), choices, n=1)
    return f"{path} = {shown}: {message}" + (f"; did you mean {near[0]}?" if near else "")


def _fields_at(location: list[str], model: Any) -> dict[str, Any]:
    """Return the fields of the section of `model` that `location` names."""
    for part in location:
        annotation = model.model_fields[part].annotation
        candidates = (annotation, *get_args(annotation))
        model = next(c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel))
    return model.model_fields
