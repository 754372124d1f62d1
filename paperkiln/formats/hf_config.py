"""A model's configuration as transformers writes it in config.json, both ways; no weights here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ValidationError

from paperkiln.errors import PaperkilnError
from paperkiln.formats.rope_scaling import hf_rope_factors
from paperkiln.models.config import ModelConfig
from paperkiln.spec import explain

Shape = Literal["llama", "gpt2"]

# Our activation -> transformers' name for it, per family.
_ACTIVATIONS: dict[Shape, dict[str, str]] = {
    "llama": {"swiglu": "silu", "geglu": "gelu", "reglu": "relu"},
    "gpt2": {
        "gelu_tanh": "gelu_new", "gelu": "gelu", "relu": "relu", "silu": "silu",
        "squared_relu": "relu2",
    },
}  # fmt: skip
_ALIASES = {"gelu_pytorch_tanh": "gelu_new", "swish": "silu"}


def hf_shape(config: ModelConfig) -> Shape | None:
    """Return the transformers family that computes what this model does, or None."""
    if why_not_hf(config):
        return None
    return "llama" if config.norm == "rmsnorm" else "gpt2"


def why_not_hf(config: ModelConfig) -> str | None:
    """Return why transformers' Llama and GPT-2 cannot run a model, or None if one can."""
    c = config
    name: Shape = "llama" if c.norm == "rmsnorm" else "gpt2"
    needed: dict[str, Any] = {
        "norm_placement": "pre", "attention": "exact", "scale_embeddings": False,
        "positional": "rope" if name == "llama" else "learned",
    }  # fmt: skip
    if name == "gpt2":
        needed |= {"bias": True, "n_kv_heads": c.n_heads, "head_dim": c.d_model / c.n_heads}
    for field, value in needed.items():
        if (ours := getattr(c, field)) != value:
            return f"transformers' {name} needs {field} {value}, and this model has {ours}"
    if c.activation not in _ACTIVATIONS[name]:
        return f"transformers' {name} has no {c.activation} feed-forward"
    if c.d_model % c.n_heads:
        return f"transformers' {name} needs d_model to be a multiple of n_heads"
    return None


def hf_config(config: ModelConfig, eos_id: int | None) -> dict[str, Any]:
    """Return the contents of config.json for a llama- or gpt2-shaped model."""
    c, shape = config, hf_shape(config)
    shared = {
        "model_type": shape, "vocab_size": c.vocab_size, "initializer_range": c.init_std,
        "tie_word_embeddings": c.tied_embeddings,
        "bos_token_id": eos_id, "eos_token_id": eos_id, "pad_token_id": eos_id,
    }  # fmt: skip
    if shape == "gpt2":
        return shared | {
            "architectures": ["GPT2LMHeadModel"], "n_positions": c.context_length,
            "n_embd": c.d_model, "n_layer": c.n_layers, "n_head": c.n_heads, "n_inner": c.d_ff,
            "activation_function": _ACTIVATIONS["gpt2"][c.activation],
            "layer_norm_epsilon": c.norm_eps, "resid_pdrop": c.dropout, "embd_pdrop": c.dropout,
            "attn_pdrop": 0.0,
        }  # fmt: skip
    return shared | {
        "architectures": ["LlamaForCausalLM"], "max_position_embeddings": c.context_length,
        "hidden_size": c.d_model, "num_hidden_layers": c.n_layers, "intermediate_size": c.d_ff,
        "num_attention_heads": c.n_heads, "num_key_value_heads": c.n_kv_heads,
        "head_dim": c.head_dim, "hidden_act": _ACTIVATIONS["llama"][c.activation],
        "rms_norm_eps": c.norm_eps, "attention_bias": c.bias, "mlp_bias": c.bias,
        # The first for transformers 4, the second for 5.
        "rope_theta": c.rope_theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": c.rope_theta},
    }  # fmt: skip


def config_from_hf(hf: Mapping[str, Any], where: str) -> ModelConfig:
    """Return our configuration for a transformers one; absent keys take transformers' defaults.

    Raises PaperkilnError naming the feature that our decoder does not have.
    """
    family = hf.get("model_type")
    if not isinstance(family, str) or family not in _ACTIVATIONS:
        raise PaperkilnError(
            f"{where}: model_type {family!r} is not supported; llama and gpt2 models load"
        )
    fields = _llama_fields if family == "llama" else _gpt2_fields
    if hf.get("quantization_config"):
        raise _unsupported(where, "quantization_config", "quantised")
    try:
        return ModelConfig(**fields(hf, where))
    except ValidationError as error:
        raise _impossible(where, explain(error, ModelConfig)) from error


def rope_factors_from_hf(
    hf: Mapping[str, Any], config: ModelConfig, where: str
) -> list[float] | None:
    """Return what each rotary frequency is divided by, (E/2,), or None where they are plain.

    Raises PaperkilnError for a scaling that our decoder does not have.
    """
    if config.positional != "rope":
        return None
    scaling = _scaling(hf, where)
    try:
        return hf_rope_factors(scaling, config.rope_theta, config.head_dim)
    except KeyError as error:
        raise _unsupported(where, "rope_scaling", error.args[0]) from error
    except ValueError as error:
        raise _impossible(where, str(error)) from error


def eos_ids(*configs: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the ids that end a text, the main one first, by the first config that names any."""
    for hf in configs:
        named = hf.get("eos_token_id")
        listed = named if isinstance(named, list) else [named]
        if ids := tuple(dict.fromkeys(i for i in listed if type(i) is int)):
            return ids
    return ()


def _count(hf: Mapping[str, Any], key: str, where: str, default: int | None = None) -> int:
    """Return a dimension; an absent key, or null, takes the default."""
    value = hf.get(key)
    if value is None and default is not None:
        return default
    if key not in hf:
        raise PaperkilnError(f"{where}: {key!r} is missing; complete config.json")
    if type(value) is not int or not 1 <= value < 1 << 31:
        raise _impossible(where, f"{key} is {value!r:.40}, not a number from 1 to 2^31")
    return value


def _table(hf: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    value = hf.get(key) or {}
    if not isinstance(value, dict):
        raise _impossible(where, f"{key} is {value!r:.40}, not an object")
    return value


def _scaling(hf: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Return where transformers 4 keeps how rotary positions are scaled, or where 5 does."""
    return _table(hf, "rope_scaling", where) or _table(hf, "rope_parameters", where)


def _llama_fields(hf: Mapping[str, Any], where: str) -> dict[str, Any]:
    rope, scaling = _table(hf, "rope_parameters", where), _scaling(hf, where)
    if (part := scaling.get("partial_rotary_factor", hf.get("partial_rotary_factor", 1))) != 1:
        raise _unsupported(where, "partial_rotary_factor", part)
    bias = hf.get("attention_bias", False)
    if hf.get("mlp_bias", False) != bias:
        raise _unsupported(where, "attention_bias", f"{bias}, with mlp_bias {not bias}")
    d_model = _count(hf, "hidden_size", where)
    heads = _count(hf, "num_attention_heads", where)
    return {
        "norm": "rmsnorm",
        "positional": "rope",
        "bias": bias,
        "activation": _activation(hf.get("hidden_act", "silu"), "llama", where),
        "d_model": d_model,
        "n_layers": _count(hf, "num_hidden_layers", where),
        "n_heads": heads,
        "n_kv_heads": _count(hf, "num_key_value_heads", where, heads),
        "head_dim": _count(hf, "head_dim", where, d_model // heads),
        "d_ff": _count(hf, "intermediate_size", where),
        "vocab_size": _count(hf, "vocab_size", where),
        "context_length": _count(hf, "max_position_embeddings", where, 2048),
        "norm_eps": hf.get("rms_norm_eps", 1e-6),
        "rope_theta": rope.get("rope_theta", hf.get("rope_theta", 10000.0)),
        "tied_embeddings": hf.get("tie_word_embeddings", False),
        "init_std": hf.get("initializer_range") or 0.02,
    }


def _gpt2_fields(hf: Mapping[str, Any], where: str) -> dict[str, Any]:
    needed = {
        "scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
    }  # fmt: skip
    for key, value in needed.items():
        if hf.get(key, value) != value:
            raise _unsupported(where, key, hf[key])
    d_model = _count(hf, "n_embd", where)
    return {
        "norm": "layernorm",
        "positional": "learned",
        "bias": True,
        "activation": _activation(hf.get("activation_function", "gelu_new"), "gpt2", where),
        "d_model": d_model,
        "n_layers": _count(hf, "n_layer", where),
        "n_heads": _count(hf, "n_head", where),
        "d_ff": _count(hf, "n_inner", where, 4 * d_model),
        "vocab_size": _count(hf, "vocab_size", where),
        "context_length": _count(hf, "n_positions", where, 1024),
        "norm_eps": hf.get("layer_norm_epsilon", 1e-5),
        "tied_embeddings": hf.get("tie_word_embeddings", True),
        "dropout": hf.get("resid_pdrop", 0.1),
        "init_std": hf.get("initializer_range") or 0.02,
    }


def _activation(name: Any, family: Shape, where: str) -> str:
    name = _ALIASES.get(str(name), str(name))
    ours = {theirs: ours for ours, theirs in _ACTIVATIONS[family].items()}
    if name not in ours:
        raise _unsupported(where, "the activation", name)
    return ours[name]


def _impossible(where: str, what: str) -> PaperkilnError:
    return PaperkilnError(f"{where}: no model can have this ({what}); mend config.json")


def _unsupported(where: str, key: str, value: Any) -> PaperkilnError:
    return PaperkilnError(
        f"{where}: {key} is {value}, which paperkiln's decoder does not have; "
        "use this model with transformers"
    )
