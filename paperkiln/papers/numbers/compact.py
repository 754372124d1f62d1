"""Dimensions in the short form of tables and names: 20L d512, 12L-768D-12H, 8Q/4KV."""

from __future__ import annotations

import re
from collections.abc import Iterator

from paperkiln.papers.numbers.fields import Term
from paperkiln.papers.numbers.quantities import Quantity

_PIECE = re.compile(
    r"(?<![\w.^])(?:(?P<n_layers>\d{1,3})\s?L|L(?P<n_layers_>\d{1,3})"
    r"|[dD](?P<d_model>\d{2,5})|(?P<d_model_>\d{2,5})\s?[dD]"
    r"|(?P<n_heads>\d{1,3})\s?[hH]|[hH](?P<n_heads_>\d{1,3})"
    r"|(?P<n_heads__>\d{1,3})\s?Q|(?P<n_kv_heads>\d{1,3})\s?KV)(?![A-Za-z0-9_])"
)
_NEAR = 24  # characters between two pieces of one form


def compact(sentence: str) -> Iterator[tuple[Term, Quantity]]:
    """Yield the dimensions of a short form; one piece by itself is none."""
    run: list[re.Match[str]] = []
    for match in _PIECE.finditer(sentence):
        if run and match.start() - run[-1].end() > _NEAR:
            yield from _read(run)
            run = []
        run.append(match)
    yield from _read(run)


def _read(run: list[re.Match[str]]) -> Iterator[tuple[Term, Quantity]]:
    fields = [match.lastgroup.rstrip("_") for match in run]  # type: ignore[union-attr]
    pair = {"n_heads", "n_kv_heads"} <= set(fields)
    if len(set(fields)) < 2 or not (pair or "n_layers" in fields):
        return
    for match, field in zip(run, fields, strict=True):
        start, end = match.span(match.lastgroup)  # type: ignore[arg-type]
        term = Term(field, "size", 0.5, match.start(), match.end())
        yield term, Quantity(int(match[match.lastgroup]), start, end)  # type: ignore[index]
