"""Readings that stand together describe one model; the main one is the paper's own model.

A sentence, a table column or a table row is a record. The record that says most about the shape
of a model, where the paper describes its own, is taken as the main model: of sizes listed side by
side the first, or the one called base.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property

from paperkiln.errors import PaperkilnError
from paperkiln.papers.numbers.reading import Reading
from paperkiln.papers.phrases import phrases

CORE = ("d_model", "n_layers", "n_heads", "d_ff")  # two models differ in one of these
_WEIGHTS = dict.fromkeys(CORE, 1.0) | {"n_parameters": 0.1}  # of a field; of any other 0.5
_LARGER = phrases("large|big|huge|wide|deep|xl|xxl")
_BASE = phrases("base|default|ours|proposed|main")
_SIBLING_LEAD = 1.15  # by which a later size must outweigh the first, in one table or paragraph
_RECORD_LEAD = 1.05  # by which any later record must
_RIVAL_LEAD = 1.25  # by which the main record must outweigh what contradicts it
_BETTER = 0.25  # by which a second reading of a field in one record replaces the first
_HIDDEN = re.compile(r"(?!.*embed).*hidden", re.IGNORECASE)
_OUTER = re.compile(r"embed|model|^(?:dim(?:ension)?|width|d)$", re.IGNORECASE)


@dataclass
class Record:
    """Readings of one model that stand together, one a field."""

    key: tuple[int, ...]
    """(block, sentence or row, part); the first says where in the paper it stands."""
    readings: dict[str, Reading] = field(default_factory=dict)

    @property
    def first(self) -> Reading:
        """The reading that stands first."""
        return next(iter(self.readings.values()))

    @cached_property
    def variant(self) -> str:
        """The size that the record speaks of, as the paper names it."""
        return next((r.variant for r in self.readings.values() if r.variant), "")

    @cached_property
    def core(self) -> set[str]:
        """The fields of the model's shape that it states."""
        return self.readings.keys() & set(CORE)

    @cached_property
    def weight(self) -> float:
        """How much the record says about a model's shape, and how firmly."""
        weight = sum(
            _WEIGHTS.get(name, 0.5) * max(reading.score, 0.0)
            for name, reading in self.readings.items()
        )
        if _BASE.search(self.variant):
            weight *= 1.25
        return weight * 0.6 if _LARGER.search(self.variant) else weight

    @property
    def describes(self) -> bool:
        """Whether it stands where a paper describes its model, not in an experiment."""
        section = self.first.section
        return section.kind in ("method", "abstract", "training") and not section.appendix

    def contradicts(self, values: dict[str, Reading], fields: tuple[str, ...] = CORE) -> bool:
        """Whether it gives one of the fields another value than `values` do."""
        for name in fields:
            if name in values and name in self.readings:
                ours = self.readings[name].computed(self.readings, values)
                theirs = values[name].computed(values, self.readings)
                if None not in (ours, theirs) and ours != theirs:
                    return True
        return False


def collect(readings: list[Reading]) -> list[Record]:
    """Return the records of the paper's own models, in reading order."""
    records: dict[tuple[int, ...], Record] = {}
    for reading in readings:
        record = records.setdefault(reading.record, Record(reading.record))
        present = record.readings.get(reading.field)
        if present is None or reading.score > present.score + _BETTER:
            record.readings[reading.field] = reading
    return sorted(records.values(), key=lambda record: record.first.order)


def main_record(records: list[Record], size: str | None = None) -> Record | None:
    """Return the record of the main model, or of the one called `size`.

    Raises PaperkilnError when no model is called so, with those that are there.
    """
    if size is not None:
        return _called(size, records)
    best: Record | None = None
    for record in records:
        sibling = best is not None and record.key[0] == best.key[0]
        lead = _SIBLING_LEAD if sibling else _RECORD_LEAD
        if best is None or record.weight > best.weight * lead:
            best = record
    return best


def _called(size: str, records: list[Record]) -> Record:
    wanted = _plain(size)
    words = rf"(?<![\w.]){re.escape(wanted)}(?![\w.])"
    named = [r for r in records if wanted and re.search(words, _plain(r.variant))]
    if named:
        return max(named, key=lambda record: (len(record.core), record.weight))
    known = dict.fromkeys(r.variant for r in records if r.variant and r.core)
    there = f"it names {', '.join(list(known)[:12])}" if known else "it names no sizes"
    raise PaperkilnError(f"no model of this paper is called {size!r}; {there}")


def _plain(size: str) -> str:
    """Return "13b" for "13.0B" and "13 B"."""
    return re.sub(r"(?<=\d)(?:\.0+)?\s?(?=[kmb]\b)", "", size.strip().lower())


def rival_of(main: Record, records: list[Record]) -> Record | None:
    """Return a record about as strong as the main one that describes another model.

    A paper with an experiment a section, each on a model of its own, has no main model. One that
    describes its model is not put in doubt by what an experiment or an appendix uses.
    """
    for record in records:
        if (
            record.key[0] == main.key[0]
            or record.variant
            or len(record.core) < min(len(main.core), 2)
        ):
            continue
        if main.describes and not record.describes:
            continue
        strong = record.weight * _RIVAL_LEAD > main.weight
        if strong and record.contradicts(main.readings):
            return record
    return None


def tell_widths_apart(readings: list[Reading]) -> list[Reading]:
    """Return the readings with "hidden" and "embedding" sizes that stand together told apart.

    Papers that say "768 embedding dimensions and 3072 hidden dimensions" mean the model's width
    and the feed-forward's. Where the feed-forward has a size of its own, or the ratio is none of
    a feed-forward, the embedding is a narrower table of its own.
    """
    places: dict[tuple[int, ...], list[Reading]] = defaultdict(list)
    for reading in readings:
        if reading.field in ("d_model", "d_ff") and not reading.owner:
            place = reading.record if reading.row else reading.record[:2]
            places[place].append(reading)
    changed: dict[int, Reading | None] = {}
    for found in places.values():
        widths = [r for r in found if r.field == "d_model"]
        hidden = [r for r in widths if _HIDDEN.match(r.named)]
        outer = [r for r in widths if _OUTER.search(r.named)]
        if len(widths) == 2 and len(hidden) == len(outer) == 1:
            changed |= _told_apart(hidden[0], outer[0], inner_known=len(found) > 2)
    told = (changed.get(id(reading), reading) for reading in readings)
    return [reading for reading in told if reading is not None]


def _told_apart(
    hidden: Reading, outer: Reading, inner_known: bool
) -> dict[int, Reading | None]:  # fmt: skip
    ratio = hidden.value / max(outer.value, 1)
    if not inner_known and 1.3 <= ratio <= 5.4:
        cue = "“hidden” beside the model's width: the feed-forward"
        inner = replace(hidden, field="d_ff", record=outer.record, cues=(*hidden.cues, cue))
        return {id(hidden): inner}
    if "embed" in outer.named.lower() and ratio > 1:
        return {id(outer): None}
    return {}
