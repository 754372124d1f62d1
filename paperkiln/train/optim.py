"""AdamW, SGD with momentum, and Muon, stepping in place over flat buffers.

Written with operators that numpy arrays and torch tensors share, so one definition serves
every engine. Each optimiser's whole state is a dict of flat buffers: a checkpoint keeps it and
a resumed run goes on bitwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Protocol

from paperkiln.engine.parameters import Flat, Parameters
from paperkiln.models.config import ModelConfig, parameter_shapes
from paperkiln.spec import TrainSpec

# A chunk's parameter, gradient, moments and temporaries together fit in a core's L2 cache.
_CHUNK = 1 << 15


class Optimizer(Protocol):
    """What the training loop needs of an optimiser."""

    state: dict[str, Flat]

    def step(self, update: int, lr_scale: float, grad_scale: float) -> None:
        """Apply the `update`-th step (from 1): lr · lr_scale, gradients · grad_scale."""


def chunks(start: int, stop: int, size: int = _CHUNK) -> Iterator[slice]:
    """Yield slices that cover [start, stop)."""
    for at in range(start, stop, size):
        yield slice(at, min(at + size, stop))


def grad_norm(parameters: Parameters) -> float:
    """Return the global L2 norm of the gradient: float32 dot products, summed in float64."""
    g = parameters.grad
    return math.sqrt(sum(float(g[part] @ g[part]) for part in chunks(0, len(parameters), 1 << 18)))


class AdamW:
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2).

    m = β1 m + (1-β1) g;  v = β2 v + (1-β2) g²;  θ -= lr (m̂ / (√v̂ + ε) + λ θ), with
    m̂ = m / (1-β1ᵗ) and v̂ = v / (1-β2ᵗ); λ is 0 on what is not decayed.
    """

    def __init__(
        self,
        parameters: Parameters,
        engine: Any,
        spec: TrainSpec,
        places: list[slice] | None = None,
    ) -> None:
        """Step over `places` of the flat buffer, by default all of it."""
        self.parameters, self.engine, self.spec = parameters, engine, spec
        self.state = {"m": parameters.grad * 0, "v": parameters.grad * 0}
        n, decayed = len(parameters), parameters.n_decayed
        whole = places or [slice(0, n)]
        pieces = [(p.start, min(p.stop, decayed), spec.weight_decay) for p in whole]
        pieces += [(max(p.start, decayed), p.stop, 0.0) for p in whole]
        self._chunks = [(part, wd) for a, b, wd in pieces for part in chunks(a, b)]
        self._update = getattr(engine.F, "adamw_update", adamw_update)

    def step(self, update: int, lr_scale: float, grad_scale: float) -> None:
        """Apply one step."""
        s, p = self.spec, self.parameters
        m_all, v_all = self.state["m"], self.state["v"]
        lr = s.lr * lr_scale
        step_size = lr / (1 - s.beta1**update)
        v_scale = 1 / math.sqrt(1 - s.beta2**update)

        def apply(part: tuple[slice, float]) -> None:
            place, weight_decay = part
            self._update(
                p.flat[place], p.grad[place], m_all[place], v_all[place], grad_scale, s.beta1,
                s.beta2, step_size, v_scale, s.eps, 1 - lr * weight_decay,
            )  # fmt: skip

        _for_each(self.engine, apply, self._chunks)


def adamw_update(
    theta: Flat,
    grad: Flat,
    m: Flat,
    v: Flat,
    grad_scale: float,
    beta1: float,
    beta2: float,
    step_size: float,
    v_scale: float,
    eps: float,
    keep: float,
) -> None:
    """Step over one chunk in place: step_size is lr / (1-β1ᵗ), v_scale 1 / √(1-β2ᵗ), keep 1 - lr λ.

    An engine may bring its own (`fast_ops` has it as one compiled loop).
    """
    g = grad * grad_scale
    m *= beta1
    m += g * (1 - beta1)
    v *= beta2
    g *= g
    g *= 1 - beta2
    v += g
    denominator = v**0.5
    denominator *= v_scale
    denominator += eps
    if keep != 1.0:
        theta *= keep
    theta -= m / denominator * step_size


class SGD:
    """Gradient descent with momentum: u = μ u + g;  θ -= lr (u + λ θ)."""

    def __init__(self, parameters: Parameters, engine: Any, spec: TrainSpec) -> None:
        self.parameters, self.engine, self.spec = parameters, engine, spec
        self.state = {"u": parameters.grad * 0}
        n, decayed = len(parameters), parameters.n_decayed
        self._chunks = [(part, spec.weight_decay) for part in chunks(0, decayed)]
        self._chunks += [(part, 0.0) for part in chunks(decayed, n)]

    def step(self, update: int, lr_scale: float, grad_scale: float) -> None:
        """Apply one step."""
        s, p, u_all = self.spec, self.parameters, self.state["u"]
        lr = s.lr * lr_scale

        def apply(part: tuple[slice, float]) -> None:
            place, weight_decay = part
            theta, u = p.flat[place], u_all[place]
            u *= s.momentum
            u += p.grad[place] * grad_scale
            if weight_decay:
                theta *= 1 - lr * weight_decay
            theta -= u * lr

        _for_each(self.engine, apply, self._chunks)


def newton_schulz(g: Any, steps: int = 5) -> Any:
    """Return g (M, N) with its singular values pushed towards 1 (Jordan et al. 2024, Muon).

    X = g / (‖g‖ + 1e-7), then X <- a X + (b A + c A²) X with A = X Xᵀ, on the wide
    orientation; a, b, c = 3.4445, -4.7750, 2.0315.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = g.shape[0] > g.shape[1]
    x = g.T if tall else g
    x = x / (float((x * x).sum()) ** 0.5 + 1e-7)
    for _ in range(steps):
        A = x @ x.T
        x = a * x + (b * A + c * (A @ A)) @ x
    return x.T if tall else x


class Muon:
    """Muon on the matrices inside blocks, AdamW on everything else.

    u = μ u + g;  O = NewtonSchulz(g + μ u);  W -= lr · sqrt(max(1, out / in)) · O, after the
    decoupled decay. q, k, v and gate, up are stacked in one parameter and orthogonalised apart;
    with `muon_per_head`, every head of q, k and v on its own.
    """

    def __init__(
        self,
        parameters: Parameters,
        engine: Any,
        spec: TrainSpec,
        splits: dict[str, list[int]],
    ) -> None:
        """`splits` maps each matrix that Muon steps to the row counts of its parts."""
        self.parameters, self.engine, self.spec = parameters, engine, spec
        self._matrices = [
            (name, slice(end - rows, end))
            for name, parts in splits.items()
            for rows, end in zip(parts, accumulate(parts), strict=True)
        ]
        taken = {name: parameters.place(name) for name in splits}
        self._adamw = AdamW(parameters, engine, spec, _complement(taken, len(parameters)))
        self.state = self._adamw.state | {"u": parameters.grad * 0}

    def step(self, update: int, lr_scale: float, grad_scale: float) -> None:
        """Apply one step."""
        s, p, u_all = self.spec, self.parameters, self.state["u"]
        self._adamw.step(update, lr_scale, grad_scale)
        lr = s.muon_lr * lr_scale

        def apply(matrix: tuple[str, slice]) -> None:
            name, rows = matrix
            W, g = p.view(name)[rows], p.grad_view(name)[rows] * grad_scale
            u = p.shaped(u_all, name)[rows]
            u *= s.muon_momentum
            u += g
            direction = newton_schulz(g + s.muon_momentum * u)
            if s.weight_decay:
                W *= 1 - lr * s.weight_decay
            W -= direction * (lr * math.sqrt(max(1.0, W.shape[0] / W.shape[1])))

        self.engine.map(apply, self._matrices)


def make_optimizer(
    parameters: Parameters, engine: Any, spec: TrainSpec, config: ModelConfig
) -> Optimizer:
    """Return the optimiser that the spec names."""
    if spec.optimizer == "sgd":
        return SGD(parameters, engine, spec)
    if spec.optimizer == "adamw":
        return AdamW(parameters, engine, spec)
    return Muon(parameters, engine, spec, muon_splits(config, spec.muon_per_head))


def decayed_names(config: ModelConfig, decay_all: bool) -> list[str]:
    """Return the parameters that weight decay shrinks: the matrices of blocks and head."""
    shapes = parameter_shapes(config)
    if decay_all:
        return list(shapes)
    return [n for n, s in shapes.items() if len(s) == 2 and n.startswith(("blocks.", "head."))]


def muon_splits(config: ModelConfig, per_head: bool) -> dict[str, list[int]]:
    """Return the row counts of the matrices stacked in each parameter that Muon steps."""
    c = config
    heads = [c.n_heads, c.n_kv_heads, c.n_kv_heads]
    qkv = [c.head_dim] * sum(heads) if per_head else [n * c.head_dim for n in heads]
    splits = {}
    for name, shape in parameter_shapes(config).items():
        if name.endswith("attn.qkv.weight"):
            splits[name] = qkv
        elif name.endswith("ffn.in.weight") and c.gated:
            splits[name] = [c.d_ff, c.d_ff]
        elif name.startswith("blocks.") and len(shape) == 2:
            splits[name] = [shape[0]]
    return splits


def _complement(taken: dict[str, slice], n: int) -> list[slice]:
    """Return the slices of [0, n) that no taken slice covers."""
    free, at = [], 0
    for place in sorted(taken.values(), key=lambda p: p.start):
        if place.start > at:
            free.append(slice(at, place.start))
        at = place.stop
    return [*free, slice(at, n)] if at < n else free


def _for_each(engine: Any, apply: Any, parts: list[Any]) -> None:
    """Run `apply` on every part, the parts dealt to as many workers as there are cores."""
    n = engine.workers
    engine.map(lambda worker: [apply(part) for part in parts[worker::n]], list(range(n)))
