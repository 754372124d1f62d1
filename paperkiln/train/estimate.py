"""What a run would cost, and what to know before it: from its spec alone, without numpy.

`paperkiln plan` prints it; the spec builder's page shows it while one types.
"""

from __future__ import annotations

from typing import Any

from paperkiln.formats.gguf_io import architecture_of, why_not_llama_cpp
from paperkiln.models.config import ModelConfig, count_parameters
from paperkiln.models.cost import train_flops_per_token, train_memory_bytes
from paperkiln.spec import RunSpec

BYTE_VOCABULARY = 259  # the bytes and three special tokens

# GFLOP/s that training sustains. The first three were measured on two cores (the site's page on
# performance); the others are a guess at a common card.
GFLOPS = {"cpu": 100.0, "cpu-fast": 125.0, "torch-cpu": 100.0, "cuda": 15_000.0, "mps": 2_500.0}
MEASURED = frozenset({"cpu", "cpu-fast", "torch-cpu"})


def with_vocabulary(spec: RunSpec) -> ModelConfig:
    """Return the model with the largest vocabulary that its tokenizer may learn, if none is set."""
    if spec.arch.vocab_size is not None:
        return spec.arch
    byte = spec.data.tokenizer == "byte"
    at_most = BYTE_VOCABULARY if byte else spec.data.vocab_size
    return spec.arch.model_copy(update={"vocab_size": at_most})


def estimate(spec: RunSpec, gflops: float | None = None) -> dict[str, Any]:
    """Return what training costs: parameters, tokens, arithmetic (FLOP), memory and time.

    `gflops` is the rate that training sustains, in 10⁹ FLOP/s; by default GFLOPS of the device.
    """
    train, arch = spec.train, with_vocabulary(spec)
    parameters = count_parameters(arch)
    tokens_per_step = train.batch * train.accum * arch.context_length
    tokens = tokens_per_step * train.steps
    per_token = train_flops_per_token(arch)
    rate = gflops or GFLOPS[train.device]
    return {
        "parameters": parameters,
        "vocabulary": arch.vocab_size,
        "tokens_per_step": tokens_per_step,
        "tokens": tokens,
        "flops_per_token": per_token,
        "flops": per_token * tokens,
        "memory_bytes": train_memory_bytes(arch, train.batch, parameters),
        "weights_bytes": 4 * parameters,
        "gflops": rate,
        "measured": gflops is None and train.device in MEASURED,
        "seconds": per_token * tokens / (rate * 1e9),
    }


def remarks(spec: RunSpec) -> list[str]:
    """Return what a user should know of a spec before the compute is spent."""
    said = []
    if spec.export.gguf and (reason := why_not_llama_cpp(spec.arch, spec.data.tokenizer)):
        name = architecture_of(spec.arch, spec.data.tokenizer)
        said.append(
            f"model.gguf will have architecture {name!r}, which llama.cpp, Ollama and LM Studio "
            f"do not open (paperkiln and its chat page do): {reason}"
        )
    if spec.train.warmup_steps >= spec.train.steps:
        said.append("the warm-up is as long as the run: the peak learning rate is never held")
    return said
