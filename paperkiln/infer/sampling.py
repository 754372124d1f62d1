"""Choosing the next token from the logits; standard library only, since the browser runs it too.

The steps, in this order, each seeing what the one before left:

    1. repetition penalty   logits of tokens already in the context, Keskar et al. 2019 section 4.1
    2. temperature          logits / temperature; 0 is greedy and ends here with the largest
    3. top-k                the k largest logits, Fan et al. 2018
    4. top-p                the fewest tokens whose probabilities reach p, Holtzman et al. 2020
    5. min-p                probabilities of at least min_p times the largest, Nguyen et al. 2024

Equal logits rank by id, the lowest first, so every step and greedy itself are deterministic. The
draw takes one number from a seeded `random.Random`, whose sequence Python documents as stable.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from operator import itemgetter
from random import Random

from paperkiln.errors import PaperkilnError


@dataclass(frozen=True)
class Sampling:
    """How to choose tokens. Raises PaperkilnError for a value out of its range."""

    temperature: float = 0.8  # 0 is greedy
    top_k: int = 40  # 0 keeps all
    top_p: float = 1.0  # 1 keeps all
    min_p: float = 0.0  # 0 keeps all
    repetition_penalty: float = 1.0  # 1 is none; above 1 discourages repeating
    seed: int | None = None  # None draws a fresh one

    def __post_init__(self) -> None:
        ranges = {
            "temperature": (0 <= self.temperature < math.inf, "0 (greedy) or more"),
            "top_k": (self.top_k >= 0 and self.top_k == int(self.top_k), "a whole number from 0"),
            "top_p": (0 < self.top_p <= 1, "above 0 and at most 1"),
            "min_p": (0 <= self.min_p <= 1, "from 0 to 1"),
            "repetition_penalty": (0 < self.repetition_penalty < math.inf, "above 0"),
        }
        for field in fields(self):
            holds, needed = ranges.get(field.name, (True, ""))
            if not holds:
                value = getattr(self, field.name)
                raise PaperkilnError(f"sampling {field.name} = {value}: should be {needed}")

    @property
    def greedy(self) -> bool:
        """Whether the largest logit always wins, and nothing is drawn."""
        return self.temperature == 0 or self.top_k == 1


GREEDY = Sampling(temperature=0.0, seed=0)


def choose(
    logits: Sequence[float],
    sampling: Sampling,
    rng: Random,
    *,
    ids: Sequence[int] | None = None,
    seen: Collection[int] = (),
) -> int:
    """Return the id of the next token.

    `ids` are the tokens that `logits` belong to, ascending, all of them when None; `seen` are the
    tokens of the context, for the penalty. One number is drawn from `rng`, none when greedy.
    Raises PaperkilnError when a logit is not a number or all are minus infinity.
    """
    ids = range(len(logits)) if ids is None else ids
    never = -math.inf
    pairs = [(x, i) for x, i in zip(logits, ids, strict=True) if x != never]
    if not pairs:
        raise PaperkilnError("no token is left to choose from")
    if not math.isfinite(sum(x for x, _ in pairs)):
        raise PaperkilnError("the model's logits are not finite: its weights are damaged")
    pairs = penalise(pairs, seen, sampling.repetition_penalty)
    ranked = sorted(pairs, key=itemgetter(0), reverse=True)  # stable: equals keep their order
    if sampling.greedy:
        return ranked[0][1]
    return draw(distribution(ranked, sampling), rng)


def penalise(
    pairs: list[tuple[float, int]], seen: Collection[int], penalty: float
) -> list[tuple[float, int]]:
    """Return (logit, id) pairs; of seen ids, positive logits / penalty, negative * penalty."""
    if penalty == 1 or not seen:
        return pairs
    return [((x / penalty if x > 0 else x * penalty) if i in seen else x, i) for x, i in pairs]


def distribution(
    ranked: Sequence[tuple[float, int]], sampling: Sampling
) -> list[tuple[float, int]]:
    """Return (probability, id) after temperature, top-k, top-p and min-p, the largest first.

    `ranked` are (logit, id) pairs, the largest first; probabilities add up to 1.
    """
    kept = ranked[: sampling.top_k] if sampling.top_k else ranked
    exp, largest, temperature = math.exp, kept[0][0], sampling.temperature
    weights = [exp((x - largest) / temperature) for x, _ in kept]
    n_kept = count_top_p(weights, sampling.top_p)
    n_kept = count_min_p(weights[:n_kept], sampling.min_p)
    total = math.fsum(weights[:n_kept])
    return [(w / total, i) for w, (_, i) in zip(weights[:n_kept], kept[:n_kept], strict=True)]


def count_top_p(weights: Sequence[float], p: float) -> int:
    """Return how many of the largest weights it takes to reach the share p of their sum."""
    if p >= 1:
        return len(weights)
    needed = p * math.fsum(weights)
    return next(
        (n for n, mass in enumerate(accumulate(weights), 1) if mass >= needed), len(weights)
    )


def count_min_p(weights: Sequence[float], min_p: float) -> int:
    """Return how many weights, the largest first, are at least min_p times the largest."""
    if min_p == 0:
        return len(weights)
    return sum(w >= min_p * weights[0] for w in weights)


def draw(pairs: Sequence[tuple[float, int]], rng: Random) -> int:
    """Return an id drawn from (probability, id) pairs by inverting the cumulative sum."""
    at = rng.random()
    for mass, (_, i) in zip(accumulate(p for p, _ in pairs), pairs, strict=True):
        if at < mass:
            return i
    return pairs[-1][1]  # the sum may fall short of 1 by a rounding
