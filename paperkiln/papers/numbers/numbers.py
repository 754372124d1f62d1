"""From readings to values: the numbers of the paper's own main model.

The main record gives the values it has. Others fill what it leaves open as long as they do not
contradict it; what does contradict it describes another size, listed as a variant, or another
model, left alone.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from paperkiln.papers.architecture import Evidence, Mention, Scalar, Value, Variant
from paperkiln.papers.document import Document
from paperkiln.papers.numbers.fields import in_window
from paperkiln.papers.numbers.reading import Reading
from paperkiln.papers.numbers.records import (
    CORE,
    Record,
    collect,
    main_record,
    rival_of,
    tell_widths_apart,
)
from paperkiln.papers.numbers.statements import read_statements
from paperkiln.papers.numbers.symbols import defined_symbols
from paperkiln.papers.numbers.tables import read_tables
from paperkiln.papers.scope import Scope

_ASSERT = 1.0  # score below which a number is only said in passing
_READ = -1.0  # score below which a reading counts for nothing
_UNDECIDED = 0.25  # two values closer than this stand side by side
_REPEATED = 0.25  # for each place that says the same
_TOGETHER = 0.5  # for a value that stands with the rest of the shape
_DESCRIBING = frozenset({"method", "training", "abstract", "introduction", "other"})
_SHAPE = (*CORE, "vocab_size")
_OF_ONE_MODEL = frozenset(
    {*CORE, "n_kv_heads", "head_dim", "n_parameters", "n_experts", "dropout", "window"}
)
_MOST = 400  # readings of a field that are compared
_MENTIONS = 8  # values of a field that are listed
_VARIANTS = 40
_NOTES = 4
_NO_MAIN = "the paper describes several models and calls none the main one"


@dataclass
class Numbers:
    """What the numbers of a paper come to; `model` is the paper's name of the main size."""

    values: dict[str, Value] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    """Why a field that is named stays open."""
    mentions: dict[str, list[Mention]] = field(default_factory=dict)
    variants: list[Variant] = field(default_factory=list)
    model: str = ""
    notes: list[str] = field(default_factory=list)


def read_numbers(document: Document, scope: Scope, size: str | None = None) -> Numbers:
    """Return the numbers of the paper's own main model, or of the one called `size`.

    Raises PaperkilnError when no model is called so.
    """
    symbols = defined_symbols(document)
    readings = read_statements(document, scope, symbols) + read_tables(document, scope, symbols)
    readings = tell_widths_apart(readings)
    records = collect([r for r in readings if not r.owner and r.score > _READ])
    main = main_record(records, size)
    numbers = Numbers(mentions=_mentions(readings))
    if main is None:
        return numbers
    numbers.model = main.variant
    agreeing = _agreeing(main, records)
    chosen = _derived(_choose(main, agreeing))
    rival = rival_of(main, records) if size is None else None
    for name, reading in chosen.items():
        value = _judge(name, chosen, main, [r for r in agreeing if name in r.readings], rival)
        if value is None:
            numbers.reasons[name] = f"only said in passing: “{_quote(reading).reads}”"
        else:
            numbers.values[name] = value
    numbers.variants = _variants(records, main, chosen)
    numbers.notes = _other_configurations(records, main)
    return numbers


def _other_configurations(records: list[Record], main: Record) -> list[str]:
    """Return a note for each full configuration without a name that the paper also gives."""
    notes = []
    for record in records:
        others = {n: r for n, r in record.readings.items() if n in main.readings}
        if record.variant or len(record.core) < 3 or not record.contradicts(main.readings):
            continue
        if record.key[0] != main.key[0]:
            quote = _quote(record.first)
            said = ", ".join(f"{name} {reading.value}" for name, reading in others.items())
            notes.append(f"another configuration, not taken: {said} ({quote.file}:{quote.line})")
    return notes[:_NOTES]


def _agreeing(main: Record, records: list[Record]) -> list[Record]:
    """Return the records that may speak of the main model, the main one first."""
    shape = {name: main.readings[name] for name in main.core}
    found = [main]
    for record in sorted(records, key=lambda r: (-r.weight, r.first.order)):
        named = bool(record.core) and record.variant not in ("", main.variant)
        beside = record.key[0] == main.key[0] and named
        if record is main or beside or record.contradicts(shape):
            continue
        found.append(record)
        for name in record.core:
            if record.readings[name].score >= _ASSERT:
                shape.setdefault(name, record.readings[name])
    return found


def _choose(main: Record, agreeing: list[Record]) -> dict[str, Reading]:
    """Return the reading of each field: the main record's, else the best of the others."""
    candidates: dict[str, list[Reading]] = defaultdict(list)
    for record in agreeing:
        for name, reading in record.readings.items():
            candidates[name].append(reading)
    chosen = dict(main.readings)
    for name, found in candidates.items():
        if name not in chosen:
            chosen[name] = _best(found)
    # A size of another table may have slipped in: prefer what comes from a record at peace.
    by_key = {record.key: record for record in agreeing}
    for name, reading in list(chosen.items()):
        if name in main.readings or not _disputes(by_key[reading.record], chosen, name):
            continue
        peaceful = [r for r in candidates[name] if not _disputes(by_key[r.record], chosen, name)]
        if peaceful:
            chosen[name] = max(peaceful, key=lambda r: (r.score, -r.order))
    return chosen


def _best(found: list[Reading]) -> Reading:
    """Return the strongest reading; what the description of the model repeats counts more."""
    places: dict[Scalar, set[int]] = defaultdict(set)
    for reading in found:
        if reading.section.kind in _DESCRIBING:
            places[reading.value].add(reading.order)

    def strength(reading: Reading) -> tuple[float, int]:
        again = min(max(len(places[reading.value]) - 1, 0), 3)
        return reading.score + _REPEATED * again, -reading.order

    return max(found[:_MOST], key=strength)


def _disputes(record: Record, chosen: dict[str, Reading], name: str) -> bool:
    others = tuple(other for other in _SHAPE if other != name)
    return record.contradicts(chosen, others)


def _derived(chosen: dict[str, Reading]) -> dict[str, Reading]:
    """Compute "4 times the hidden size" where the hidden size is known; drop it where not."""
    computed = ((name, r, r.computed(chosen)) for name, r in chosen.items())
    return {
        name: replace(reading, value=value)
        for name, reading, value in computed
        if value is not None and in_window(name, value)
    }


# Verdicts


def _judge(
    name: str, chosen: dict[str, Reading], main: Record, agreeing: list[Record],
    rival: Record | None,
) -> Value | None:  # fmt: skip
    """Return a field's value with its verdict, None when it is only said in passing."""
    reading = chosen[name]
    if reading.record == main.key and len(main.core) > 2:
        reading = reading.weighed(_TOGETHER, "in one breath with the rest of the shape")
    example = name == "n_layers" and reading.value == 1 and len(main.core) == 1
    if reading.score < _ASSERT or example:  # "a 1-layer transformer" by itself is an example
        return None
    said = ((r.readings[name], r.readings[name].computed(chosen)) for r in agreeing)
    same = [replace(r, value=value) for r, value in said if value is not None]
    value = Value(
        reading.value, "used", tuple(_quotes(reading, same)), round(reading.score, 2),
        reading.cues, _runner_up([r for r in same if r.value != reading.value]),
    )  # fmt: skip
    if reading.formula:
        factor, part = reading.formula
        quotes = (*value.evidence, _quote(chosen[part]))
        note = f"{factor:g} × {part} = {reading.value}"
        value = replace(value, verdict="derived", evidence=quotes, note=note)
    elif _undecided(reading, same):
        value = replace(value, verdict="contested")
    depends = (name, reading.formula[1]) if reading.formula else (name,)
    if rival and any(part in _OF_ONE_MODEL for part in depends):
        other = rival.readings.get(name)
        runner_up = _runner_up([other]) if other and other.value != reading.value else None
        value = replace(
            value, verdict="contested", note=_NO_MAIN, runner_up=runner_up or value.runner_up
        )
    return value


def _undecided(reading: Reading, same: list[Reading]) -> bool:
    """Whether nothing but its place speaks for a reading against another value."""
    others = [r for r in same if r.value != reading.value]
    if not others:
        return False
    best = max(others, key=lambda r: r.score)
    # Said in one breath the first is the main one; of another size, it is another size's.
    apart = best.order != reading.order and best.variant == reading.variant
    return apart and best.score > reading.score - _UNDECIDED and best.score >= _ASSERT


def _runner_up(others: list[Reading]) -> Mention | None:
    if not others:
        return None
    best = max(others, key=lambda r: r.score)
    return Mention(best.value, round(best.score, 2), _quote(best), best.cues)


def _quotes(reading: Reading, same: list[Reading]) -> list[Evidence]:
    """Return what shows a value: up to three places that say it, a sentence before a cell."""
    agreeing = [r for r in same if r.value == reading.value and r.record != reading.record]
    agreeing = [r for r in agreeing if r.score > 0]
    agreeing.sort(key=lambda r: (r.row is not None, -r.score))
    places = [reading, *agreeing[:2]]
    if reading.row is not None:
        places.sort(key=lambda r: r.row is not None or r.score < _ASSERT)
    return list(dict.fromkeys(quote for place in places for quote in place.evidence()))


def _quote(reading: Reading) -> Evidence:
    return reading.evidence()[0]


def _mentions(readings: list[Reading]) -> dict[str, list[Mention]]:
    """Return the values that the paper names for each field, whosever they are, best first."""
    found: dict[str, dict[Scalar, Reading]] = defaultdict(dict)
    for reading in readings:
        best = found[reading.field].get(reading.value)
        if reading.formula is None and (best is None or reading.score > best.score):
            found[reading.field][reading.value] = reading
    return {
        name: [
            Mention(
                r.value, round(r.score, 2), _quote(r), r.cues, f"of {r.owner}" if r.owner else ""
            )
            for r in sorted(values.values(), key=lambda r: -r.score)[:_MENTIONS]
        ]
        for name, values in found.items()
    }


def _variants(
    records: list[Record], main: Record, chosen: dict[str, Reading]
) -> list[Variant]:  # fmt: skip
    """Return the other sizes: records with a name that differ from the main one in shape."""
    found: dict[str, Variant] = {}
    for record in records:
        if record is main or len(record.core) < 2 or not record.variant:
            continue
        if record.first.score >= 0 and record.contradicts(chosen):
            values = {name: r.value for name, r in record.readings.items() if not r.formula}
            found.setdefault(record.variant, Variant(record.variant, values, _quote(record.first)))
    return list(found.values())[:_VARIANTS]
