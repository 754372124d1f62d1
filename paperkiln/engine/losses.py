"""Cross-entropy on numpy, from logits or fused with the head that makes them."""

from __future__ import annotations

import numpy as np

from paperkiln.engine.tape import Tensor, record, recording


def _nll_and_dlogits(logits: np.ndarray, targets: np.ndarray, valid: np.ndarray) -> float:
    """Return the summed -log p(target); logits (N, V) become p - onehot, 0 where not valid."""
    rows = np.arange(len(targets))
    safe = np.where(valid, targets, 0)
    logits -= logits.max(axis=1, keepdims=True)
    picked = logits[rows, safe]
    np.exp(logits, out=logits)
    total = logits.sum(axis=1, keepdims=True)
    nll = np.log(total[:, 0]) - picked
    logits *= valid[:, None] / total
    logits[rows, safe] -= valid
    return float(nll[valid].sum(dtype=np.float64))


def _count(valid: np.ndarray) -> int:
    return max(1, int(valid.sum()))


def cross_entropy(
    logits: Tensor, targets: np.ndarray, ignore_index: int = -1, divisor: float | None = None
) -> Tensor:
    """Σ -log softmax(logits)[target] / divisor, logits (..., V), integer targets (...).

    The divisor is the number of targets that are not `ignore_index` unless given (a shard of a
    batch divides by the batch's count). dlogits = (softmax - onehot) / divisor.
    """
    flat = targets.reshape(-1)
    valid = flat != ignore_index
    scale = 1.0 / (divisor or _count(valid))
    dlogits = logits.data.reshape(-1, logits.shape[-1]).copy()
    loss = _nll_and_dlogits(dlogits, flat, valid) * scale

    def backward(dout):
        return ((dlogits * (dout * scale).astype(dlogits.dtype)).reshape(logits.shape),)

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
    """Equal cross_entropy(linear(x, w), targets), x (..., D), w (V, D), without all the logits.

    Logits live for one chunk of rows at a time; their gradient is known as soon as they are,
    so dx and dw are finished in the forward pass and backward only scales them.
    """
    V, D = w.shape
    rows, flat = x.data.reshape(-1, D), targets.reshape(-1)
    valid = flat != ignore_index
    scale = 1.0 / (divisor or _count(valid))
    wants_grad = recording() and (x.requires_grad or w.requires_grad)
    dx = np.empty(rows.shape, x.dtype) if wants_grad else None
    dw: np.ndarray | None = None
    chunk = max(64, _LOGIT_CHUNK_BYTES // (V * x.dtype.itemsize))
    total = 0.0
    for start in range(0, len(rows), chunk):
        part = slice(start, start + chunk)
        logits = rows[part] @ w.data.T  # (n, V)
        total += _nll_and_dlogits(logits, flat[part], valid[part])
        if wants_grad:
            logits *= scale
            np.matmul(logits, w.data, out=dx[part])
            dw = logits.T @ rows[part] if dw is None else dw.__iadd__(logits.T @ rows[part])

    def backward(dout):
        if dout != 1.0:
            return (dx * dout).reshape(x.shape), dw * dout
        return dx.reshape(x.shape), dw

    return record(np.asarray(total * scale, x.dtype), (x, w), backward)
