"""Cross-entropy on numpy, from logits or fused with the head that makes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from paperkiln.engine.tape import Grads, Tensor, record, recording

Nll = Callable[[np.ndarray, np.ndarray, int, float], float]


def nll_and_dlogits(
    logits: np.ndarray, targets: np.ndarray, ignore_index: int, scale: float
) -> float:
    """Return Σ -log p(target); logits (N, V) become (p - onehot) · scale, 0 where ignored."""
    rows = np.arange(len(targets))
    valid = targets != ignore_index
    safe = np.where(valid, targets, 0)
    logits -= logits.max(axis=1, keepdims=True)
    picked = logits[rows, safe]
    np.exp(logits, out=logits)
    total = logits.sum(axis=1, keepdims=True)
    nll = np.log(total[:, 0]) - picked
    logits *= (scale * valid)[:, None].astype(logits.dtype) / total
    logits[rows, safe] -= (scale * valid).astype(logits.dtype)
    return float(nll[valid].sum(dtype=np.float64))


def _scale(targets: np.ndarray, n_classes: int, ignore_index: int, divisor: float | None) -> float:
    """Return 1 / divisor. Raises IndexError for a scored target outside [0, n_classes)."""
    scored = targets[targets != ignore_index]
    if scored.size and not 0 <= scored.min() <= scored.max() < n_classes:
        raise IndexError(
            f"targets from {scored.min()} to {scored.max()}, but there are {n_classes} classes"
        )
    return 1.0 / (divisor or max(1, scored.size))


def cross_entropy(
    logits: Tensor, targets: np.ndarray, ignore_index: int = -1, divisor: float | None = None
) -> Tensor:
    """Σ -log softmax(logits)[target] / divisor, logits (..., V), integer targets (...).

    The divisor is the number of targets that are not `ignore_index` unless given (a shard of a
    batch divides by the batch's count). dlogits = (softmax - onehot) / divisor.
    """
    flat = targets.reshape(-1)
    scale = _scale(flat, logits.shape[-1], ignore_index, divisor)
    dlogits = logits.data.reshape(-1, logits.shape[-1]).copy()
    loss = nll_and_dlogits(dlogits, flat, ignore_index, scale) * scale

    def backward(dout: np.ndarray) -> Grads:
        return ((dlogits * dout).reshape(logits.shape),)

    return record(np.asarray(loss, logits.dtype), (logits,), backward)


# Rows whose logits exist at a time: large enough for GEMM, small enough to stay in cache.
_LOGIT_CHUNK_BYTES = 1 << 22


def linear_cross_entropy(
    x: Tensor,
    w: Tensor,
    targets: np.ndarray,
    ignore_index: int = -1,
    divisor: float | None = None,
) -> Tensor:
    """Equal cross_entropy(linear(x, w), targets), x (..., D), w (V, D), without all the logits."""
    return linear_cross_entropy_with(nll_and_dlogits, x, w, targets, ignore_index, divisor)


def linear_cross_entropy_with(
    nll: Nll,
    x: Tensor,
    w: Tensor,
    targets: np.ndarray,
    ignore_index: int,
    divisor: float | None,
) -> Tensor:
    """Return the loss with the given pass over the logits.

    Logits live for one chunk of rows at a time; their gradient is known as soon as they are,
    so dx and dw are finished in the forward pass and backward only scales them.
    """
    V, D = w.shape
    rows, flat = x.data.reshape(-1, D), targets.reshape(-1)
    scale = _scale(flat, V, ignore_index, divisor)
    wants_grad = recording() and (x.requires_grad or w.requires_grad)
    dx = np.empty(rows.shape, x.dtype) if wants_grad else None
    dw: np.ndarray | None = None
    chunk = max(64, _LOGIT_CHUNK_BYTES // (V * x.dtype.itemsize))
    total = 0.0
    for start in range(0, len(rows), chunk):
        part = slice(start, start + chunk)
        logits = rows[part] @ w.data.T  # (n, V)
        total += nll(logits, flat[part], ignore_index, scale)
        if wants_grad:
            np.matmul(logits, w.data, out=dx[part])
            dw = logits.T @ rows[part] if dw is None else dw.__iadd__(logits.T @ rows[part])

    def backward(dout: np.ndarray) -> Grads:
        if dout != 1.0:
            return (dx * dout).reshape(x.shape), dw * dout
        return dx.reshape(x.shape), dw

    return record(np.asarray(total * scale, x.dtype), (x, w), backward)
