"""Rewrite trained weights into an equal model that needs fewer operations per token.

Each rewriting is exact algebra; in float32 the logits move by about 1e-6.

- A norm's gain and shift are linear, so they go into the linear layer that reads the norm.
- LayerNorm is RMSNorm of a centred vector, and centring is linear: every layer that writes into
  the residual stream is centred once, here, and nothing needs centring later.
- The attention scale 1/√E goes into the query rows.
- Rotary pairs are laid side by side, so that a rotation is one complex product. Queries and keys
  are reordered alike, so their dot products stay.
- silu(g) = h (1 + tanh h) with h = g/2: the half goes into the gate rows.

The first two hold for pre-norm only: a post-norm output is itself the residual stream.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paperkiln.models.config import ROPE_FACTORS, ModelConfig, parameter_shapes
from paperkiln.models.decoder import sinusoidal_table

Affine = tuple[np.ndarray, np.ndarray | None]  # weight (in, out), bias (out,) or none


class FoldedLayer(NamedTuple):
    """One block's linear layers, and its norms where they could not be folded."""

    qkv: Affine
    out: Affine
    ffn_in: Affine
    ffn_out: Affine
    norm1: Affine | None
    norm2: Affine | None


class FoldedWeights(NamedTuple):
    """A whole decoder's folded weights, float32."""

    embed: np.ndarray  # (V, D)
    positions: np.ndarray | None  # (C, D), learned or sinusoidal
    rotations: np.ndarray | None  # (C, E / 2) complex64, rope
    layers: list[FoldedLayer]
    head: Affine  # (D, V)
    post: bool  # the norms stand after the residual sum, unfolded


def fold(config: ModelConfig, params: dict[str, np.ndarray]) -> FoldedWeights:
    """Return the folded weights of `params` (canonical names, linears (out, in)).

    Raises ValueError when a parameter is missing or has another shape than the config says.
    """
    for name, shape in parameter_shapes(config).items():
        if name not in params or params[name].shape != shape:
            found = params[name].shape if name in params else "missing"
            raise ValueError(f"parameter {name} should have shape {shape} but is {found}")
    c, post = config, config.norm_placement == "post"
    centred = not post and c.norm == "layernorm"

    def affine(name: str) -> Affine:
        return params[f"{name}.weight"], params.get(f"{name}.bias")

    def reader(weight: np.ndarray, bias: np.ndarray | None, norm: str) -> Affine:
        if post:
            return weight, bias
        gain, shift = affine(norm)
        if shift is not None:
            bias = weight @ shift + (0 if bias is None else bias)
        return weight * gain, bias

    def writer(name: str) -> Affine:
        weight, bias = affine(name)
        if centred:
            weight, bias = centre(weight.T).T, None if bias is None else centre(bias)
        return transposed(weight, bias)

    layers = []
    for i in range(c.n_layers):
        at = f"blocks.{i}"
        qkv = reader(*affine(f"{at}.attn.qkv"), f"{at}.norm1")
        ffn_in = reader(*affine(f"{at}.ffn.in"), f"{at}.norm2")
        layers.append(
            FoldedLayer(
                qkv=transposed(*(prepare_qkv(c, a) for a in qkv)),
                out=writer(f"{at}.attn.out"),
                ffn_in=transposed(*(prepare_ffn_in(c, a) for a in ffn_in)),
                ffn_out=writer(f"{at}.ffn.out"),
                norm1=affine(f"{at}.norm1") if post else None,
                norm2=affine(f"{at}.norm2") if post else None,
            )
        )
    embed, positions = params["embed.weight"], position_table(c, params)
    head = params["embed.weight" if c.tied_embeddings else "head.weight"]
    if c.scale_embeddings:
        embed = embed * np.float32(c.d_model**0.5)
    if centred:
        embed = centre(embed)
        positions = None if positions is None else centre(positions)
    factors = params.get(ROPE_FACTORS)
    rotations = rotation_table(c, factors) if c.positional == "rope" else None
    head = transposed(*reader(head, None, "norm"))
    return FoldedWeights(embed, positions, rotations, layers, head, post)


def transposed(weight: np.ndarray, bias: np.ndarray | None) -> Affine:
    """Return weight as a contiguous (in, out) float32 array, the faster one for a vector."""
    weight = np.ascontiguousarray(weight.T, dtype=np.float32)
    return weight, None if bias is None else bias.astype(np.float32)


def centre(rows: np.ndarray) -> np.ndarray:
    """Return rows (..., D) minus the mean of each."""
    return (rows - rows.mean(axis=-1, keepdims=True, dtype=np.float64)).astype(np.float32)


def prepare_qkv(config: ModelConfig, rows: np.ndarray | None) -> np.ndarray | None:
    """Return the qkv rows, or their biases, with the score scale and the rotary order put in."""
    if rows is None:
        return None
    n_heads, head_dim = config.n_heads, config.head_dim
    heads = rows.reshape(-1, head_dim, *rows.shape[1:]).copy()  # (H + 2K, E, D)
    heads[:n_heads] *= np.float32(head_dim**-0.5)
    if config.positional == "rope" and config.rope_layout == "half":
        pairs = np.arange(head_dim).reshape(2, -1).T.ravel()  # 0, E/2, 1, E/2 + 1, ...
        n_rotated = n_heads + config.n_kv_heads
        heads[:n_rotated] = heads[:n_rotated, pairs]
    return heads.reshape(rows.shape)


def prepare_ffn_in(config: ModelConfig, rows: np.ndarray | None) -> np.ndarray | None:
    """Return the first feed-forward's rows, or their biases; what goes into silu is halved."""
    if rows is None or config.activation not in ("silu", "swiglu"):
        return rows
    rows = rows.copy()
    rows[: config.d_ff] *= np.float32(0.5)
    return rows


def position_table(config: ModelConfig, params: dict[str, np.ndarray]) -> np.ndarray | None:
    """Return what is added to the embedding at each position, (C, D), if anything is."""
    if config.positional == "learned":
        return params["pos.weight"]
    if config.positional != "sinusoidal":
        return None
    return sinusoidal_table(config.context_length, config.d_model).astype(np.float32)


def rotation_table(config: ModelConfig, factors: np.ndarray | None = None) -> np.ndarray:
    """Return e^(i p θ^(-2m/E)) for position p and pair m, (C, E/2) complex64 (Su et al. 2021).

    Each frequency is divided by its factor, where there are any.
    """
    m = np.arange(config.head_dim // 2)
    frequencies = config.rope_theta ** (-2.0 * m / config.head_dim)
    if factors is not None:
        frequencies = frequencies / factors
    angles = np.arange(config.context_length)[:, None] * frequencies
    return np.exp(1j * angles).astype(np.complex64)
