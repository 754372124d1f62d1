"""Do the extracted values agree with each other, and with the parameter count the paper states?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from paperkiln.papers.architecture import Check, Scalar
from paperkiln.papers.emit.counting import ParameterCount, count_parameters

# Norms, biases, routers and position tables that a paper leaves unsaid, and its own rounding of
# sizes: the 65M of the Transformer base model count 63.1M.
MODEL_SLACK = 0.05
FFN_RATIO = (1.0, 12.0)  # d_ff over d_model; published dense models lie between 2 and 8
VOCABULARY = (32, 1_100_000)  # from a small alphabet to the largest multilingual tables

_GATED = frozenset({"swiglu", "geglu", "reglu", "gated-glu"})
_PLAIN = frozenset({"relu", "gelu", "squared_relu"})
_COUNTABLE = frozenset({None, "exact", "swa"})  # attention with full projections
_DIMENSIONS = ("d_model", "n_layers", "d_ff", "vocab_size")

# What a failed check casts doubt on, and the factor that the trust in each field takes.
_DOUBTS: dict[str, dict[str, float]] = {
    "parameters": {"d_model": 0.8, "n_layers": 0.8, "d_ff": 0.7, "vocab_size": 0.8,
                   "n_parameters": 0.8},
    "heads": {"n_heads": 0.6, "head_dim": 0.5},
    "key-value heads": {"n_kv_heads": 0.5},
    "feed-forward": {"d_ff": 0.5},
    "window": {"window": 0.6, "context_length": 0.8},
    "vocabulary": {"vocab_size": 0.4},
    "experts": {"n_experts": 0.6, "n_experts_active": 0.6},
}  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """One way to count: what had to be assumed, in words, and the count."""

    words: tuple[str, ...]
    count: int
    cost: int
    """How far it is from a plain count of everything that is known."""


def check(values: Mapping[str, Scalar], derived: Iterable[str] = ()) -> list[Check]:
    """Return every check that the values allow, each with its arithmetic in one line.

    `derived` names the fields that were computed, not read.
    """
    checks = [
        _parameters(values),
        _heads(values, frozenset(derived)),
        _kv_heads(values),
        _ffn(values),
        _window(values),
        _vocabulary(values),
        _experts(values),
    ]
    return [made for made in checks if made]


def trust(checks: Iterable[Check]) -> dict[str, float]:
    """Return, for every field that a failed check casts doubt on, the factor its trust takes."""
    factors: dict[str, float] = {}
    for made in checks:
        if made.ok is False:
            for name, factor in _DOUBTS.get(made.name, {}).items():
                factors[name] = factors.get(name, 1.0) * factor
    return factors


def tolerance(stated: float) -> float:
    """Return by how much a count may differ from the one stated: half its last digit, and slack.

    6.7e9 was written as 6.7B, so its last digit is worth 1e8.
    """
    unit = 1
    while stated % (unit * 10) == 0 and unit < stated:
        unit *= 10
    return unit / 2 + MODEL_SLACK * stated


def _number(values: Mapping[str, Scalar], name: str) -> int | None:
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value) if value > 0 else None


def _parameters(values: Mapping[str, Scalar]) -> Check | None:
    stated = values.get("n_parameters")
    if isinstance(stated, bool) or not isinstance(stated, int | float):
        return None
    if not math.isfinite(stated) or stated <= 0:
        return None
    said = f"the paper states {_human(stated)}"
    if values.get("attention") not in _COUNTABLE:
        return Check("parameters", None, f"{said}; {values['attention']} attention is not counted")
    readings = list(_readings(values))
    if not readings:
        missing = [name for name in _DIMENSIONS[:3] if not _number(values, name)]
        why = f"{', '.join(missing)} unknown" if missing else "the head sizes do not add up"
        return Check("parameters", None, f"{said}; cannot be counted: {why}")
    if not _number(values, "vocab_size"):
        return _needed_vocabulary(values, stated, readings, said)
    margin = tolerance(stated)
    fitting = [reading for reading in readings if abs(reading.count - stated) <= margin]
    if fitting:
        best = min(fitting, key=lambda r: (r.cost, abs(r.count - stated)))
        return Check("parameters", True, f"{_total(best)}; {said} ({_percent(best, stated)})")
    near = min(readings, key=lambda r: (r.cost, abs(r.count - stated)))
    told = f"{_total(near)}, but {said} ({_percent(near, stated)})"
    if _number(values, "n_experts"):  # some layers may be dense, and papers seldom say which
        return Check("parameters", None, f"{told}; not every layer may have experts")
    return Check("parameters", False, told)


def _readings(values: Mapping[str, Scalar]) -> Iterator[Reading]:
    """Yield every count that what is known leaves open; a decoder alone costs least."""
    tied = values.get("tied_embeddings")
    ties = (tied,) if isinstance(tied, bool) else (True, False)
    vocabulary = _number(values, "vocab_size")
    experts = _number(values, "n_experts")
    for both, gated, tie in product((False, True), _gates(values), ties if vocabulary else (True,)):
        count = _count(values, gated, tie, both)
        if not count:
            continue
        shape = (
            *(("encoder and decoder",) if both else ()),
            *(("gated",) if gated and len(_gates(values)) > 1 else ()),
        )
        cost = 3 * both
        if vocabulary:
            yield Reading((*shape, "tied" if tie else "untied"), count.total, cost)
        yield Reading((*shape, "without embeddings"), count.total - count.embedding, cost + 1)
        if experts and vocabulary and _number(values, "n_experts_active"):
            yield Reading((*shape, "active for a token"), count.active, cost + 1)


def _gates(values: Mapping[str, Scalar]) -> tuple[bool, ...]:
    activation = values.get("activation")
    if activation in _GATED:
        return (True,)
    return (False,) if activation in _PLAIN else (False, True)


def _count(
    values: Mapping[str, Scalar], gated: bool, tied: bool, encoder_decoder: bool
) -> ParameterCount | None:
    norm = str(values.get("norm") or "rmsnorm")
    bias = values.get("bias")
    learned = values.get("positional") == "learned"
    return count_parameters(
        d_model=_number(values, "d_model"),
        n_layers=_number(values, "n_layers"),
        d_ff=_number(values, "d_ff"),
        vocab_size=_number(values, "vocab_size") or 1,
        n_heads=_number(values, "n_heads"),
        n_kv_heads=_number(values, "n_kv_heads"),
        head_dim=_number(values, "head_dim"),
        gated=gated,
        tied=tied,
        bias=bias if isinstance(bias, bool) else norm == "layernorm",
        norm=norm,
        learned_positions=(_number(values, "context_length") or 0) if learned else 0,
        n_experts=_number(values, "n_experts") or 0,
        n_experts_shared=_number(values, "n_experts_shared") or 0,
        n_experts_active=_number(values, "n_experts_active") or 0,
        expert_d_ff=_number(values, "expert_d_ff"),
        encoder_decoder=encoder_decoder,
    )


def _needed_vocabulary(
    values: Mapping[str, Scalar], stated: float, readings: list[Reading], said: str
) -> Check:
    """Say what vocabulary would make up the difference, where one could."""
    inner = min((r for r in readings if r.cost <= 1), key=lambda r: abs(r.count - stated))
    width = _number(values, "d_model") or 1
    table = round((stated - inner.count) / width)
    start = f"{_human(inner.count)} without embeddings; {said}"
    if table > VOCABULARY[1]:
        return Check("parameters", False, f"{start}, too many for any vocabulary")
    if table < -MODEL_SLACK * stated / width:
        return Check("parameters", False, f"{start}, which is fewer")
    return Check(
        "parameters", None,
        f"{start}: vocab_size unknown, {max(table, 0):,} rows of embeddings would make it up",
    )  # fmt: skip


def _heads(values: Mapping[str, Scalar], derived: frozenset[str]) -> Check | None:
    width, heads = _number(values, "d_model"), _number(values, "n_heads")
    if not width or not heads:
        return None
    size = _number(values, "head_dim")
    if not size:
        if width % heads:
            return Check("heads", False, f"d_model {width} is not a multiple of n_heads {heads}")
        return Check("heads", True, f"{width} / {heads} heads = {width // heads} each")
    sum_ = f"{heads} heads × {size} = {heads * size}"
    if heads * size == width:
        return Check("heads", True, f"{sum_} = d_model")
    legal = "head_dim" not in derived
    why = "legal: heads need not fill the model" if legal else "head_dim was only derived"
    return Check("heads", legal, f"{sum_} differs from d_model {width} ({why})")


def _kv_heads(values: Mapping[str, Scalar]) -> Check | None:
    heads, kv_heads = _number(values, "n_heads"), _number(values, "n_kv_heads")
    if not heads or not kv_heads:
        return None
    fits = heads % kv_heads == 0
    how = f"= {heads // kv_heads} to each" if fits else "leaves a remainder"
    return Check("key-value heads", fits, f"{heads} heads / {kv_heads} key-value heads {how}")


def _ffn(values: Mapping[str, Scalar]) -> Check | None:
    width, inner = _number(values, "d_model"), _number(values, "d_ff")
    if not width or not inner or _number(values, "n_experts"):
        return None  # an expert may be narrow
    low, high = FFN_RATIO
    ratio = inner / width
    fits = low <= ratio <= high
    end = "" if fits else f", outside {low:g} to {high:g}"
    return Check("feed-forward", fits, f"d_ff {inner} / d_model {width} = {ratio:.2f}{end}")


def _window(values: Mapping[str, Scalar]) -> Check | None:
    window, context = _number(values, "window"), _number(values, "context_length")
    if not window or not context:
        return None
    fits = window <= context
    sign = "≤" if fits else ">"
    return Check("window", fits, f"window {window} {sign} context_length {context}")


def _vocabulary(values: Mapping[str, Scalar]) -> Check | None:
    size = _number(values, "vocab_size")
    if not size:
        return None
    low, high = VOCABULARY
    fits = low <= size <= high
    where = "within" if fits else "outside"
    return Check("vocabulary", fits, f"vocab_size {size:,} is {where} {low:,} to {high:,}")


def _experts(values: Mapping[str, Scalar]) -> Check | None:
    total, active = _number(values, "n_experts"), _number(values, "n_experts_active")
    if not total or not active:
        return None
    return Check("experts", active <= total, f"{active} of {total} experts serve a token")


def _total(reading: Reading) -> str:
    return f"the values make {_human(reading.count)} ({', '.join(reading.words)})"


def _percent(reading: Reading, stated: float) -> str:
    return f"{100 * (reading.count / stated - 1):+.1f} %"


def _human(count: float) -> str:
    """Return a count as papers write it: 6.74B."""
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if count >= 0.9995 * size:  # 999.7M is 1B in three digits
            return f"{count / size:.3g}{letter}"
    return f"{count:.0f}"
