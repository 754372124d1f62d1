"""Rotary positions stretched after training: what each frequency is divided by.

Linear scaling divides them all by one number (Chen et al. 2023). Llama 3's divides the slow ones,
leaves the fast ones and goes smoothly from one to the other; a GGUF file holds the result as a
tensor, `rope_freqs.weight`, a Hugging Face folder four numbers. YaRN also changes the scores, which
our decoder does not.

Standard library only: the browser runs this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, pi
from typing import Any

from paperkiln.errors import PaperkilnError


def rope_scale(metadata: Mapping[str, Any], head_dim: int, where: str) -> float:
    """Return what a GGUF's metadata divides every rotary frequency by, mostly 1.

    As llama.cpp reads it: a factor without a type is linear. Only a llama says any. Raises
    PaperkilnError for another type than none and linear, and for heads that are rotated in part.
    """
    if metadata.get("general.architecture") != "llama":
        return 1.0
    if (part := metadata.get("llama.rope.dimension_count", head_dim)) != head_dim:
        raise PaperkilnError(
            f"{where}: its heads are rotated in part ({part!r:.20} of {head_dim} dimensions), "
            "which is not supported; open it with llama.cpp"
        )
    kind = metadata.get("llama.rope.scaling.type", "linear")
    if kind not in ("none", "linear"):
        raise PaperkilnError(
            f"{where}: its rotary positions are scaled by {kind!r:.40}, and only linear scaling "
            "and Llama 3's are supported; open it with llama.cpp"
        )
    old_name = metadata.get("llama.rope.scale_linear", 1.0)
    factor = metadata.get("llama.rope.scaling.factor", old_name)
    if type(factor) not in (int, float) or not 0 <= factor < inf:
        raise PaperkilnError(
            f"{where}: metadata llama.rope.scaling.factor is {factor!r:.40}, not a number above 0; "
            "export it again"
        )
    return 1.0 if kind == "none" or factor == 0 else float(factor)


def hf_rope_factors(scaling: Mapping[str, Any], theta: float, head_dim: int) -> list[float] | None:
    """Return the factor of each rotary pair for transformers' `rope_scaling`; None for no scaling.

    Raises ValueError naming an entry that is missing or no number above 0, and KeyError for a
    type that is not known.
    """
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "default":
        return None
    n_pairs = head_dim // 2
    if kind == "linear":
        return [_number(scaling, "factor")] * n_pairs
    if kind != "llama3":
        raise KeyError(kind)
    factor, trained = (
        _number(scaling, "factor"),
        _number(scaling, "original_max_position_embeddings"),
    )
    low, high = _number(scaling, "low_freq_factor"), _number(scaling, "high_freq_factor")
    if low >= high:
        raise ValueError("low_freq_factor is not below high_freq_factor")
    factors = []
    for m in range(n_pairs):  # Meta's released code for Llama 3.1, by turns in the trained context
        turns = trained * theta ** (-2 * m / head_dim) / (2 * pi)
        kept = min(max((turns - low) / (high - low), 0.0), 1.0)  # 1: as trained; 0: divided
        factors.append(1 / (kept + (1 - kept) / factor))
    return factors


def _number(scaling: Mapping[str, Any], key: str) -> float:
    value = scaling.get(key)
    if type(value) not in (int, float) or not 0 < value < inf:
        raise ValueError(f"rope_scaling's {key} is {value!r:.40}, not a number above 0")
    return float(value)
