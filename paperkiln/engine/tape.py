"""The numpy tape: Tensor, backward, no_grad, checkpoint.

An op computes its output and hands `record` the inputs and one function, `backward(dout)`,
that returns the gradient of the loss for each input (or None). Tensors are numbered as they
are made, so walking the reachable ones from the highest number down is a reverse topological
order: no recursion, whatever the depth.

Rules every op keeps: `backward` never writes into `dout` or into an input, and what it
returns has the input's shape.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

Grads = Sequence[np.ndarray | None]  # one for each input of an op, in order
Backward = Callable[[np.ndarray], Grads]

_numbers = itertools.count()


class _Mode(threading.local):
    """Whether ops are recorded: one switch per thread, since shards run on their own threads."""

    recording = True


_mode = _Mode()


class Tensor:
    """A float array, its gradient, and how it was made."""

    __slots__ = ("_backward", "_grad_is_ours", "_number", "_parents", "data", "grad",
                 "requires_grad")  # fmt: skip
    __array_priority__ = 1000  # so that ndarray + Tensor asks Tensor

    def __init__(self, data: Any, requires_grad: bool = False) -> None:
        self.data: np.ndarray = np.asarray(data)
        self.requires_grad = requires_grad
        self.grad: np.ndarray | None = None
        self._number = next(_numbers)
        self._parents: tuple[Tensor, ...] = ()
        self._backward: Backward | None = None
        # The first gradient to arrive is kept by reference and may be shared with a sibling;
        # only a sum that we allocated is added to in place.
        self._grad_is_ours = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape."""
        return self.data.shape

    @property
    def dtype(self) -> np.dtype:
        """The array's dtype, float32 or float64."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.data.ndim

    def __repr__(self) -> str:
        made = f", by {self._backward.__qualname__.split('.')[0]}" if self._backward else ""
        return f"Tensor({self.shape}, {self.dtype}{made})"

    def item(self) -> float:
        """Return the only element as a Python float."""
        return float(self.data.item())

    def accumulate(self, grad: np.ndarray) -> None:
        """Add `grad`, of this tensor's shape, to the gradient."""
        grad = np.asarray(grad)  # arithmetic on 0-d arrays gives scalars
        if grad.shape != self.data.shape:
            raise ValueError(f"gradient of shape {grad.shape} for a tensor of shape {self.shape}")
        if self.grad is None:
            self.grad, self._grad_is_ours = grad, False
        elif self._grad_is_ours:
            self.grad += grad
        else:
            self.grad, self._grad_is_ours = self.grad + grad, True

    def accumulate_at(self, index: Any, grad: np.ndarray) -> None:
        """Add `grad` to the part of the gradient that `index` selects, copying nothing else."""
        if self.grad is None:
            self.grad, self._grad_is_ours = np.zeros_like(self.data), True
        elif not self._grad_is_ours:
            self.grad, self._grad_is_ours = self.grad.copy(), True
        self.grad[index] += grad

    def backward(self) -> None:
        """Set the gradient of this scalar for every leaf it was computed from.

        Raises ValueError when the tensor is not a scalar or was not recorded.
        """
        if self.data.size != 1:
            raise ValueError(f"backward starts from a scalar loss, not from shape {self.shape}")
        if not self.requires_grad:
            raise ValueError("nothing to differentiate: no input of this loss requires a gradient")
        run_backward(self, np.ones_like(self.data))


def record(data: np.ndarray, parents: tuple[Tensor, ...], backward: Backward) -> Tensor:
    """Return the output of an op, remembering how to go back when a gradient is wanted."""
    out = Tensor(data)
    if _mode.recording and any(p.requires_grad for p in parents):
        out.requires_grad, out._parents, out._backward = True, parents, backward
    return out


def recording() -> bool:
    """Return whether ops of this thread are recorded (False inside `no_grad`)."""
    return _mode.recording


def reachable(root: Tensor) -> list[Tensor]:
    """Return the recorded tensors that `root` was computed from, itself included, oldest first."""
    seen, stack, found = {id(root)}, [root], []
    while stack:
        tensor = stack.pop()
        if tensor._backward is None:
            continue
        found.append(tensor)
        for parent in tensor._parents:
            if id(parent) not in seen:
                seen.add(id(parent))
                stack.append(parent)
    found.sort(key=lambda t: t._number)
    return found


def _walked(dout: np.ndarray) -> Sequence[np.ndarray | None]:
    """Stand where a consumed closure was, so that a second walk is told from a leaf."""
    raise ValueError("this graph was already walked: run the forward pass again")


def run_backward(root: Tensor, dout: np.ndarray) -> None:
    """Propagate `dout`, the gradient for `root`, to the leaves; the graph is consumed.

    A tensor's closure, parents and gradient are dropped as soon as they have been used, so
    memory falls while the walk goes on. Raises ValueError on a graph, or a part of one, that
    was walked before.
    """
    pending = reachable(root)
    if any(tensor._backward is _walked for tensor in pending):
        raise ValueError("this graph was already walked: run the forward pass again")
    root.accumulate(dout)
    while pending:
        tensor = pending.pop()
        backward, parents, dout = tensor._backward, tensor._parents, tensor.grad
        tensor._backward, tensor._parents, tensor.grad = _walked, (), None
        if dout is None:  # only reached through a path that passes no gradient on
            continue
        for parent, grad in zip(parents, backward(dout), strict=True):
            if grad is not None and parent.requires_grad:
                parent.accumulate(grad)


@contextmanager
def _set_recording(on: bool) -> Iterator[None]:
    before, _mode.recording = _mode.recording, on
    try:
        yield
    finally:
        _mode.recording = before


def no_grad() -> AbstractContextManager[None]:
    """Compute without recording, in this thread."""
    return _set_recording(False)


def checkpoint(fn: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """Return `fn(*inputs)`, keeping only the inputs; the inside is recomputed going back.

    Trades one more forward pass of `fn` for the memory of its activations (Chen et al. 2016,
    "Training Deep Nets with Sublinear Memory Cost"). `fn` must be a pure function of its
    inputs and of leaf tensors, whose gradients arrive during the recomputation.
    """
    with no_grad():
        out = Tensor(fn(*inputs).data)

    def backward(dout: np.ndarray) -> Grads:
        copies = [Tensor(x.data, x.requires_grad) for x in inputs]
        with _set_recording(True):  # backward may be called inside no_grad
            again = fn(*copies)
        run_backward(again, dout)
        return [c.grad for c in copies]

    if _mode.recording:
        out.requires_grad, out._parents, out._backward = True, inputs, backward
    return out
