"""Parameters: named tensors that are views of one flat buffer, and their gradients likewise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

Flat = Any  # a 1-D numpy array, or a 1-D torch tensor on its device


class Parameters:
    """Every parameter in one flat buffer, so that an optimiser steps over one array.

    `order` puts the weight-decayed names first: they are `flat[:n_decayed]`.
    """

    def __init__(self, arrays: dict[str, np.ndarray], flat_like: Any, decayed: Iterable[str]):
        """Copy `arrays` into buffers made by `flat_like(numpy 1-D) -> Flat`."""
        decayed = [name for name in decayed if name in arrays]
        rest = [name for name in arrays if name not in decayed]
        self.shapes = {name: arrays[name].shape for name in [*decayed, *rest]}
        self._places: dict[str, slice] = {}
        end = 0
        for name, shape in self.shapes.items():
            start, end = end, end + math.prod(shape)
            self._places[name] = slice(start, end)
        self.n_decayed = self._places[decayed[-1]].stop if decayed else 0
        ordered = np.concatenate([arrays[name].reshape(-1) for name in self.shapes])
        self.flat: Flat = flat_like(ordered)
        self.grad: Flat = flat_like(np.zeros_like(ordered))

    def __len__(self) -> int:
        """Return the number of scalars."""
        return self.flat.shape[0]

    def place(self, name: str) -> slice:
        """Return where the named parameter lies in a flat buffer."""
        return self._places[name]

    def shaped(self, flat: Flat, name: str) -> Any:
        """Return the named part of any flat buffer of this layout, a view in its own shape."""
        return flat[self._places[name]].reshape(self.shapes[name])

    def view(self, name: str) -> Any:
        """Return the named parameter, a view in its own shape."""
        return self.shaped(self.flat, name)

    def grad_view(self, name: str) -> Any:
        """Return the named gradient, a view in the parameter's shape."""
        return self.shaped(self.grad, name)

    def grad_norms(self) -> dict[str, float]:
        """Return the L2 norm of each module's gradient: embed, blocks.0, ..., norm, head."""
        squares: dict[str, float] = {}
        for name, place in self._places.items():
            parts = name.split(".")
            module = ".".join(parts[:2]) if parts[0] == "blocks" else parts[0]
            g = self.grad[place]
            squares[module] = squares.get(module, 0.0) + float(g @ g)
        return {module: math.sqrt(total) for module, total in sorted(squares.items())}
