"""What a GGUF header says, put in the terms of the second engine: a configuration and addresses.

Standard library only, and nothing of `models/`: the browser runs it, and the engine is to be a
second opinion. It trusts the header as little as `formats/gguf_reader` does; what leaves this file
is known to be consistent, so the engine itself need not check.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from paperkiln.errors import PaperkilnError
from paperkiln.formats.gguf_reader import GgufFile, TensorInfo
from paperkiln.formats.rope_scaling import rope_scale

# Numbers that ember.c knows these by.
WEIGHT_TYPES = {
    "f32": 0, "f16": 1, "bf16": 30, "q8_0": 8, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7,
    "iq4_nl": 20, "q2_k": 10, "q3_k": 11, "q4_k": 12, "q5_k": 13, "q6_k": 14,
}  # fmt: skip
POSITIONS = {"none": 0, "learned": 1, "sinusoidal": 2, "rope": 3, "alibi": 4}
ACTIVATIONS = {
    "relu": 0, "gelu": 1, "gelu_tanh": 2, "silu": 3, "squared_relu": 4,
    "reglu": 0, "geglu": 1, "swiglu": 3,
}  # fmt: skip
GATED = frozenset({"reglu", "geglu", "swiglu"})
BLOCK = 32  # tokens the engine reads in one pass
MAX_CHOICES = 512  # tokens it chooses in one call

_MEND = "export it again"


@dataclass(frozen=True)
class Shape:
    """Every choice that shapes the decoder; names and meaning as in a run spec's `arch`."""

    d_model: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    d_ff: int
    vocab_size: int
    context_length: int
    norm: str = "rmsnorm"
    norm_eps: float = 1e-5
    norm_placement: str = "pre"
    activation: str = "swiglu"
    positional: str = "rope"
    rope_theta: float = 10000.0
    rope_layout: str = "half"
    attention: str = "exact"
    window: int = 64
    sinks: int = 0
    bias: bool = False
    tied_embeddings: bool = True
    scale_embeddings: bool = False

    @property
    def gated(self) -> bool:
        """Whether the feed-forward has a gate beside its up projection."""
        return self.activation in GATED


class Affine(NamedTuple):
    """Where a layer's rows lie, in bytes from the start of the file; 0 for what is not there."""

    weight: int
    kind: int  # the engine's number of the weight's type
    bias: int


class Plan(NamedTuple):
    """What the engine is told: the shape, and the table of layers in the order it wants them."""

    shape: Shape
    affines: list[Affine]  # embed, positions, norm, head, then nine for each block
    rope_scale: float = 1.0  # what every rotary frequency is divided by
    rope_factors: TensorInfo | None = None  # and what each one is, (E/2,)


def make_plan(header: GgufFile, where: str) -> Plan:
    """Return the plan of a model. Raises PaperkilnError for one that the engine cannot run."""
    architecture = header.metadata.get("general.architecture")
    if not isinstance(architecture, str) or architecture not in _LAYOUTS:
        raise PaperkilnError(
            f"{where}: architecture {architecture!r:.60} is not one of llama, gpt2, paperkiln; "
            "open it with llama.cpp"
        )
    read = _read_paperkiln if architecture == "paperkiln" else _read_foreign
    shape = read(_Metadata(header, architecture, where))
    finder = _Finder(header, shape, architecture, where)
    scale = rope_scale(header.metadata, shape.head_dim, where)
    factors = finder.rope_factors()
    return Plan(shape, finder.affines(), scale, factors)


def memory_needed(shape: Shape, n_choices: int) -> int:
    """Return the bytes the engine takes beside the file, rounded up a little."""
    c = shape
    width = 4 * (c.d_model + c.n_heads * c.head_dim + c.d_ff)
    cache = 2 * 4 * (c.n_layers * c.n_kv_heads * c.context_length + 4) * c.head_dim
    blocks = BLOCK * (4 * width + 16 * c.head_dim) + 8 * width
    tables = 1024 * c.n_layers + 16 * c.context_length + 16 * c.d_model + 8 * c.head_dim
    return cache + blocks + tables + c.vocab_size + 24 * n_choices + (1 << 16)


def pack_config(shape: Shape, n_choices: int) -> bytes:
    """Return the part of ember.c's Config that the host writes."""
    c, swa = shape, shape.attention == "swa"
    return struct.pack(
        "<16i3f", c.d_model, c.n_layers, c.n_heads, c.n_kv_heads, c.head_dim, c.d_ff,
        c.vocab_size, c.context_length, n_choices, c.norm == "layernorm",
        c.norm_placement == "post", ACTIVATIONS[c.activation], POSITIONS[c.positional],
        c.rope_layout == "half", c.window if swa else 0, c.sinks if swa else 0,
        c.norm_eps, c.head_dim**-0.5, c.d_model**0.5 if c.scale_embeddings else 1.0,
    )  # fmt: skip


# ---- Metadata


class _Metadata:
    """Checked access to the keys of one architecture."""

    def __init__(self, header: GgufFile, architecture: str, where: str) -> None:
        self.header, self.architecture, self.where = header, architecture, where

    def fail(self, key: str, value: Any, needed: str) -> PaperkilnError:
        return PaperkilnError(
            f"{self.where}: metadata {self.architecture}.{key} is {value!r:.40}, not {needed}; "
            f"{_MEND}"
        )

    def get(self, key: str, default: Any = None) -> Any:
        value = self.header.metadata.get(f"{self.architecture}.{key}", default)
        if value is None:
            raise PaperkilnError(
                f"{self.where}: metadata {self.architecture}.{key} is missing; {_MEND}"
            )
        return value

    def whole(self, key: str, low: int, high: int, default: int | None = None) -> int:
        value = self.get(key, default)
        if type(value) is not int or not low <= value <= high:
            raise self.fail(key, value, f"a whole number from {low} to {high}")
        return value

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float:
        value = self.get(key, default)
        # A float32 may lie a rounding outside a decimal bound; NaN fails too.
        if type(value) not in (int, float) or not low * (1 - 1e-6) <= value <= high * (1 + 1e-6):
            raise self.fail(key, value, f"a number from {low:g} to {high:g}")
        return float(value)

    def choice(self, key: str, known: tuple[str, ...], default: str) -> str:
        if (value := self.get(key, default)) not in known:
            raise self.fail(key, value, f"one of {', '.join(known)}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        if type(value := self.get(key, default)) is not bool:
            raise self.fail(key, value, "true or false")
        return value

    def dimensions(self, names: Mapping[str, str]) -> dict[str, int]:
        """Read the sizes; `names` are the keys of those that go by another name."""
        at = lambda name: names.get(name, name)  # noqa: E731
        n_heads = self.whole(at("n_heads"), 1, 1024)
        d_model = self.whole(at("d_model"), 1, 1 << 16)
        sizes = {
            "d_model": d_model,
            "n_heads": n_heads,
            "n_kv_heads": self.whole(at("n_kv_heads"), 1, 1024, n_heads),
            "head_dim": self.whole(at("head_dim"), 1, 4096, d_model // n_heads),
            "n_layers": self.whole(at("n_layers"), 1, 1000),
            "d_ff": self.whole(at("d_ff"), 1, 1 << 20),
            "context_length": self.whole(at("context_length"), 2, 1 << 24),
        }
        if n_heads % sizes["n_kv_heads"]:
            raise self.fail(at("n_kv_heads"), sizes["n_kv_heads"], f"a divisor of {n_heads}")
        return sizes

    def even_heads(self, shape: Shape) -> Shape:
        if shape.positional == "rope" and shape.head_dim % 2:
            raise self.fail("head_dim", shape.head_dim, "even, as rotary positions need")
        return shape


_FOREIGN_NAMES = {
    "d_model": "embedding_length", "n_layers": "block_count", "d_ff": "feed_forward_length",
    "n_heads": "attention.head_count", "n_kv_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
}  # fmt: skip
# A run spec's `arch` that matters only in training.
_TRAINING_ONLY = frozenset({"dropout", "init_std", "residual_init", "preset"})
_EPS = (1e-12, 0.1)
_THETA = (1.0, 1e12)


def _read_paperkiln(m: _Metadata) -> Shape:
    ours = {key for key in m.header.metadata if key.startswith("paperkiln.")}
    known = {f"paperkiln.{name}" for name in (*Shape.__dataclass_fields__, *_TRAINING_ONLY)}
    if unknown := sorted(ours - known):
        raise PaperkilnError(
            f"{m.where}: {unknown[0]} is a choice this engine does not know; use a newer paperkiln"
        )
    shape = Shape(
        **m.dimensions({}),
        vocab_size=m.whole("vocab_size", 2, 2_000_000),
        norm=m.choice("norm", ("layernorm", "rmsnorm"), "rmsnorm"),
        norm_eps=m.number("norm_eps", *_EPS, 1e-5),
        norm_placement=m.choice("norm_placement", ("pre", "post"), "pre"),
        activation=m.choice("activation", tuple(ACTIVATIONS), "swiglu"),
        positional=m.choice("positional", tuple(POSITIONS), "rope"),
        rope_theta=m.number("rope_theta", *_THETA, 10000.0),
        rope_layout=m.choice("rope_layout", ("half", "interleaved"), "half"),
        attention=m.choice("attention", ("exact", "swa"), "exact"),
        window=m.whole("window", 1, 1 << 24, 64),
        sinks=m.whole("sinks", 0, 1 << 24, 0),
        bias=m.flag("bias", False),
        tied_embeddings=m.flag("tied_embeddings", True),
        scale_embeddings=m.flag("scale_embeddings", False),
    )
    return m.even_heads(shape)


def _read_foreign(m: _Metadata) -> Shape:
    tensors = m.header.tensors
    embed = tensors.get("token_embd.weight")
    shape = Shape(
        **m.dimensions(_FOREIGN_NAMES),
        vocab_size=embed.shape[0] if embed else 0,
        tied_embeddings="output.weight" not in tensors,
    )
    if m.architecture == "gpt2":
        eps = m.number("attention.layer_norm_epsilon", *_EPS)
        return replace(
            shape, norm="layernorm", norm_eps=eps, activation="gelu_tanh", positional="learned",
            bias=True,
        )  # fmt: skip
    return m.even_heads(
        replace(
            shape,
            norm_eps=m.number("attention.layer_norm_rms_epsilon", *_EPS),
            rope_theta=m.number("rope.freq_base", *_THETA, 10000.0),
            rope_layout="interleaved",
            bias="blk.0.attn_q.bias" in tensors,
        )
    )


# ---- Tensors

# The tensors that hold each layer; {i} is the block. Of q, k and v, and of gate and up, either all
# have their own tensor or they are the rows of one.
_LAYOUTS: dict[str, dict[str, str]] = {
    "paperkiln": {
        "embed": "embed", "positions": "pos", "norm": "norm", "head": "head",
        "norm1": "blocks.{i}.norm1", "q": "blocks.{i}.attn.qkv", "k": "blocks.{i}.attn.qkv",
        "v": "blocks.{i}.attn.qkv", "out": "blocks.{i}.attn.out", "norm2": "blocks.{i}.norm2",
        "gate": "blocks.{i}.ffn.in", "up": "blocks.{i}.ffn.in", "down": "blocks.{i}.ffn.out",
        "rope_factors": "rope_factors",
    },
    "llama": {
        "embed": "token_embd", "norm": "output_norm", "head": "output",
        "norm1": "blk.{i}.attn_norm", "q": "blk.{i}.attn_q", "k": "blk.{i}.attn_k",
        "v": "blk.{i}.attn_v", "out": "blk.{i}.attn_output", "norm2": "blk.{i}.ffn_norm",
        "gate": "blk.{i}.ffn_gate", "up": "blk.{i}.ffn_up", "down": "blk.{i}.ffn_down",
        "rope_factors": "rope_freqs",
    },
    "gpt2": {
        "embed": "token_embd", "positions": "position_embd", "norm": "output_norm",
        "head": "output", "norm1": "blk.{i}.attn_norm", "q": "blk.{i}.attn_qkv",
        "k": "blk.{i}.attn_qkv", "v": "blk.{i}.attn_qkv", "out": "blk.{i}.attn_output",
        "norm2": "blk.{i}.ffn_norm", "up": "blk.{i}.ffn_up", "down": "blk.{i}.ffn_down",
    },
}  # fmt: skip
_NOTHING = Affine(0, 0, 0)


class _Finder:
    """Finds each layer's tensors, checks their shape and type, and that none is left over."""

    def __init__(self, header: GgufFile, shape: Shape, architecture: str, where: str) -> None:
        self.header, self.shape, self.where = header, shape, where
        self.names = _LAYOUTS[architecture]
        self.used: set[str] = set()

    def affines(self) -> list[Affine]:
        c = self.shape
        embed = self.matrices(["embed"], [c.vocab_size], c.d_model, bias=False)
        positions, head, last_norm = [_NOTHING], embed, _NOTHING
        if c.positional == "learned":
            positions = [self.positions()]
        if c.norm_placement == "pre":
            last_norm = self.norm("norm")
        if not c.tied_embeddings:
            head = self.matrices(["head"], [c.vocab_size], c.d_model, bias=False)
        found = [*embed, *positions, last_norm, *head]
        for i in range(c.n_layers):
            found += self.block(i)
        if extra := sorted(set(self.header.tensors) - self.used):
            raise PaperkilnError(
                f"{self.where}: tensor {extra[0]!r:.60} belongs to no layer that its metadata "
                f"describes; {_MEND}"
            )
        return found

    def block(self, i: int) -> Iterator[Affine]:
        c = self.shape
        heads, kv_heads = c.n_heads * c.head_dim, c.n_kv_heads * c.head_dim
        yield self.norm("norm1", i)
        yield from self.matrices(["q", "k", "v"], [heads, kv_heads, kv_heads], c.d_model, i)
        yield from self.matrices(["out"], [c.d_model], heads, i)
        yield self.norm("norm2", i)
        inner = ["gate", "up"] if c.gated else ["up"]
        if not c.gated:
            yield _NOTHING
        yield from self.matrices(inner, [c.d_ff] * len(inner), c.d_model, i)
        yield from self.matrices(["down"], [c.d_model], c.d_ff, i)

    def matrices(
        self, layers: list[str], rows: list[int], width: int, i: int = 0, bias: bool | None = None
    ) -> list[Affine]:
        """Find linear layers that read the same, `rows` by `width`, and perhaps share a tensor."""
        bias = self.shape.bias if bias is None else bias
        names = [self.names[layer].format(i=i) for layer in layers]
        shared = len(set(names)) < len(names)
        found, before = [], 0
        for name, n in zip(names, rows, strict=True):
            total = sum(rows) if shared else n
            weight = self.tensor(f"{name}.weight", (total, width), WEIGHT_TYPES)
            at = weight.offset + before * weight.n_bytes // total
            shift = self.tensor(f"{name}.bias", (total,)).offset + 4 * before if bias else 0
            found.append(Affine(at, WEIGHT_TYPES[weight.ggml_type], shift))
            before += n if shared else 0
        return found

    def norm(self, layer: str, i: int = 0) -> Affine:
        c, name = self.shape, self.names[layer].format(i=i)
        shifted = c.bias and c.norm == "layernorm"
        gain = self.tensor(f"{name}.weight", (c.d_model,))
        shift = self.tensor(f"{name}.bias", (c.d_model,)).offset if shifted else 0
        return Affine(gain.offset, 0, shift)

    def rope_factors(self) -> TensorInfo | None:
        name = f"{self.names.get('rope_factors')}.weight"
        if self.shape.positional != "rope" or name not in self.header.tensors:
            return None
        return self.tensor(name, (self.shape.head_dim // 2,))

    def positions(self) -> Affine:
        shape = (self.shape.context_length, self.shape.d_model)
        return Affine(self.tensor(f"{self.names['positions']}.weight", shape).offset, 0, 0)

    def tensor(
        self, name: str, shape: tuple[int, ...], kinds: Mapping[str, int] | tuple[str] = ("f32",)
    ) -> TensorInfo:
        info = self.header.tensors.get(name)
        if info is None:
            raise PaperkilnError(f"{self.where}: tensor {name!r} is missing; {_MEND}")
        if info.shape != shape:
            raise PaperkilnError(
                f"{self.where}: tensor {name!r} has shape {info.shape}, and its metadata says "
                f"{shape}; {_MEND}"
            )
        if info.ggml_type not in kinds:
            raise PaperkilnError(
                f"{self.where}: tensor {name!r} is {info.ggml_type}, and this engine reads "
                f"{', '.join(kinds)} there; open it with llama.cpp"
            )
        self.used.add(name)
        return info
