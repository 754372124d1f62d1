"""Nonlinearities on numpy, plain and gated: each function beside its derivative."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import erf

from paperkiln.engine.tape import Grads, Tensor, record


def _sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + e^-x) as (1 + tanh(x/2)) / 2, which cannot overflow."""
    s = np.tanh(x * x.dtype.type(0.5))
    s *= 0.5
    s += 0.5
    return s


def sigmoid(x: Tensor) -> Tensor:
    """σ(x). dσ = σ (1 - σ) dx."""
    s = _sigmoid(x.data)
    return record(s, (x,), lambda dout: (dout * (s * (1 - s)),))


def tanh(x: Tensor) -> Tensor:
    """Hyperbolic tangent. d tanh = (1 - tanh²) dx."""
    t = np.tanh(x.data)
    return record(t, (x,), lambda dout: (dout * (1 - t * t),))


def softmax(x: Tensor) -> Tensor:
    """Softmax over the last axis. dx = y ∘ (dy - Σ dy ∘ y)."""
    y = np.exp(x.data - x.data.max(axis=-1, keepdims=True))
    y /= y.sum(axis=-1, keepdims=True)

    def backward(dout: np.ndarray) -> Grads:
        return (y * (dout - (dout * y).sum(axis=-1, keepdims=True)),)

    return record(y, (x,), backward)


# Each activation f has one function that returns f(x) and a function computing f'(x) when it
# is asked for; the plain op and the gated op below are both made of it.
Evaluated = tuple[np.ndarray, Callable[[], np.ndarray]]
Function = Callable[[np.ndarray], Evaluated]


def _relu(x: np.ndarray) -> Evaluated:
    return np.maximum(x, 0), lambda: (x > 0).astype(x.dtype)


def _squared_relu(x: np.ndarray) -> Evaluated:  # Primer, So et al. 2021
    r = np.maximum(x, 0)
    return r * r, lambda: 2 * r


def _silu(x: np.ndarray) -> Evaluated:
    s = _sigmoid(x)
    return x * s, lambda: s * (1 + x * (1 - s))


def _gelu(x: np.ndarray) -> Evaluated:  # x Φ(x); Hendrycks & Gimpel 2016
    cdf = 0.5 * (1 + erf(x * x.dtype.type(np.sqrt(0.5))))
    return x * cdf, lambda: cdf + x * (np.exp(-0.5 * x * x) * x.dtype.type(1 / np.sqrt(2 * np.pi)))


def _gelu_tanh(x: np.ndarray) -> Evaluated:  # GPT-2's form
    # 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))
    c = x.dtype.type(np.sqrt(2 / np.pi))
    x2 = x * x
    t = np.tanh(c * x * (1 + x.dtype.type(0.044715) * x2))

    def derivative() -> np.ndarray:
        inner = c * (1 + x.dtype.type(3 * 0.044715) * x2)
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner

    return 0.5 * x * (1 + t), derivative


def _activation(x: Tensor, function: Function) -> Tensor:
    out, derivative = function(x.data)
    return record(out, (x,), lambda dout: (dout * derivative(),))


def _gated(x: Tensor, function: Function) -> Tensor:
    """f(gate) ∘ up with x = [gate | up], (..., 2F) -> (..., F); Shazeer 2020.

    d gate = dO ∘ up ∘ f'(gate), d up = dO ∘ f(gate).
    """
    F = x.shape[-1] // 2
    gate, up = x.data[..., :F], x.data[..., F:]
    activated, derivative = function(gate)

    def backward(dout: np.ndarray) -> Grads:
        dx = np.empty(x.shape, x.dtype)
        np.multiply(dout, activated, out=dx[..., F:])
        dgate = dx[..., :F]
        np.multiply(dout, up, out=dgate)
        dgate *= derivative()
        return (dx,)

    return record(activated * up, (x,), backward)


def relu(x: Tensor) -> Tensor:
    """max(x, 0)."""
    return _activation(x, _relu)


def squared_relu(x: Tensor) -> Tensor:
    """max(x, 0)²."""
    return _activation(x, _squared_relu)


def silu(x: Tensor) -> Tensor:
    """x σ(x)."""
    return _activation(x, _silu)


def gelu(x: Tensor) -> Tensor:
    """x Φ(x), exact (erf)."""
    return _activation(x, _gelu)


def gelu_tanh(x: Tensor) -> Tensor:
    """The tanh form of GELU."""
    return _activation(x, _gelu_tanh)


def swiglu(x: Tensor) -> Tensor:
    """silu(gate) ∘ up, (..., 2F) -> (..., F)."""
    return _gated(x, _silu)


def geglu(x: Tensor) -> Tensor:
    """gelu(gate) ∘ up with the exact GELU, (..., 2F) -> (..., F)."""
    return _gated(x, _gelu)


def reglu(x: Tensor) -> Tensor:
    """relu(gate) ∘ up, (..., 2F) -> (..., F)."""
    return _gated(x, _relu)
