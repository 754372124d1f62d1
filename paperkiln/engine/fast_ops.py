"""The op set of `ops` with its passes over memory compiled (kernels.c): device `cpu-fast`.

GEMMs stay numpy's. An op that is not named here, and any array that is not float32, goes
through `ops` itself. Results agree with `ops` to float32 rounding, not bitwise.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_int

import numpy as np

from paperkiln.engine import attention as numpy_attention
from paperkiln.engine import losses, ops
from paperkiln.engine.attention import Block
from paperkiln.engine.kernels import call
from paperkiln.engine.ops import *  # noqa: F403 (the op set, some of it redefined below)
from paperkiln.engine.ops import __all__ as __all__
from paperkiln.engine.tape import Grads, Tensor, record

_F32 = np.dtype(np.float32)


def _all_float32(*tensors: Tensor | None) -> bool:
    """Return whether the compiled loops can read these operands."""
    return all(t is None or t.dtype == _F32 for t in tensors)


def _rows(x: np.ndarray) -> np.ndarray:
    """Return x (..., D) as contiguous rows (N, D)."""
    return np.ascontiguousarray(x.reshape(-1, x.shape[-1]))


def rms_norm(x: Tensor, w: Tensor, eps: float) -> Tensor:
    """See ops.rms_norm."""
    if not _all_float32(x, w):
        return ops.rms_norm(x, w, eps)
    rows, gain = _rows(x.data), np.ascontiguousarray(w.data)
    N, D = rows.shape
    out, r = np.empty_like(rows), np.empty(N, _F32)
    call("rms_norm", rows, gain, out, r, N, D, float(eps))

    def backward(dout: np.ndarray) -> Grads:
        dx, dw = np.empty_like(rows), np.zeros(D, _F32)
        call("rms_norm_backward", rows, gain, r, _rows(dout), dx, dw, N, D)
        return dx.reshape(x.shape), dw

    return record(out.reshape(x.shape), (x, w), backward)


def layer_norm(x: Tensor, w: Tensor, b: Tensor | None, eps: float) -> Tensor:
    """See ops.layer_norm."""
    if not _all_float32(x, w, b):
        return ops.layer_norm(x, w, b, eps)
    rows, gain = _rows(x.data), np.ascontiguousarray(w.data)
    N, D = rows.shape
    out, mean, r = np.empty_like(rows), np.empty(N, _F32), np.empty(N, _F32)
    bias = None if b is None else np.ascontiguousarray(b.data)
    call("layer_norm", rows, gain, bias, out, mean, r, N, D, float(eps))

    def backward(dout: np.ndarray) -> Grads:
        dx, dw = np.empty_like(rows), np.zeros(D, _F32)
        db = None if b is None else np.zeros(D, _F32)
        call("layer_norm_backward", rows, gain, mean, r, _rows(dout), dx, dw, db, N, D)
        dx = dx.reshape(x.shape)
        return (dx, dw) if b is None else (dx, dw, db)

    parents = (x, w) if b is None else (x, w, b)
    return record(out.reshape(x.shape), parents, backward)


def _plain(name: str) -> Callable[[Tensor], Tensor]:
    numpy_op = getattr(ops, name)

    def activation(x: Tensor) -> Tensor:
        if x.dtype != _F32:
            return numpy_op(x)
        data = np.ascontiguousarray(x.data)
        out = np.empty_like(data)
        call(name, data, out, data.size)

        def backward(dout: np.ndarray) -> Grads:
            dx = np.empty_like(data)
            call(f"{name}_backward", data, np.ascontiguousarray(dout), dx, data.size)
            return (dx,)

        return record(out, (x,), backward)

    activation.__doc__ = f"See ops.{name}."
    return activation


def _gated(name: str) -> Callable[[Tensor], Tensor]:
    numpy_op = getattr(ops, name)

    def activation(x: Tensor) -> Tensor:
        if x.dtype != _F32:
            return numpy_op(x)
        rows = _rows(x.data)
        N, F = len(rows), rows.shape[1] // 2
        out = np.empty((N, F), _F32)
        call(name, rows, out, N, F)

        def backward(dout: np.ndarray) -> Grads:
            dx = np.empty_like(rows)
            call(f"{name}_backward", rows, _rows(dout), dx, N, F)
            return (dx.reshape(x.shape),)

        return record(out.reshape(*x.shape[:-1], F), (x,), backward)

    activation.__doc__ = f"See ops.{name}."
    return activation


relu, squared_relu, silu = _plain("relu"), _plain("squared_relu"), _plain("silu")
gelu, gelu_tanh = _plain("gelu"), _plain("gelu_tanh")
swiglu, geglu, reglu = _gated("swiglu"), _gated("geglu"), _gated("reglu")


def rope(
    x: Tensor,
    theta: float = 10000.0,
    interleaved: bool = False,
    factors: numpy_attention.Factors | None = None,
) -> Tensor:
    """See ops.rope."""
    if x.dtype != _F32:
        return ops.rope(x, theta, interleaved, factors)
    B, T, H, E = x.shape
    cos, sin = numpy_attention.rope_tables_as(T, E, theta, _F32, factors)

    def rotate(a: np.ndarray, sign: float) -> np.ndarray:
        if a.strides[3] != 4:
            a = np.ascontiguousarray(a)
        out = np.empty((B, T, H, E), _F32)
        strides = [stride // 4 for stride in a.strides[:3]]
        call("rope", a, cos, sin, out, B, T, H, E, *strides, c_int(interleaved), sign)
        return out

    return record(rotate(x.data, 1.0), (x,), lambda dout: (rotate(dout, -1.0),))


class _CompiledRows(numpy_attention.NumpyRows):
    """The passes of attention in C, over the visible keys only."""

    @staticmethod
    def softmax(
        scores: np.ndarray, block: Block, window: int | None, sinks: int, alibi: bool
    ) -> None:
        b, K, G, R, S = scores.shape
        slopes = numpy_attention.alibi_slopes(K * G).astype(_F32) if alibi else None
        call(
            "causal_softmax", scores, slopes, b * K * G, K * G, R, S, block.start, block.first_key,
            window or 0, sinks,
        )  # fmt: skip

    @staticmethod
    def softmax_backward(ds: np.ndarray, p: np.ndarray, row_dot: np.ndarray, block: Block) -> None:
        b, K, G, R, S = ds.shape
        row_dot = np.ascontiguousarray(row_dot)
        call(
            "causal_softmax_backward", ds, p, row_dot, b * K * G, R, S, block.start, block.first_key
        )


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    window: int | None = None,
    sinks: int = 0,
    alibi: bool = False,
) -> Tensor:
    """See ops.attention."""
    if not _all_float32(q, k, v):
        return ops.attention(q, k, v, window, sinks, alibi)
    return numpy_attention.attention_with(_CompiledRows, q, k, v, window, sinks, alibi)


def _nll_and_dlogits(
    logits: np.ndarray, targets: np.ndarray, ignore_index: int, scale: float
) -> float:
    N, V = logits.shape
    targets = np.ascontiguousarray(targets, np.int64)
    return call("cross_entropy", logits, targets, N, V, ignore_index, scale)


def linear_cross_entropy(
    x: Tensor,
    w: Tensor,
    targets: np.ndarray,
    ignore_index: int = -1,
    divisor: float | None = None,
) -> Tensor:
    """See ops.linear_cross_entropy."""
    nll = _nll_and_dlogits if _all_float32(x, w) else losses.nll_and_dlogits
    return losses.linear_cross_entropy_with(nll, x, w, targets, ignore_index, divisor)


def adamw_update(
    theta: np.ndarray,
    grad: np.ndarray,
    m: np.ndarray,
    v: np.ndarray,
    grad_scale: float,
    beta1: float,
    beta2: float,
    step_size: float,
    v_scale: float,
    eps: float,
    keep: float,
) -> None:
    """See train.optim.adamw_update; all four arrays are slices of flat buffers."""
    numbers = (grad_scale, beta1, beta2, step_size, v_scale, eps, keep)
    call("adamw", theta, grad, m, v, theta.size, *map(float, numbers))
