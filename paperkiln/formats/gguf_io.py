"""GGUF in our terms: which architecture name a model may carry, its metadata, and loading.

Importing this file needs only pydantic; numpy is imported when weights are read.
llama.cpp builds its graph from `general.architecture` alone, so a model may call itself `llama`
or `gpt2` only if every choice in it is the one that graph hard-codes.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from paperkiln.errors import PaperkilnError
from paperkiln.formats.gguf_reader import GgufFile, TensorInfo, open_buffer, read_header
from paperkiln.formats.gguf_tokenizer import read_tokenizer
from paperkiln.formats.layout import CANONICAL, GGUF_GPT2, GGUF_LLAMA, Layout, from_layout
from paperkiln.formats.rope_scaling import rope_scale
from paperkiln.models.config import ROPE_FACTORS, ModelConfig
from paperkiln.spec import explain

if TYPE_CHECKING:
    import numpy as np

    from paperkiln.train.tokenizers import Tokenizer

__all__ = [
    "GgufFile", "TensorInfo", "architecture_of", "load_gguf", "read_header", "why_not_llama_cpp",
]  # fmt: skip

Architecture = Literal["llama", "gpt2", "paperkiln"]
LAYOUTS: dict[str, Layout] = {
    "llama": GGUF_LLAMA, "gpt2": GGUF_GPT2, "paperkiln": CANONICAL
}  # fmt: skip

# What the llama.cpp graphs of the two names compute, whatever the file says.
_LLAMA = {"norm": "rmsnorm", "positional": "rope", "activation": "swiglu"}
_GPT2 = {"norm": "layernorm", "positional": "learned", "activation": "gelu_tanh", "bias": True}
_BOTH = {"norm_placement": "pre", "attention": "exact", "scale_embeddings": False}


def architecture_of(config: ModelConfig, tokenizer_kind: str = "bpe") -> Architecture:
    """Return the `general.architecture` that a model exports as."""
    if why_not_llama_cpp(config, tokenizer_kind):
        return "paperkiln"
    return "llama" if config.norm == "rmsnorm" else "gpt2"


def why_not_llama_cpp(config: ModelConfig, tokenizer_kind: str = "bpe") -> str | None:
    """Return why llama.cpp cannot open a model, or None if it can; ask before training."""
    if tokenizer_kind == "word":
        return "llama.cpp has no whole-word tokenizer; use the bpe or byte tokenizer"
    name, graph = ("llama", _LLAMA) if config.norm == "rmsnorm" else ("gpt2", _GPT2)
    for field, needed in (graph | _BOTH).items():
        if (value := getattr(config, field)) != needed:
            return f"llama.cpp's {name} graph needs {field} {needed}, and this model has {value}"
    if name == "gpt2" and config.n_kv_heads != config.n_heads:
        return "llama.cpp's gpt2 graph has no grouped heads; set n_kv_heads to n_heads"
    if name == "gpt2" and config.n_heads * config.head_dim != config.d_model:
        return "llama.cpp's gpt2 graph needs n_heads * head_dim to be d_model"
    return None


def to_metadata(config: ModelConfig, architecture: Architecture) -> dict[str, Any]:
    """Return the architecture's metadata keys for a configuration."""
    if architecture == "paperkiln":
        fields = config.model_dump(exclude={"preset"}, exclude_none=True)
        return {f"paperkiln.{name}": value for name, value in fields.items()}
    c, a = config, architecture
    keys: dict[str, Any] = {
        f"{a}.context_length": c.context_length,
        f"{a}.embedding_length": c.d_model,
        f"{a}.block_count": c.n_layers,
        f"{a}.feed_forward_length": c.d_ff,
        f"{a}.attention.head_count": c.n_heads,
        f"{a}.vocab_size": c.vocab_size,
    }
    if a == "gpt2":
        return keys | {"gpt2.attention.layer_norm_epsilon": c.norm_eps}
    return keys | {
        "llama.attention.head_count_kv": c.n_kv_heads,
        "llama.attention.key_length": c.head_dim,
        "llama.attention.value_length": c.head_dim,
        "llama.attention.layer_norm_rms_epsilon": c.norm_eps,
        "llama.rope.dimension_count": c.head_dim,
        "llama.rope.freq_base": float(c.rope_theta),
    }


def from_metadata(header: GgufFile, where: str) -> ModelConfig:
    """Return the configuration that a GGUF header describes.

    Raises PaperkilnError for an architecture or a feature that this decoder does not have.
    """
    metadata = header.metadata
    architecture = metadata.get("general.architecture")
    try:
        if architecture == "paperkiln":
            fields = {
                key.removeprefix("paperkiln."): _shortest(value)
                for key, value in metadata.items()
                if key.startswith("paperkiln.")
            }
            if "vocab_size" not in fields:
                raise TypeError("paperkiln.vocab_size is missing")
            return ModelConfig(**fields)
        if architecture not in LAYOUTS:
            raise PaperkilnError(
                f"{where}: architecture {architecture!r:.60} is not one of llama, gpt2, paperkiln; "
                "open it with llama.cpp"
            )
        return ModelConfig(**_foreign_fields(header, architecture, where))
    except (ValidationError, TypeError, OverflowError) as error:
        known = isinstance(error, ValidationError)
        detail = explain(error, ModelConfig) if known else error
        raise PaperkilnError(
            f"{where}: its metadata describes no decoder of ours ({detail}); export it again"
        ) from error


def _foreign_fields(header: GgufFile, a: str, where: str) -> dict[str, Any]:
    """Translate llama's or gpt2's keys; what the keys leave open is read off the tensors."""
    get, names = header.metadata.get, header.tensors

    def need(key: str) -> Any:
        if (value := get(f"{a}.{key}")) is None:
            raise PaperkilnError(f"{where}: metadata {a}.{key} is missing; export it again")
        return value

    def count(key: str) -> int:
        if type(value := need(key)) is not int or value < 1:
            raise TypeError(f"{a}.{key} is {value!r:.40}, not a number of one or more")
        return value

    heads, d_model = count("attention.head_count"), count("embedding_length")
    head_dim = get(f"{a}.attention.key_length", d_model // heads)
    fields: dict[str, Any] = {
        "d_model": d_model,
        "n_layers": count("block_count"),
        "n_heads": heads,
        "n_kv_heads": get(f"{a}.attention.head_count_kv", heads),
        "head_dim": head_dim,
        "d_ff": count("feed_forward_length"),
        "context_length": count("context_length"),
        "vocab_size": names["token_embd.weight"].shape[0] if "token_embd.weight" in names else 0,
        "tied_embeddings": "output.weight" not in names,
    }
    if a == "gpt2":
        eps = _shortest(need("attention.layer_norm_epsilon"))
        return fields | _GPT2 | {"norm_eps": eps}
    return fields | _LLAMA | {
        "bias": "blk.0.attn_q.bias" in names,
        "norm_eps": _shortest(need("attention.layer_norm_rms_epsilon")),
        "rope_theta": _shortest(get("llama.rope.freq_base", 10000.0)),
    }  # fmt: skip


def _shortest(value: Any) -> Any:
    """Return the shortest decimal that a float32 stands for: 1e-5, not 9.999999747378752e-06."""
    if not isinstance(value, float):
        return value
    packed = struct.pack("<f", value)
    candidates = (float(f"{value:.{digits}g}") for digits in range(6, 10))
    return next((v for v in candidates if struct.pack("<f", v) == packed), value)


def load_gguf(
    path: str | os.PathLike[str] | bytes,
) -> tuple[ModelConfig, dict[str, np.ndarray], Tokenizer | None, dict[str, Any]]:
    """Load a GGUF file: configuration, canonical float32 parameters, tokenizer, metadata.

    Rotary layout is turned back to "half" for llama files. The tokenizer is None where the file
    holds one that is not ours.
    Raises PaperkilnError for a damaged file and for one our decoder cannot run.
    """
    header = read_header(path)
    with open_buffer(path) as (buffer, where):
        config = from_metadata(header, where)
        scale = rope_scale(header.metadata, config.head_dim, where)
        tensors = {
            name: dequantize(info, buffer[info.offset : info.offset + info.n_bytes], where)
            for name, info in header.tensors.items()
        }
    params = from_layout(config, tensors, LAYOUTS[header.metadata["general.architecture"]], where)
    if scale != 1:
        import numpy as np

        ones = np.ones(config.head_dim // 2, np.float32)
        params[ROPE_FACTORS] = params.get(ROPE_FACTORS, ones) * np.float32(scale)
    return config, params, read_tokenizer(header.metadata), header.metadata


def dequantize(info: TensorInfo, data: bytes, where: str) -> np.ndarray:
    """Return a tensor's bytes as a float32 array of its shape.

    Raises PaperkilnError for the types that the gguf package cannot read.
    """
    import gguf
    import numpy as np

    rows = np.frombuffer(data, np.uint8).reshape(*info.shape[:-1], -1)
    try:
        kind = gguf.GGMLQuantizationType[info.ggml_type.upper()]
        with np.errstate(all="ignore"):  # what is no number shows up in the logits
            flat = gguf.quants.dequantize(rows, kind)
    except (KeyError, NotImplementedError) as error:
        raise PaperkilnError(
            f"{where}: tensor {info.name!r:.60} is {info.ggml_type}, which is not read here; "
            "open it with llama.cpp"
        ) from error
    return flat.copy() if info.ggml_type == "f32" else flat  # the others are copies already
