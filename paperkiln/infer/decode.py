"""The decoder's forward pass for generation: numpy arrays, no tape, one sequence.

`models/decoder.py` states the model as the papers draw it; this file computes the same logits
with as few numpy calls per token as it can, because at batch 1 a small model spends its time
between the calls, not in them. Most of that is done once, at load, by `infer/fold.py`.

`prefill` reads many tokens, `step` reads one. Both are pure functions of the weights, the tokens
and the cache: one decoder serves any number of caches and threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np
from scipy.special import erf

from paperkiln.engine.attention import alibi_slopes
from paperkiln.infer.cache import KVCache, bytes_per_token
from paperkiln.infer.fold import fold
from paperkiln.models.config import ModelConfig, count_parameters

Activate = Callable[[np.ndarray], np.ndarray]

# A file may claim any context, and tables are made for all of it; a cache larger than the memory
# there is would not be given.
LONGEST_CONTEXT = 1 << 18  # tokens
LARGEST_CACHE = 1 << 32  # bytes
PREFILL_CHUNK = 256  # Tokens per pass: bounds the (H, T, S) scores of a long prompt.
QUIETLY = np.errstate(all="ignore")  # what is no number shows up in the logits


class NumpyDecoder:
    """A decoder with weights, ready to generate; the caches belong to the callers."""

    @QUIETLY
    def __init__(self, config: ModelConfig, params: dict[str, np.ndarray]) -> None:
        most = min(LONGEST_CONTEXT, LARGEST_CACHE // bytes_per_token(config))
        longest = min(config.context_length, most)
        self.config = config = config.model_copy(update={"context_length": longest})
        self.weights = fold(config, params)
        self.n_weights = count_parameters(config)
        self._activate = ACTIVATIONS[config.activation]
        self._biased_scores = config.positional == "alibi" or config.attention == "swa"
        # A position's rotations, once for every query and key head: what `step` multiplies by.
        n_pairs = config.head_dim // 2
        self._tiled = np.arange((config.n_heads + config.n_kv_heads) * n_pairs) % max(1, n_pairs)

    def new_cache(self) -> KVCache:
        """Return an empty cache for one sequence."""
        return KVCache(self.config)

    @QUIETLY
    def prefill(
        self, ids: Sequence[int], cache: KVCache, *, all_logits: bool = False
    ) -> np.ndarray:
        """Read tokens after those in the cache; return the last one's logits (V,), or all (T, V).

        Raises ValueError when there is no token or they exceed the context.
        """
        ids = np.asarray(ids, dtype=np.intp)
        if not ids.size:
            raise ValueError("prefill needs at least one token")
        chunks = [ids[i : i + PREFILL_CHUNK] for i in range(0, ids.size, PREFILL_CHUNK)]
        hidden = [self._read(chunk, cache) for chunk in chunks]  # each (T, D)
        if all_logits:
            return self._logits(np.concatenate(hidden))
        return self._logits(hidden[-1][-1:])[0]

    def _read(self, ids: np.ndarray, cache: KVCache) -> np.ndarray:  # (T,) -> (T, D)
        c, w = self.config, self.weights
        n_tokens, groups = ids.size, c.n_heads // c.n_kv_heads
        q_width, qk_width = c.n_heads * c.head_dim, (c.n_heads + c.n_kv_heads) * c.head_dim
        start = cache.extend(n_tokens)
        stop = start + n_tokens
        bias = score_bias(c, start, n_tokens)
        x = w.embed[ids]  # (T, D)
        if w.positions is not None:
            x += w.positions[start:stop]
        for layer, kv, keys, values in zip(w.layers, cache.layers, *cache.views(), strict=True):
            qkv = linear(x if w.post else rms(x, c.norm_eps), *layer.qkv)
            if w.rotations is not None:
                pairs = qkv[:, :qk_width].reshape(n_tokens, -1, c.head_dim).view(np.complex64)
                rotated = pairs * w.rotations[start:stop, None]  # (T, H + K, E / 2)
                qkv[:, :qk_width] = rotated.view(np.float32).reshape(n_tokens, qk_width)
            new = qkv[:, q_width:].reshape(n_tokens, 2 * c.n_kv_heads, c.head_dim)
            kv[:, start:stop] = new.swapaxes(0, 1)  # (2K, T, E)
            q = qkv[:, :q_width].reshape(n_tokens, c.n_kv_heads, groups, c.head_dim)
            scores = q.transpose(1, 2, 0, 3) @ keys[:, None]  # (K, G, T, E) @ (K, 1, E, S)
            scores += bias
            mixed = softmax(scores) @ values[:, None]  # (K, G, T, S) @ (K, 1, S, E)
            mixed = mixed.transpose(2, 0, 1, 3).reshape(n_tokens, q_width)
            x = x + linear(mixed, *layer.out)
            if w.post:
                x = norm(x, c, *layer.norm1)
            inner = linear(x if w.post else rms(x, c.norm_eps), *layer.ffn_in)
            x = x + linear(self._activate(inner), *layer.ffn_out)
            if w.post:
                x = norm(x, c, *layer.norm2)
        return x

    def _logits(self, x: np.ndarray) -> np.ndarray:  # (T, D) -> (T, V)
        w = self.weights
        return linear(x if w.post else rms(x, self.config.norm_eps), *w.head)

    @QUIETLY
    def step(self, token: int, cache: KVCache) -> np.ndarray:
        """Read one token after those in the cache; return its logits (V,), float32.

        Raises ValueError when the cache is full.
        """
        c, w = self.config, self.weights
        if w.post:  # Not folded, so nothing to gain: the general path.
            return self.prefill([token], cache)
        position, eps = cache.extend(1), c.norm_eps
        q_width, qk_width = c.n_heads * c.head_dim, (c.n_heads + c.n_kv_heads) * c.head_dim
        q_shape, kv_shape = (c.n_kv_heads, -1, c.head_dim), (2 * c.n_kv_heads, c.head_dim)
        bias = score_bias(c, position, 1) if self._biased_scores else None
        rotation = None if w.rotations is None else w.rotations[position][self._tiled]
        x = w.embed[token]  # (D,)
        if w.positions is not None:
            x = x + w.positions[position]
        for layer, kv, keys, values in zip(w.layers, cache.layers, *cache.views(), strict=True):
            qkv = linear(rms_of_one(x, eps), *layer.qkv)
            if rotation is not None:
                pairs = qkv[:qk_width].view(np.complex64)  # ((H + K) E / 2,)
                pairs *= rotation  # in place in qkv
            kv[:, position] = qkv[q_width:].reshape(kv_shape)
            mixed = attend(qkv[:q_width].reshape(q_shape), keys, values, bias)
            update = linear(mixed.reshape(q_width), *layer.out)
            x = np.add(x, update, update)
            inner = linear(rms_of_one(x, eps), *layer.ffn_in)
            update = linear(self._activate(inner), *layer.ffn_out)
            x = np.add(x, update, update)
        return linear(rms_of_one(x, eps), *w.head)


def attend(
    q: np.ndarray, keys: np.ndarray, values: np.ndarray, bias: np.ndarray | None
) -> np.ndarray:
    """Return softmax(q k^T) v of one token: q (K, G, E), keys (K, E, S), values (K, S, E)."""
    scores = np.matmul(q, keys)  # (K, G, S)
    if bias is not None:
        scores += bias[:, :, 0]
    scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
    np.exp(scores, scores)
    mixed = np.matmul(scores, values)  # (K, G, E)
    mixed /= np.add.reduce(scores, axis=-1, keepdims=True)  # E numbers to divide, not S
    return mixed


def score_bias(config: ModelConfig, start: int, n_tokens: int) -> np.ndarray:
    """Return what is added to the scores of queries start..start + T - 1: 0, ALiBi or -inf.

    Shape (K, G, T, S) for ALiBi (Press et al. 2021), else (1, 1, T, S); S = start + T. Query i
    sees key j when j <= i and, with a sliding window, i - j < window or j < sinks.
    """
    i = np.arange(start, start + n_tokens)[:, None]  # (T, 1)
    j = np.arange(start + n_tokens)  # (S,)
    hidden = j > i  # (T, S)
    if config.attention == "swa":
        hidden |= (i - j >= config.window) & (j >= config.sinks)
    bias = np.where(hidden, np.float32(-np.inf), np.float32(0))[None, None]
    if config.positional == "alibi":
        slopes = alibi_slopes(config.n_heads).reshape(config.n_kv_heads, -1, 1, 1)
        bias = bias - (slopes * (i - j)).astype(np.float32)
    return bias


def linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """Return x W + b: x (T, in) or (in,), W (in, out), b (out,) or none."""
    y = x.dot(weight)
    return y if bias is None else np.add(y, bias, y)


def rms(x: np.ndarray, eps: float) -> np.ndarray:
    """Return x over its root mean square: RMSNorm (Zhang & Sennrich 2019) without its gain."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(eps))


def rms_of_one(x: np.ndarray, eps: float) -> np.ndarray:
    """Return `rms` of one token's x (D,): a Python square root is faster than an array of one."""
    return x * np.float32(1 / sqrt(x.dot(x) / x.size + eps))


def norm(
    x: np.ndarray, config: ModelConfig, gain: np.ndarray, shift: np.ndarray | None
) -> np.ndarray:
    """Return the whole norm layer, for the post-norm placement, where nothing can be folded."""
    if config.norm == "layernorm":
        x = x - x.mean(axis=-1, keepdims=True)
    x = rms(x, config.norm_eps) * gain
    return x if shift is None else x + shift


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return the softmax over the last axis, computed in place."""
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def gelu(x: np.ndarray) -> np.ndarray:
    """Return x Φ(x) = x/2 (1 + erf(x / √2)) (Hendrycks & Gimpel 2016)."""
    y = erf(x * np.float32(0.5**0.5))
    y += 1
    y *= x
    y *= np.float32(0.5)
    return y


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """Return GPT-2's GELU: x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))."""
    y = x * x
    y *= np.float32(0.044715)
    y += 1
    y *= x
    y *= np.float32(sqrt(2 / np.pi))
    np.tanh(y, y)
    y += 1
    y *= x
    y *= np.float32(0.5)
    return y


def silu_of_double(half: np.ndarray) -> np.ndarray:
    """Return silu(2h) = h (1 + tanh h): `fold` halves the rows, and tanh never overflows."""
    y = np.tanh(half)
    y += _ONE
    y *= half
    return y


def relu(x: np.ndarray) -> np.ndarray:
    """Return max(x, 0)."""
    return np.maximum(x, 0)


def squared_relu(x: np.ndarray) -> np.ndarray:
    """Return max(x, 0)² (So et al. 2021)."""
    y = np.maximum(x, 0)
    y *= y
    return y


def gated(activation: Activate) -> Activate:
    """Return the gated form f(gate) * up of an activation, for [gate F | up F] (Shazeer 2020)."""

    def glu(x: np.ndarray) -> np.ndarray:  # (..., 2F) -> (..., F)
        d_ff = x.shape[-1] // 2
        y = activation(x[..., :d_ff])
        y *= x[..., d_ff:]
        return y

    return glu


_ONE = np.array(1, np.float32)  # An array adds faster than a Python number does.

ACTIVATIONS = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": silu_of_double,
    "squared_relu": squared_relu,
    "swiglu": gated(silu_of_double),
    "geglu": gated(gelu),
    "reglu": gated(relu),
}
