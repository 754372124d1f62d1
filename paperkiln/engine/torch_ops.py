"""The op set on torch: the same names, signatures and shapes as `ops`, differentiated by torch.

The one file that imports torch at its top: import it only when a torch device is asked for.
No backward is written here, so torch's autograd checks each one derived by hand in `ops`.
Where `ops` takes arrays (ids, targets, constants) so does this; they are moved to the device of
the tensor they meet. `engine.device` chooses the device and says so with `place_on`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint as torch_checkpoint

from paperkiln.engine.attention import Block, Factors, alibi_slopes, causal_bias, rope_table

__all__ = [
    "add", "attention", "checkpoint", "concat", "constant", "cross_entropy", "div", "dropout",
    "embedding", "exp", "geglu", "gelu", "gelu_tanh", "index", "layer_norm", "linear",
    "linear_cross_entropy", "log", "matmul", "mean", "mul", "neg", "no_grad", "reglu", "relu",
    "reshape", "rms_norm", "rope", "sigmoid", "silu", "softmax", "squared_relu", "sub", "sum",
    "swiglu", "tanh", "tensor", "to_numpy", "transpose",
]  # fmt: skip

Operand = Tensor | np.ndarray | float

_device = torch.device("cpu")


def place_on(device: str) -> None:
    """Make `tensor` put new tensors on this torch device: "cpu", "cuda", "cuda:1", "mps"."""
    global _device
    _device = torch.device(device)


def tensor(data: Any, requires_grad: bool = False) -> Tensor:
    """Move an array to the device in use; integers become float32.

    On the CPU the tensor shares a writable array's memory, as on the tape.
    """
    data = np.asarray(data, order="C")
    if data.dtype.kind != "f":
        data = data.astype(np.float32)
    if not data.flags.writeable:
        data = data.copy()
    return torch.from_numpy(data).to(_device).requires_grad_(requires_grad)


def constant(values: np.ndarray, like: Tensor) -> Tensor:
    """Wrap values that are not trained, in the dtype and on the device of `like`."""
    return torch.tensor(values, dtype=like.dtype, device=like.device)


def to_numpy(x: Tensor) -> np.ndarray:
    """Return the values as a numpy array (on the CPU without a copy)."""
    return x.detach().cpu().numpy()


def no_grad() -> torch.no_grad:
    """Compute without recording, in this thread."""
    return torch.no_grad()


def checkpoint(fn: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """Return `fn(*inputs)`, keeping only the inputs; the inside is recomputed going back.

    No random state is saved: dropout, the only random op, draws from the seed it is given.
    """
    return torch_checkpoint(fn, *inputs, use_reentrant=False, preserve_rng_state=False)


def _integers(ids: np.ndarray | Tensor, device: torch.device) -> Tensor:
    if isinstance(ids, Tensor):
        return ids.to(device, torch.int64)
    return torch.tensor(ids.astype(np.int64, copy=False), device=device)


# --- arithmetic, with broadcasting ---------------------------------------------------------


def _pair(a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """Move an array beside the other operand; torch takes plain numbers as they are."""
    if isinstance(a, np.ndarray):
        return constant(a, b), b
    if isinstance(b, np.ndarray):
        return a, constant(b, a)
    return a, b


def add(a: Operand, b: Operand) -> Tensor:
    """a + b."""
    a, b = _pair(a, b)
    return a + b


def sub(a: Operand, b: Operand) -> Tensor:
    """a - b."""
    a, b = _pair(a, b)
    return a - b


def mul(a: Operand, b: Operand) -> Tensor:
    """a · b elementwise."""
    a, b = _pair(a, b)
    return a * b


def div(a: Operand, b: Operand) -> Tensor:
    """a / b elementwise."""
    a, b = _pair(a, b)
    return a / b


def neg(x: Tensor) -> Tensor:
    """-x."""
    return -x


def exp(x: Tensor) -> Tensor:
    """e^x."""
    return torch.exp(x)


def log(x: Tensor) -> Tensor:
    """ln x."""
    return torch.log(x)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """a (..., N, M) @ b (..., M, P), leading axes broadcast."""
    return torch.matmul(a, b)


# --- shape and reduction -------------------------------------------------------------------


def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """The same elements in another shape."""
    return x.reshape(tuple(shape))


def transpose(x: Tensor, axes: Sequence[int]) -> Tensor:
    """Permute the axes."""
    return x.permute(tuple(axes))


def index(x: Tensor, key: Any) -> Tensor:
    """x[key] for slices and integers; what was not selected gets no gradient."""
    return x[key]


def concat(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Join along `axis`."""
    return torch.cat(list(tensors), dim=axis)


def _axes(x: Tensor, axis: int | None) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if axis is None else (axis,)


def sum(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Sum over one axis or all."""
    return torch.sum(x, _axes(x, axis), keepdim=keepdims)


def mean(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Average over one axis or all."""
    return torch.mean(x, _axes(x, axis), keepdim=keepdims)


# --- nonlinearities, plain and gated -------------------------------------------------------


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + e^-x)."""
    return torch.sigmoid(x)


def tanh(x: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return torch.tanh(x)


def softmax(x: Tensor) -> Tensor:
    """Softmax over the last axis."""
    return torch.softmax(x, dim=-1)


def relu(x: Tensor) -> Tensor:
    """max(x, 0)."""
    return F.relu(x)


def squared_relu(x: Tensor) -> Tensor:
    """max(x, 0)²."""
    return F.relu(x).square()


def silu(x: Tensor) -> Tensor:
    """x σ(x)."""
    return F.silu(x)


def gelu(x: Tensor) -> Tensor:
    """x Φ(x), exact (erf)."""
    return F.gelu(x)


def gelu_tanh(x: Tensor) -> Tensor:
    """The tanh form of GELU."""
    return F.gelu(x, approximate="tanh")


def _gated(x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    gate, up = x.chunk(2, dim=-1)  # (..., 2F) -> 2 × (..., F)
    return function(gate) * up


def swiglu(x: Tensor) -> Tensor:
    """silu(gate) ∘ up with x = [gate | up], (..., 2F) -> (..., F)."""
    return _gated(x, F.silu)


def geglu(x: Tensor) -> Tensor:
    """gelu(gate) ∘ up with the exact GELU, (..., 2F) -> (..., F)."""
    return _gated(x, F.gelu)


def reglu(x: Tensor) -> Tensor:
    """relu(gate) ∘ up, (..., 2F) -> (..., F)."""
    return _gated(x, F.relu)


# --- layers --------------------------------------------------------------------------------


def linear(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    """x (..., I) wᵀ + b with w (O, I) -> (..., O)."""
    return F.linear(x, w, b)


def embedding(ids: np.ndarray, w: Tensor) -> Tensor:
    """Rows of w (V, D) by integer ids (...) -> (..., D)."""
    return F.embedding(_integers(ids, w.device), w)


def rms_norm(x: Tensor, w: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean(x²) + eps) ∘ w over the last axis."""
    return F.rms_norm(x, w.shape, w, eps)


def layer_norm(x: Tensor, w: Tensor, b: Tensor | None, eps: float) -> Tensor:
    """(x - mean) / sqrt(var + eps) ∘ w + b over the last axis, biased variance."""
    return F.layer_norm(x, w.shape, w, b, eps)


def dropout(x: Tensor, p: float, seed: Sequence[int]) -> Tensor:
    """Zero each element with probability p and scale the rest by 1 / (1 - p).

    The mask is a pure function of `seed` on one kind of device; it is not the tape's mask.
    """
    if p == 0.0:
        return x
    generator = torch.Generator(device=x.device)
    generator.manual_seed(int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> 1))
    draws = torch.rand(x.shape, generator=generator, device=x.device, dtype=torch.float32)
    return x * ((draws >= p).to(x.dtype) * (1.0 / (1.0 - p)))


# --- positions and attention ---------------------------------------------------------------


@lru_cache(maxsize=32)
@torch.inference_mode(False)  # an inference tensor in the cache could not serve a training step
def _rope_table(
    n_positions: int,
    head_dim: int,
    theta: float,
    factors: Factors | None,
    dtype: torch.dtype,
    device: torch.device,
) -> tuple[Tensor, Tensor]:
    """Return cos and sin, each (T, 1, E/2), on the device."""
    cos, sin = (
        torch.tensor(table[:, None, :], dtype=dtype, device=device)
        for table in rope_table(n_positions, head_dim, theta, factors)
    )
    return cos, sin


def rope(
    x: Tensor, theta: float = 10000.0, interleaved: bool = False, factors: Factors | None = None
) -> Tensor:
    """Rotate each pair of x (B, T, H, E) by its position's angle; position t is row t.

    (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin); pairs are (m, m + E/2), or (2m, 2m + 1)
    when interleaved; pair m's angle is divided by factors[m].
    """
    cos, sin = _rope_table(x.shape[1], x.shape[3], theta, factors, x.dtype, x.device)
    x1, x2 = (x[..., 0::2], x[..., 1::2]) if interleaved else x.chunk(2, dim=-1)
    rotated = x1 * cos - x2 * sin, x2 * cos + x1 * sin
    return torch.stack(rotated, dim=-1).flatten(-2) if interleaved else torch.cat(rotated, dim=-1)


@lru_cache(maxsize=8)
@torch.inference_mode(False)
def _attention_bias(
    n_tokens: int,
    window: int | None,
    sinks: int,
    alibi_heads: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """Return what is added to the scores, (T, S), or (H, T, S) with ALiBi."""
    bias = causal_bias(Block(0, n_tokens, 0), window, sinks, np.dtype(np.float64))
    if alibi_heads:
        distance = np.arange(n_tokens)[None, :] - np.arange(n_tokens)[:, None]  # j - i
        bias = bias + alibi_slopes(alibi_heads)[:, None, None] * distance
    return torch.tensor(bias, dtype=dtype, device=device)


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    window: int | None = None,
    sinks: int = 0,
    alibi: bool = False,
) -> Tensor:
    """Return causal attention softmax(q kᵀ / sqrt(E) + bias) v, (B, T, H, E).

    Keys and values are repeated over their query group: CUDA's fused float32 kernel takes equal
    head counts only, and `enable_gqa` would silently fall back to the unfused one.
    """
    T, H = q.shape[1:3]
    q, k, v = (a.transpose(1, 2) for a in (q, k, v))  # (B, T, H, E) -> (B, H, T, E)
    if k.shape[1] != H:
        k, v = (a.repeat_interleave(H // a.shape[1], dim=1) for a in (k, v))
    if window is not None and window >= T:
        window = None
    bias = None
    if window is not None or alibi:
        bias = _attention_bias(T, window, sinks, H if alibi else 0, q.dtype, q.device)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=bias is None)
    return out.transpose(1, 2)


# --- losses --------------------------------------------------------------------------------


def _divisor(targets: Tensor | np.ndarray, ignore_index: int, divisor: float | None) -> Any:
    if divisor:
        return divisor
    return (targets != ignore_index).sum().clip(1)  # counted where they are: the GPU never waits


def cross_entropy(
    logits: Tensor, targets: np.ndarray, ignore_index: int = -1, divisor: float | None = None
) -> Tensor:
    """Σ -log softmax(logits)[target] / divisor, logits (..., V), integer targets (...).

    The divisor is the number of targets that are not `ignore_index` unless given.
    """
    rows = logits.reshape(-1, logits.shape[-1])
    flat = _integers(targets, logits.device).reshape(-1)
    total = F.cross_entropy(rows, flat, ignore_index=ignore_index, reduction="sum")
    return total / _divisor(targets, ignore_index, divisor)


# Logits (and their gradient) larger than this are made a chunk of rows at a time.
_LOGIT_CHUNK_BYTES = 1 << 28


def linear_cross_entropy(
    x: Tensor,
    w: Tensor,
    targets: np.ndarray,
    ignore_index: int = -1,
    divisor: float | None = None,
) -> Tensor:
    """Equal cross_entropy(linear(x, w), targets), x (..., D), w (V, D).

    When all logits would be large they live for one chunk of rows at a time, and are
    recomputed going back.
    """
    rows = x.reshape(-1, w.shape[1])  # (N, D)
    flat = _integers(targets, x.device).reshape(-1)

    def summed(rows: Tensor, flat: Tensor) -> Tensor:
        logits = F.linear(rows, w)  # (n, V)
        return F.cross_entropy(logits, flat, ignore_index=ignore_index, reduction="sum")

    chunk = max(64, _LOGIT_CHUNK_BYTES // (len(w) * x.element_size()))
    if len(rows) <= chunk:
        total = summed(rows, flat)
    else:
        parts = zip(rows.split(chunk), flat.split(chunk), strict=True)
        total = torch.stack([checkpoint(summed, *part) for part in parts]).sum()
    return total / _divisor(targets, ignore_index, divisor)
