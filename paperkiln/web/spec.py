"""The spec builder's side in Python: the schema, the checks, and what a spec would cost."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from paperkiln.errors import PaperkilnError
from paperkiln.formats.gguf_io import architecture_of, why_not_llama_cpp
from paperkiln.models.config import PRESETS, ModelConfig, count_parameters
from paperkiln.models.cost import train_flops_per_token, train_memory_bytes
from paperkiln.spec import RunSpec, json_schema
from paperkiln.web.diagram import draw

BYTE_VOCABULARY = 259  # the bytes and three special tokens

# GFLOP/s that training sustains. The first three were measured on two cores (the site's page on
# performance); the others are a guess at a common card, there to be changed.
GFLOPS = {"cpu": 100.0, "cpu-fast": 125.0, "torch-cpu": 100.0, "cuda": 15_000.0, "mps": 2_500.0}
MEASURED = frozenset({"cpu", "cpu-fast", "torch-cpu"})


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a spec and the presets of the model."""
    return {"schema": json_schema(), "presets": PRESETS}


def check(values: Any, gflops: float | None = None) -> dict[str, Any]:
    """Return a spec resolved, its cost and its picture; or what is wrong with it, by field."""
    if not isinstance(values, dict):
        raise PaperkilnError("a spec is a JSON object, with names in braces")
    try:
        spec = RunSpec.model_validate(values)
    except ValidationError as error:
        return {"errors": [_place(e, values) for e in error.errors()]}
    arch = with_vocabulary(spec)
    return {
        "errors": [],
        "spec": spec.model_dump(mode="json"),
        "folder": str(spec.folder),
        "estimate": estimate(spec, arch, gflops),
        "notes": notes(spec),
        **draw(arch),
    }


def with_vocabulary(spec: RunSpec) -> ModelConfig:
    """Return the model with the largest vocabulary that its tokenizer may learn, if none is set."""
    if spec.arch.vocab_size is not None:
        return spec.arch
    byte = spec.data.tokenizer == "byte"
    at_most = BYTE_VOCABULARY if byte else spec.data.vocab_size
    return spec.arch.model_copy(update={"vocab_size": at_most})


def estimate(spec: RunSpec, arch: ModelConfig, gflops: float | None = None) -> dict[str, Any]:
    """Return what training costs: parameters, tokens, arithmetic, memory and time."""
    train = spec.train
    parameters = count_parameters(arch)
    tokens = train.batch * train.accum * arch.context_length * train.steps
    per_token = train_flops_per_token(arch)
    rate = gflops or GFLOPS[train.device]
    return {
        "parameters": parameters,
        "vocabulary": arch.vocab_size,
        "tokens": tokens,
        "flops_per_token": per_token,
        "flops": per_token * tokens,
        "memory_bytes": train_memory_bytes(arch, train.batch, parameters),
        "weights_bytes": 4 * parameters,
        "gflops": rate,
        "measured": gflops is None and train.device in MEASURED,
        "seconds": per_token * tokens / (rate * 1e9),
    }


def notes(spec: RunSpec) -> list[str]:
    """Return what a user should know before the compute is spent."""
    said = []
    if spec.export.gguf and (reason := why_not_llama_cpp(spec.arch, spec.data.tokenizer)):
        name = architecture_of(spec.arch, spec.data.tokenizer)
        said.append(
            f"model.gguf will have architecture {name!r}, which llama.cpp, Ollama and LM Studio "
            f"do not open (ember does): {reason}"
        )
    if spec.train.warmup_steps >= spec.train.steps:
        said.append("the warm-up is as long as the run: the peak learning rate is never held")
    return said


def _place(error: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Return where an error belongs in the form, and its sentence."""
    path = [str(part) for part in error["loc"]]
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        message = "There is no field of this name."
    # A rule over several fields is shown at the first one that it names.
    if path == ["arch"]:
        words = message.replace(":", " ").replace(";", " ").split()
        named = [word for word in words if word in ModelConfig.model_fields]
        set_here = values.get("arch")
        set_here = set_here if isinstance(set_here, dict) else {}
        path += sorted(named, key=lambda name: name not in set_here)[:1]
        if "unknown preset" in message:
            path = ["arch", "preset"]
    starts_with_name = message.split()[0] in ModelConfig.model_fields
    return {
        "path": path,
        "message": message if starts_with_name else message[:1].upper() + message[1:],
    }
