"""ModelConfig: one decoder-only transformer, described; and the presets.

Standard library and pydantic only: the browser's spec builder reads this file too.

Dimensions, here and everywhere: B batch, T tokens (query), S tokens (key), D d_model,
H query heads, K key/value heads, E head_dim, F d_ff, V vocabulary, L layers.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Norm = Literal["layernorm", "rmsnorm"]
NormPlacement = Literal["pre", "post"]
Activation = Literal[
    "relu", "gelu", "gelu_tanh", "silu", "squared_relu", "swiglu", "geglu", "reglu"
]
Positional = Literal["learned", "sinusoidal", "rope", "alibi", "none"]
Attention = Literal["exact", "swa"]

# Beside the parameters there may be an array of this name, (E/2,): what each rotary frequency is
# divided by, in a model whose context was stretched after training. It is not trained, so no spec
# has it.
ROPE_FACTORS = "rope_factors.weight"

GATED_ACTIVATIONS = frozenset({"swiglu", "geglu", "reglu"})

# A preset states what differs from the field defaults below.
_GPT2 = {"norm": "layernorm", "activation": "gelu_tanh", "positional": "learned", "bias": True}
_LLAMA = {"norm": "rmsnorm", "activation": "swiglu", "positional": "rope", "bias": False}
PRESETS: dict[str, dict[str, Any]] = {
    "gpt2-nano": _GPT2 | {"d_model": 128, "n_layers": 2, "n_heads": 4, "context_length": 128},
    "gpt2-small": _GPT2 | {"d_model": 256, "n_layers": 4, "n_heads": 8, "context_length": 256},
    "llama-tiny": _LLAMA
    | {"d_model": 128, "n_layers": 2, "n_heads": 4, "d_ff": 384, "context_length": 128},
    "swa-tiny": _GPT2
    | {"d_model": 128, "n_layers": 2, "n_heads": 4, "context_length": 128}
    | {"attention": "swa", "window": 64, "sinks": 1},
    # Vaswani et al. 2017, table 3 "base", its decoder side; sqrt(d_model) scaling is section 3.4.
    "attention-is-all-you-need": {
        "d_model": 512, "n_layers": 6, "n_heads": 8, "d_ff": 2048, "context_length": 512,
        "norm": "layernorm", "norm_placement": "post", "activation": "relu",
        "positional": "sinusoidal", "bias": True, "dropout": 0.1, "scale_embeddings": True,
    },
    # MiniLM-Lab's byte model; positions start at N(0, 0.02) like the tokens, not at N(0, 1).
    "minilm": {
        "d_model": 192, "n_layers": 4, "n_heads": 6, "d_ff": 768, "context_length": 128,
        "norm": "rmsnorm", "norm_eps": 1e-6, "activation": "swiglu", "positional": "learned",
        "bias": True,
    },
}  # fmt: skip


class ModelConfig(BaseModel):
    """Every choice that shapes the decoder. GPT-2 and Llama are values of it, not classes."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False
    )

    preset: str | None = Field(
        None, description="Start from these named dimensions; the other fields override them."
    )
    d_model: int = Field(128, ge=1, le=65536, description="Width of the residual stream.")
    n_layers: int = Field(2, ge=1, le=1000, description="Number of blocks.")
    n_heads: int = Field(4, ge=1, le=1024, description="Query heads.")
    n_kv_heads: int | None = Field(
        None, ge=1, le=1024, description="Key/value heads; fewer than n_heads is GQA, 1 is MQA."
    )
    head_dim: int | None = Field(
        None, ge=1, le=4096, description="Width of one head; d_model / n_heads when unset."
    )
    d_ff: int | None = Field(
        None, ge=1, le=1 << 20, description="Inner width of the feed-forward; 4 d_model when unset."
    )
    vocab_size: int | None = Field(
        None, ge=2, le=2_000_000, description="Tokens; taken from the tokenizer when unset."
    )
    context_length: int = Field(128, ge=2, le=1 << 24, description="Longest sequence, in tokens.")

    norm: Norm = Field("rmsnorm", description="Normalisation layer.")
    norm_eps: float = Field(1e-5, ge=1e-12, le=0.1, description="Added to the (mean) square.")
    norm_placement: NormPlacement = Field(
        "pre", description="pre: x + f(norm(x)), and a final norm; post: norm(x + f(x))."
    )
    activation: Activation = Field(
        "swiglu", description="Feed-forward nonlinearity; the -glu ones gate with a third matrix."
    )
    positional: Positional = Field("rope", description="How positions enter the model.")
    rope_theta: float = Field(10000.0, gt=1, le=1e12, description="Base of the rotary frequencies.")
    rope_layout: Literal["half", "interleaved"] = Field(
        "half", description="Rotary pairs: (i, i + E/2), as in Hugging Face, or (2i, 2i + 1)."
    )
    attention: Attention = Field("exact", description="exact, or swa (sliding window).")
    window: int = Field(
        64, ge=1, le=1 << 24, description="swa: keys a query sees, itself included."
    )
    sinks: int = Field(
        0, ge=0, le=1 << 24, description="swa: first positions that every query still sees."
    )
    bias: bool = Field(False, description="Biases in linear layers and LayerNorm.")
    tied_embeddings: bool = Field(True, description="The head is the embedding, transposed.")
    scale_embeddings: bool = Field(
        False, description="Multiply embeddings by sqrt(d_model), as Vaswani et al. do."
    )
    dropout: float = Field(0.0, ge=0, lt=1, description="Dropout on embeddings and sublayers.")
    init_std: float = Field(
        0.02, ge=1e-6, le=1e3, description="Standard deviation of initial weights."
    )
    residual_init: Literal["plain", "depth-scaled"] = Field(
        "plain",
        description="depth-scaled: output projections start at init_std / sqrt(2 n_layers).",
    )

    @model_validator(mode="before")
    @classmethod
    def _start_from_preset(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("preset") is None:
            return values
        name = values["preset"]
        if name not in PRESETS:
            raise ValueError(f"unknown preset {name!r}; known: {', '.join(PRESETS)}")
        return PRESETS[name] | values

    @model_validator(mode="after")
    def _fill_and_check(self) -> ModelConfig:
        fill = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731 (frozen)
        if self.n_kv_heads is None:
            fill("n_kv_heads", self.n_heads)
        if self.d_ff is None:
            fill("d_ff", 4 * self.d_model)
        if self.head_dim is None:
            if self.d_model % self.n_heads:
                raise ValueError(
                    f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}; "
                    "change one of them or set head_dim"
                )
            fill("head_dim", self.d_model // self.n_heads)
        if self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"n_heads {self.n_heads} is not divisible by n_kv_heads {self.n_kv_heads}"
            )
        if self.positional == "rope" and self.head_dim % 2:
            raise ValueError(f"rope rotates pairs: head_dim {self.head_dim} must be even")
        return self

    @property
    def gated(self) -> bool:
        """Whether the feed-forward has a gate beside its up projection."""
        return self.activation in GATED_ACTIVATIONS

    @classmethod
    def from_preset(cls, name: str, **overrides: Any) -> ModelConfig:
        """Return the preset `name` with some fields replaced."""
        return cls(preset=name, **overrides)


def parameter_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return every parameter's name and shape, in model order; linears are (out, in).

    q, k and v are the rows of one matrix, gate and up of another: one large GEMM each.
    """
    c = config
    if c.vocab_size is None:
        raise ValueError("vocab_size is unset: it comes from the tokenizer or the spec")
    shapes: dict[str, tuple[int, ...]] = {"embed.weight": (c.vocab_size, c.d_model)}

    def linear(name: str, n_out: int, n_in: int) -> None:
        shapes[f"{name}.weight"] = (n_out, n_in)
        if c.bias:
            shapes[f"{name}.bias"] = (n_out,)

    def norm(name: str) -> None:
        shapes[f"{name}.weight"] = (c.d_model,)
        if c.bias and c.norm == "layernorm":
            shapes[f"{name}.bias"] = (c.d_model,)

    if c.positional == "learned":
        shapes["pos.weight"] = (c.context_length, c.d_model)
    for i in range(c.n_layers):
        norm(f"blocks.{i}.norm1")
        linear(f"blocks.{i}.attn.qkv", (c.n_heads + 2 * c.n_kv_heads) * c.head_dim, c.d_model)
        linear(f"blocks.{i}.attn.out", c.d_model, c.n_heads * c.head_dim)
        norm(f"blocks.{i}.norm2")
        linear(f"blocks.{i}.ffn.in", (2 if c.gated else 1) * c.d_ff, c.d_model)
        linear(f"blocks.{i}.ffn.out", c.d_model, c.d_ff)
    if c.norm_placement == "pre":
        norm("norm")
    if not c.tied_embeddings:
        shapes["head.weight"] = (c.vocab_size, c.d_model)
    return shapes


def count_parameters(config: ModelConfig) -> int:
    """Return the number of trainable parameters (a tied head counts once)."""
    total = 0
    for shape in parameter_shapes(config).values():
        size = 1
        for n in shape:
            size *= n
        total += size
    return total
