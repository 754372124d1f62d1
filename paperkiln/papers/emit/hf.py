"""From a paper's architecture to the config.json of the transformers model that comes closest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paperkiln.papers.architecture import Architecture, Evidence, Scalar, Value
from paperkiln.papers.emit.choices import FAMILIES, GATED, Choice, Choices, asserted, choose, shown

# Of transformers' own defaults, those that papers leave out most.
_SIZES = {"d_model": 768, "n_layers": 12, "n_heads": 12, "window": 4096}
_LLAMA_SIZES = _SIZES | {"vocab_size": 32000, "context_length": 2048}
_GPT2_SIZES = _SIZES | {"vocab_size": 50257, "context_length": 1024}
_INNER = {"swiglu": "silu", "geglu": "gelu", "reglu": "relu"}
_ACTIVATIONS = {
    "gelu_tanh": "gelu_new", "gelu": "gelu", "relu": "relu", "silu": "silu",
    "squared_relu": "relu2",
} | _INNER  # fmt: skip


@dataclass(frozen=True)
class Form:
    """A model of transformers: what it computes whatever config.json says, and its keys."""

    model_type: str
    class_name: str
    computes: dict[str, Scalar]
    keys: Callable[[Choices, str], dict[str, Any]]
    sizes: dict[str, int]
    own_head_dim: bool
    """Whether head_dim may differ from d_model / n_heads."""
    habits: dict[str, Scalar]
    """The flavours of models of this form, for what a paper leaves open."""


def to_hf(architecture: Architecture) -> tuple[dict[str, Any], list[str]]:
    """Return a config.json that transformers opens, and notes on what it cannot say.

    Evidence, unresolved fields and the defaults taken stand under `_paperkiln`; what the form
    cannot express, under `_paperkiln.not_expressed`.
    """
    form = nearest_form(architecture)
    choices = choose(architecture, form.sizes, form.habits)
    model = choices.model
    lost = _not_expressed(form, architecture, choices) + _made_to_open(form, model)
    config = {
        "architectures": [form.class_name],
        "model_type": form.model_type,
        "vocab_size": model["vocab_size"].value,
        "tie_word_embeddings": model["tied_embeddings"].value,
        "bos_token_id": None,  # the form's own ids may lie outside this vocabulary
        "eos_token_id": None,
        **form.keys(choices, _hidden_act(choices)),
        "_paperkiln": _provenance(architecture, form, choices, lost),
    }
    notes = [note for note in choices.notes if note.split(" ", 1)[0] in model]
    return config, notes + [f"not expressed as {form.model_type}: {what}" for what in lost]


# --- the form --------------------------------------------------------------------------------


def _llama_keys(choices: Choices, hidden_act: str) -> dict[str, Any]:
    model = {name: choice.value for name, choice in choices.model.items()}
    theta = model.get("rope_theta", 10000.0)
    return {
        "hidden_size": model["d_model"],
        "intermediate_size": model["d_ff"],
        "num_hidden_layers": model["n_layers"],
        "num_attention_heads": model["n_heads"],
        "num_key_value_heads": model["n_kv_heads"],
        "head_dim": model.get("head_dim", int(model["d_model"]) // int(model["n_heads"])),
        "max_position_embeddings": model["context_length"],
        "hidden_act": hidden_act,
        "rms_norm_eps": 1e-5,
        "attention_bias": model["bias"],
        "mlp_bias": model["bias"],
        "attention_dropout": model["dropout"],
        # The first for transformers 4, the second for 5.
        "rope_theta": theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
    }


def _mistral_keys(choices: Choices, hidden_act: str) -> dict[str, Any]:
    window = choices.model.get("window")
    return _llama_keys(choices, hidden_act) | {"sliding_window": window.value if window else None}


def _gpt2_keys(choices: Choices, hidden_act: str) -> dict[str, Any]:
    model = {name: choice.value for name, choice in choices.model.items()}
    return {
        "n_embd": model["d_model"],
        "n_inner": model["d_ff"],
        "n_layer": model["n_layers"],
        "n_head": model["n_heads"],
        "n_positions": model["context_length"],
        "n_ctx": model["context_length"],
        "activation_function": hidden_act,
        "layer_norm_epsilon": 1e-5,
        "resid_pdrop": model["dropout"],
        "embd_pdrop": model["dropout"],
        "attn_pdrop": model["dropout"],
    }


def _gpt_neox_keys(choices: Choices, hidden_act: str) -> dict[str, Any]:
    model = {name: choice.value for name, choice in choices.model.items()}
    theta = model.get("rope_theta", 10000.0)
    return {
        "hidden_size": model["d_model"],
        "intermediate_size": model["d_ff"],
        "num_hidden_layers": model["n_layers"],
        "num_attention_heads": model["n_heads"],
        "max_position_embeddings": model["context_length"],
        "hidden_act": hidden_act,
        "layer_norm_eps": 1e-5,
        "attention_bias": model["bias"],
        "attention_dropout": model["dropout"],
        "hidden_dropout": model["dropout"],
        "use_parallel_residual": False,
        "rotary_pct": 1.0,
        "rotary_emb_base": theta,
        "rope_theta": theta,
        "rope_parameters": {
            "rope_type": "default", "rope_theta": theta, "partial_rotary_factor": 1.0
        },
    }  # fmt: skip


_PRE: dict[str, Scalar] = {"norm_placement": "pre"}
_LLAMA = _PRE | {"norm": "rmsnorm", "positional": "rope", "gated": True, "attention": "exact"}
_GPT = _PRE | {"norm": "layernorm", "gated": False, "attention": "exact", "grouped": False}
FORMS = (  # where several agree alike with the paper, the first is taken
    Form("llama", "LlamaForCausalLM", _LLAMA, _llama_keys, _LLAMA_SIZES, True, FAMILIES["llama"]),
    Form("gpt2", "GPT2LMHeadModel", _GPT | {"positional": "learned"}, _gpt2_keys, _GPT2_SIZES,
         False, FAMILIES["gpt2"]),
    Form("gpt_neox", "GPTNeoXForCausalLM", _GPT | {"positional": "rope"}, _gpt_neox_keys,
         _LLAMA_SIZES, False, FAMILIES["gpt2"] | {"positional": "rope"}),
    Form("mistral", "MistralForCausalLM", _LLAMA | {"attention": "swa"}, _mistral_keys,
         _LLAMA_SIZES, True, FAMILIES["llama"]),
)  # fmt: skip


def nearest_form(architecture: Architecture) -> Form:
    """Return the form that computes most of what the paper states."""
    stated = _stated(architecture)

    def agreement(form: Form) -> int:
        return sum(stated.get(name) == value for name, value in form.computes.items())

    return max(FORMS, key=agreement)


def _stated(architecture: Architecture) -> dict[str, Scalar]:
    """Return the asserted flavours that forms differ in."""
    fields = ("norm", "norm_placement", "positional", "attention")
    stated = {n: v.value for n in fields if (v := asserted(architecture, n))}
    if activation := asserted(architecture, "activation"):
        stated["gated"] = activation.value in GATED
    heads, kv_heads = (architecture.asserted(n) for n in ("n_heads", "n_kv_heads"))
    if heads is not None and kv_heads is not None:
        stated["grouped"] = heads != kv_heads
    return stated


def _hidden_act(choices: Choices) -> str:
    """Return transformers' name of the activation, of the gate where there is one."""
    return _ACTIVATIONS[str(choices.model["activation"].value)]


def _not_expressed(form: Form, architecture: Architecture, choices: Choices) -> list[str]:
    """Name what the paper asserts and a model of this form does not compute."""
    lost = list(choices.not_built)
    stated = _stated(architecture)
    named = {what.split(" ", 1)[0] for what in lost}
    for name, computed in form.computes.items():
        if name in stated and stated[name] != computed and name not in named:
            lost.append(
                _DIFFERENCES[name].format(stated=shown(stated[name]), ours=shown(computed))
                if name in _DIFFERENCES
                else f"{name} {shown(stated[name])}, the form has {shown(computed)}"
            )
    if form.model_type == "gpt2" and architecture.asserted("bias") is False:
        lost.append("bias false, the form has biases")
    return lost


def _made_to_open(form: Form, model: dict[str, Choice]) -> list[str]:
    """Change the heads that transformers refuses, and name what the paper has instead.

    It wants n_heads to divide d_model, and even widths where heads are rotated.
    """
    d_model, heads = int(model["d_model"].value), int(model["n_heads"].value)
    rotated, lost = form.computes["positional"] == "rope", []
    if rotated and not form.own_head_dim and d_model % 2:
        lost.append(f"d_model {d_model}, which is odd where rotated heads are even")
        d_model += 1
        model["d_model"] = Choice(d_model, None, "default, rotated heads are even")
    even = 2 if rotated and not form.own_head_dim else 1
    if d_model % (heads * even):
        lost.append(f"n_heads {heads}, which does not divide d_model {d_model}")
        divisor = max(n for n in range(1, heads + 1) if d_model % (n * even) == 0)
        model["n_heads"] = Choice(divisor, None, "default, n_heads must divide d_model")
        model["n_kv_heads"] = Choice(divisor, None, "default, as many as n_heads")
    width = int(model["head_dim"].value) if "head_dim" in model else d_model // heads
    if not form.own_head_dim and width != d_model // heads:
        lost.append(f"head_dim {width}, the form has d_model / n_heads")
    if form.own_head_dim and rotated and width % 2:
        lost.append(f"head_dim {width}, which is odd where rotated heads are even")
        model["head_dim"] = Choice(width + 1, None, "default, rotated heads are even")
    return lost


_DIFFERENCES = {
    "gated": "whether the feed-forward is gated: {stated}, the form has {ours}",
    "grouped": "n_kv_heads other than n_heads",
}


# --- the provenance --------------------------------------------------------------------------


def _provenance(
    architecture: Architecture, form: Form, choices: Choices, lost: list[str]
) -> dict[str, Any]:
    known = architecture.values | architecture.training
    model = choices.model
    defaults = {name: c.value for name, c in model.items() if c.evidence is None}
    inherits = architecture.inherits
    return {
        "generator": "paperkiln",
        "arxiv_id": architecture.paper_id,
        "title": architecture.title,
        "model": architecture.model,
        "family": form.model_type,
        "fields": {name: _field(value) for name, value in known.items()},
        "unresolved": list(architecture.unresolved),
        "inherits": {
            "ancestor": inherits.ancestor, "paper": inherits.paper,
            "evidence": _place(inherits.evidence),
        } if inherits else None,
        "defaults_applied": defaults,
        "not_expressed": lost,
    }  # fmt: skip


def _field(value: Value) -> dict[str, Any]:
    rival = value.runner_up
    return {
        "value": value.value,
        "verdict": value.verdict,
        "evidence": [_place(evidence) for evidence in value.evidence],
        "runner_up": {"value": rival.value, "evidence": _place(rival.evidence)} if rival else None,
    }


def _place(evidence: Evidence) -> dict[str, Any]:
    return {"quote": evidence.quote, "file": evidence.file, "line": evidence.line}
