"""The tables of numbers by which positions enter the second engine: angles and ALiBi's slopes.

Standard library only: the browser runs this file.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from paperkiln.errors import PaperkilnError
from paperkiln.infer.ember_plan import Plan, Shape


def rope_divisors(plan: Plan, read: Callable[[int, int], bytes], where: str) -> list[float]:
    """Return what each rotary frequency is divided by, (E/2,); `read(offset, n)` reads the file.

    Raises PaperkilnError where that is not above 0.
    """
    n_pairs, info = plan.shape.head_dim // 2, plan.rope_factors
    if info is None:
        return [plan.rope_scale] * n_pairs
    factors = struct.unpack(f"<{n_pairs}f", read(info.offset, info.n_bytes))
    if not all(factor > 0 for factor in factors):
        raise PaperkilnError(f"{where}: {info.name} divides by what is not above 0")
    return [plan.rope_scale * factor for factor in factors]


def frequencies(shape: Shape, divisors: Sequence[float]) -> list[float]:
    """Return the angle that one position adds: for each rotary pair, or sine and cosine column.

    A rotary pair's is divided by its divisor.
    """
    if shape.positional == "rope":  # Su et al. 2021
        E = shape.head_dim
        return [shape.rope_theta ** (-2 * m / E) / divisors[m] for m in range(E // 2)]
    if shape.positional == "sinusoidal":  # Vaswani et al. 2017, section 3.5
        D = shape.d_model
        return [10000.0 ** (-2 * m / D) for m in range((D + 1) // 2)]
    return []


def slopes(shape: Shape) -> list[float]:
    """Return each head's ALiBi slope (Press et al. 2021), as the paper's code has them.

    For a count that is no power of two: the slopes of the power of two below, then every second
    one of the power above.
    """
    if shape.positional != "alibi":
        return []
    below = 1 << (shape.n_heads.bit_length() - 1)
    powers = [2 ** (-8 * (h + 1) / below) for h in range(below)]
    above = [2 ** (-8 * (h + 1) / (2 * below)) for h in range(0, 2 * below, 2)]
    return (powers + above)[: shape.n_heads]
