"""How other programs cut up and name our parameters: one table each, read in both directions.

Ours are canonical (models/config.py): q, k and v are the rows of one matrix, gate and up of
another. Llama files keep them apart; GPT-2 files keep q, k, v together, and Hugging Face's GPT-2
stores every linear layer transposed, (in, out).
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from paperkiln.errors import PaperkilnError
from paperkiln.models.config import ROPE_FACTORS, ModelConfig, parameter_shapes

if TYPE_CHECKING:
    import numpy as np

RopeLayout = Literal["half", "interleaved"]


class Layout(NamedTuple):
    """The names of one file format. `{i}` is the block; a tuple names the parts of a matrix."""

    names: dict[str, str | tuple[str, ...]]
    rope: RopeLayout | None = None
    transposed: bool = False  # linear weights are (in, out)
    rope_factors: str | None = None  # how it calls ROPE_FACTORS, if it has a place for them


HF_LLAMA = Layout(
    {
        "embed": "model.embed_tokens",
        "norm1": "model.layers.{i}.input_layernorm",
        "attn.qkv": tuple(f"model.layers.{{i}}.self_attn.{part}_proj" for part in "qkv"),
        "attn.out": "model.layers.{i}.self_attn.o_proj",
        "norm2": "model.layers.{i}.post_attention_layernorm",
        "ffn.in": ("model.layers.{i}.mlp.gate_proj", "model.layers.{i}.mlp.up_proj"),
        "ffn.out": "model.layers.{i}.mlp.down_proj",
        "norm": "model.norm",
        "head": "lm_head",
    },
    rope="half",
)
HF_GPT2 = Layout(
    {
        "embed": "transformer.wte",
        "pos": "transformer.wpe",
        "norm1": "transformer.h.{i}.ln_1",
        "attn.qkv": "transformer.h.{i}.attn.c_attn",
        "attn.out": "transformer.h.{i}.attn.c_proj",
        "norm2": "transformer.h.{i}.ln_2",
        "ffn.in": "transformer.h.{i}.mlp.c_fc",
        "ffn.out": "transformer.h.{i}.mlp.c_proj",
        "norm": "transformer.ln_f",
        "head": "lm_head",
    },
    transposed=True,
)
_GGUF_BOTH = {
    "embed": "token_embd",
    "norm1": "blk.{i}.attn_norm",
    "attn.out": "blk.{i}.attn_output",
    "norm2": "blk.{i}.ffn_norm",
    "ffn.out": "blk.{i}.ffn_down",
    "norm": "output_norm",
    "head": "output",
}
GGUF_LLAMA = Layout(
    _GGUF_BOTH
    | {
        "attn.qkv": tuple(f"blk.{{i}}.attn_{part}" for part in "qkv"),
        "ffn.in": ("blk.{i}.ffn_gate", "blk.{i}.ffn_up"),
    },
    rope="interleaved",
    rope_factors="rope_freqs.weight",
)
CANONICAL = Layout(
    {stem: stem for stem in ("embed", "pos", "norm", "head")}
    | {
        stem: f"blocks.{{i}}.{stem}"
        for stem in ("norm1", "attn.qkv", "attn.out", "norm2", "ffn.in", "ffn.out")
    },
    rope_factors=ROPE_FACTORS,
)
GGUF_GPT2 = Layout(
    _GGUF_BOTH
    | {"pos": "position_embd", "attn.qkv": "blk.{i}.attn_qkv", "ffn.in": "blk.{i}.ffn_up"}
)


class Part(NamedTuple):
    """One tensor of a file: which rows of which parameter it holds, and how they are arranged."""

    name: str
    source: str  # canonical name
    rows: slice
    rotary_heads: int  # heads whose rows are rotary pairs; 0 for none
    transposed: bool


def parts(config: ModelConfig, layout: Layout) -> list[Part]:
    """Return what a file of this layout must hold, in model order."""
    c, found = config, []
    for source, shape in parameter_shapes(config).items():
        stem, kind = source.rsplit(".", 1)
        block, stem = stem.split(".", 2)[1:] if stem.startswith("blocks.") else ("", stem)
        names = layout.names[stem]
        linear = stem.startswith(("attn.", "ffn."))
        if isinstance(names, str):
            names, sizes, heads = (names,), [shape[0]], [0]
        elif stem == "attn.qkv":
            sizes = [n * c.head_dim for n in (c.n_heads, c.n_kv_heads, c.n_kv_heads)]
            heads = [c.n_heads, c.n_kv_heads, 0]  # grouped heads: k has fewer than q
        else:
            sizes, heads = [c.d_ff, c.d_ff], [0, 0]
        at = 0
        for name, size, n_heads in zip(names, sizes, heads, strict=True):
            rotary = n_heads if layout.rope and layout.rope != c.rope_layout else 0
            transposed = layout.transposed and linear and kind == "weight"
            full = f"{name.format(i=block)}.{kind}"
            found.append(Part(full, source, slice(at, at + size), rotary, transposed))
            at += size
    return found


def to_layout(
    config: ModelConfig, params: Mapping[str, np.ndarray], layout: Layout
) -> dict[str, np.ndarray]:
    """Return canonical parameters under the names and in the arrangement of a layout.

    Raises PaperkilnError for rotary factors in a layout that has no place for them.
    """
    tensors = {}
    if ROPE_FACTORS in params:
        if layout.rope_factors is None:
            raise PaperkilnError(
                "the model's rotary positions are scaled, which this format has no place for; "
                "export it as gguf"
            )
        tensors[layout.rope_factors] = params[ROPE_FACTORS]
    for part in parts(config, layout):
        rows = params[part.source][part.rows]
        if part.rotary_heads:
            rows = swap_rotary_pairs(rows, part.rotary_heads, config.rope_layout)
        tensors[part.name] = rows.T if part.transposed else rows
    return tensors


def from_layout(
    config: ModelConfig, tensors: Mapping[str, np.ndarray], layout: Layout, where: str
) -> dict[str, np.ndarray]:
    """Return canonical float32 parameters from a file's tensors, the inverse of to_layout.

    Raises PaperkilnError if a tensor is missing, unexpected or of another shape.
    """
    import numpy as np

    wanted, shapes = parts(config, layout), parameter_shapes(config)
    if config.positional == "rope" and layout.rope_factors in tensors:
        n_pairs = config.head_dim // 2
        wanted.append(Part(layout.rope_factors, ROPE_FACTORS, slice(0, n_pairs), 0, False))
        shapes[ROPE_FACTORS] = (n_pairs,)
    check_names([part.name for part in wanted], tensors, where)
    for part in wanted:
        rows = (part.rows.stop - part.rows.start, *shapes[part.source][1:])
        expected = rows[::-1] if part.transposed else rows
        if tensors[part.name].shape != expected:
            raise PaperkilnError(
                f"{where}: tensor {part.name!r} has shape {tensors[part.name].shape}, and the "
                f"configuration says {expected}; they are from different models"
            )
        if tensors[part.name].dtype.kind != "f":
            raise PaperkilnError(
                f"{where}: tensor {part.name!r} is {tensors[part.name].dtype}, not floating point; "
                "quantised weights load from gguf only"
            )
    # Only now: a hostile configuration could ask for more memory than there is.
    params = {name: np.empty(shape, np.float32) for name, shape in shapes.items()}
    for part in wanted:
        rows = tensors[part.name].T if part.transposed else tensors[part.name]
        if part.rotary_heads:
            rows = swap_rotary_pairs(rows, part.rotary_heads, layout.rope)
        params[part.source][part.rows] = rows
    if not (params.get(ROPE_FACTORS, np.ones(1)) > 0).all():
        raise PaperkilnError(f"{where}: {layout.rope_factors} divides by what is not above 0")
    return params


def swap_rotary_pairs(rows: np.ndarray, heads: int, now: RopeLayout) -> np.ndarray:
    """Move rotary pairs from layout `now` to the other one, head by head; (heads * E, ...).

    half keeps pair m at rows (m, m + E/2) of a head, interleaved at rows (2m, 2m + 1).
    """
    pairs = (2, -1) if now == "half" else (-1, 2)
    split = rows.reshape(heads, *pairs, *rows.shape[1:])  # (heads * E, ...) -> (heads, 2, E/2, ...)
    return split.swapaxes(1, 2).reshape(rows.shape)


def check_names(wanted: Collection[str], found: Collection[str], where: str) -> None:
    """Raise PaperkilnError unless the two sets of tensor names are equal."""
    missing = [name for name in wanted if name not in found]
    extra = sorted(set(found) - set(wanted))
    if not missing and not extra:
        return
    said = []
    if missing:
        near = difflib.get_close_matches(missing[0], extra, 1)
        hint = f" (nearest in the file: {near[0]!r})" if near else ""
        said.append(f"{len(missing)} tensors are missing: {_some(missing)}{hint}")
    if extra:
        near = difflib.get_close_matches(extra[0], wanted, 1)
        hint = f" (nearest known: {near[0]!r})" if near and not missing else ""
        said.append(f"{len(extra)} are unexpected: {_some(extra)}{hint}")
    raise PaperkilnError(f"{where}: {'; '.join(said)}; the weights fit another configuration")


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
