"""Rotary positions and causal attention on numpy: tables, masks, and the two ops.

Shapes: q (B, T, H, E), k and v (B, S, K, E) with T == S in training; query head h reads
key/value head h // (H / K).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from paperkiln.engine.tape import Grads, Tensor, record, recording

Factors = tuple[float, ...]  # (E/2,)

# Scores of one chunk of sequences stay in a core's L2 cache between the passes of softmax.
_CHUNK_BYTES = 1 << 20
_BLOCK = 64  # queries in a block: small skips more of what nobody sees, large suits GEMM


@lru_cache(maxsize=32)
def rope_table(
    n_positions: int, head_dim: int, theta: float, factors: Factors | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return cos and sin, each (n_positions, E/2) float64, of position · theta^(-2m/E).

    RoFormer, Su et al. 2021, equation 15. Frequency m is divided by factors[m], if given.
    """
    inv_freq = theta ** (-np.arange(0, head_dim, 2) / head_dim)
    if factors is not None:
        inv_freq /= factors
    angles = np.outer(np.arange(n_positions), inv_freq)
    return np.cos(angles), np.sin(angles)


@lru_cache(maxsize=32)
def rope_tables_as(
    n_positions: int, head_dim: int, theta: float, dtype: np.dtype, factors: Factors | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return cos and sin of `rope_table` in a dtype, each (T, 1, E/2)."""
    cos, sin = rope_table(n_positions, head_dim, theta, factors)
    return cos.astype(dtype)[:, None, :], sin.astype(dtype)[:, None, :]


def _rotate(
    x: np.ndarray, cos: np.ndarray, sin: np.ndarray, interleaved: bool
) -> np.ndarray:  # (B, T, H, E) -> (B, T, H, E)
    out = np.empty(x.shape, x.dtype)
    half = x.shape[-1] // 2
    first = np.s_[..., 0::2] if interleaved else np.s_[..., :half]
    second = np.s_[..., 1::2] if interleaved else np.s_[..., half:]
    x1, x2 = x[first], x[second]
    np.multiply(x1, cos, out=out[first])
    out[first] -= x2 * sin
    np.multiply(x2, cos, out=out[second])
    out[second] += x1 * sin
    return out


def rope(
    x: Tensor, theta: float = 10000.0, interleaved: bool = False, factors: Factors | None = None
) -> Tensor:
    """Rotate each pair of x (B, T, H, E) by its position's angle; position t is row t.

    (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin); a rotation's gradient is the inverse
    rotation. Pairs are (m, m + E/2), or (2m, 2m + 1) when interleaved; pair m's angle is divided
    by factors[m].
    """
    cos, sin = rope_tables_as(x.shape[1], x.shape[3], theta, x.dtype, factors)

    def backward(dout: np.ndarray) -> Grads:
        return (_rotate(dout, cos, -sin, interleaved),)

    return record(_rotate(x.data, cos, sin, interleaved), (x,), backward)


def alibi_slopes(n_heads: int) -> np.ndarray:
    """Return the slope of each head, (H,) float64; Press et al. 2021, section 3.

    A power of two gives 2^(-8 (h + 1) / H). Other counts take the slopes of the power of two
    below, then every second slope of the one above, as the paper's code does.
    """
    below = 1 << (n_heads.bit_length() - 1)
    slopes = 2.0 ** (-8.0 * np.arange(1, below + 1) / below)
    if below == n_heads:
        return slopes
    above = 2.0 ** (-8.0 * np.arange(1, 2 * below + 1) / (2 * below))
    return np.concatenate([slopes, above[0::2][: n_heads - below]])


class Block(NamedTuple):
    """Queries [start, stop) and the keys [first_key, stop) that any of them can see."""

    start: int
    stop: int
    first_key: int

    @property
    def queries(self) -> slice:
        """The queries, as a slice of T."""
        return slice(self.start, self.stop)

    @property
    def keys(self) -> slice:
        """The keys, as a slice of T."""
        return slice(self.first_key, self.stop)


def query_blocks(n_tokens: int, window: int | None, sinks: int) -> list[Block]:
    """Cut the queries into blocks, so that scores no query sees are mostly not computed."""
    blocks = []
    for start in range(0, n_tokens, _BLOCK):
        first_key = 0 if window is None or sinks else max(0, start - window + 1)
        blocks.append(Block(start, min(start + _BLOCK, n_tokens), first_key))
    return blocks


@lru_cache(maxsize=32)
def causal_bias(block: Block, window: int | None, sinks: int, dtype: np.dtype) -> np.ndarray:
    """Return (R, S): 0 where query i of the block sees key j, -inf elsewhere; for all heads.

    j <= i, and with a window also i - j < window or j < sinks (StreamingLLM, Xiao et al. 2023).
    """
    i = np.arange(block.start, block.stop)[:, None]
    j = np.arange(block.first_key, block.stop)[None, :]
    visible = j <= i
    if window is not None:
        visible &= (i - j < window) | (j < sinks)
    return np.where(visible, 0.0, -np.inf).astype(dtype)


class NumpyRows:
    """The two elementwise passes of attention, which `fast_ops` replaces by compiled ones.

    R queries and S keys of one block; b sequences, K key/value heads, G queries heads for each.
    """

    @staticmethod
    def softmax(
        scores: np.ndarray, block: Block, window: int | None, sinks: int, alibi: bool
    ) -> None:
        """Turn scores (b, K, G, R, S) into probabilities over the visible keys, in place."""
        b, K, G, R, S = scores.shape
        if alibi:
            keys = np.arange(block.first_key, block.stop)
            distance = keys[None, :] - np.arange(block.start, block.stop)[:, None]  # j - i
            per_head = scores.reshape(b, K * G, R, S)
            for h, slope in enumerate(alibi_slopes(K * G)):
                per_head[:, h] += (slope * distance).astype(scores.dtype)
        scores += causal_bias(block, window, sinks, scores.dtype)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores *= 1.0 / scores.sum(axis=-1, keepdims=True)

    @staticmethod
    def softmax_backward(ds: np.ndarray, p: np.ndarray, row_dot: np.ndarray, block: Block) -> None:
        """Turn dP (b, K, G, R, S) into dS = P ∘ (dP - row_dot), row_dot (b, K, G, R, 1)."""
        ds -= row_dot
        ds *= p


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    window: int | None = None,
    sinks: int = 0,
    alibi: bool = False,
) -> Tensor:
    """Return causal attention softmax(q kᵀ / sqrt(E) + bias) v, (B, T, H, E).

    The bias hides what a query does not see (`causal_bias`) and, with alibi, adds
    -slope (i - j) for its head.
    """
    return attention_with(NumpyRows, q, k, v, window, sinks, alibi)


def attention_with(
    rows: type[NumpyRows],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    window: int | None,
    sinks: int,
    alibi: bool,
) -> Tensor:
    """Return attention computed with the given elementwise passes.

    With P the probabilities and dP = do vᵀ:
    dS = P ∘ (dP - rowsum(dP ∘ P)), and rowsum(dP ∘ P) = rowsum(do ∘ o);
    dq = dS k / sqrt(E), dk = dSᵀ q / sqrt(E), dv = Pᵀ do; k and v sum over their query group.
    """
    B, T, H, E = q.shape
    K = k.shape[2]
    scale = 1.0 / np.sqrt(E)
    if window is not None and window >= T:
        window = None
    # (B, T, H, E) -> (B, K, G, T, E): views; BLAS reads them with their row stride.
    grouped = lambda a: a.reshape(B, T, K, H // K, E).transpose(0, 2, 3, 1, 4)  # noqa: E731
    per_kv = lambda a: a.transpose(0, 2, 1, 3)[:, :, None]  # noqa: E731  (B, K, 1, T, E)
    qg, kg, vg = grouped(q.data * q.dtype.type(scale)), per_kv(k.data), per_kv(v.data)
    out = np.empty(q.shape, q.dtype)
    og = grouped(out)
    n_chunk = max(1, _CHUNK_BYTES // (H * min(T, _BLOCK) * T * q.dtype.itemsize))
    parts = [
        (slice(b, b + n_chunk), block)
        for b in range(0, B, n_chunk)
        for block in query_blocks(T, window, sinks)
    ]
    keep = recording()
    probs = []
    for batch, block in parts:
        p = _scores(qg[batch, ..., block.queries, :], kg[batch, ..., block.keys, :])
        rows.softmax(p, block, window, sinks, alibi)
        np.matmul(p, vg[batch, ..., block.keys, :], out=og[batch, ..., block.queries, :])
        if keep:
            probs.append(p)

    def backward(dout: np.ndarray) -> Grads:
        dq, dk, dv = np.empty(q.shape, q.dtype), np.zeros(k.shape, k.dtype), np.zeros_like(v.data)
        dqg, dkg, dvg = grouped(dq), per_kv(dk)[:, :, 0], per_kv(dv)[:, :, 0]
        dog = grouped(np.ascontiguousarray(dout))
        row_dot = np.einsum("bthe,bthe->bht", dout, out).reshape(B, K, H // K, T, 1)
        for (batch, block), p in zip(parts, probs, strict=True):
            queries, keys = (
                (batch, ..., block.queries, slice(None)),
                (batch, ..., block.keys, slice(None)),
            )
            ds = _scores(dog[queries], vg[keys])
            rows.softmax_backward(ds, p, row_dot[queries], block)
            np.matmul(ds, kg[keys], out=dqg[queries])
            # qg already carries the scale, which dk needs and dq gets below.
            dkg[keys] += _sum_groups(ds.swapaxes(-1, -2), qg[queries])
            dvg[keys] += _sum_groups(p.swapaxes(-1, -2), dog[queries])
        dq *= scale
        return dq, dk, dv

    return record(out, (q, k, v), backward)


def _scores(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a bᵀ, (b, K, G, R, S) in row-major order, which matmul alone does not promise."""
    out = np.empty((*a.shape[:-1], b.shape[-2]), a.dtype)
    return np.matmul(a, b.swapaxes(-1, -2), out=out)


def _sum_groups(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the sum over query groups of a @ b: (b, K, G, S, E) -> (b, K, S, E)."""
    if a.shape[2] == 1:
        return np.matmul(a[:, :, 0], b[:, :, 0])
    return np.matmul(a, b).sum(axis=2)
