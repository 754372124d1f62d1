"""Numbers in prose: every quantity that a sentence states for a field, and how firmly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from paperkiln.papers.document import Block, Document, Table
from paperkiln.papers.numbers.binding import bind
from paperkiln.papers.numbers.fields import value_of
from paperkiln.papers.numbers.reading import Reading
from paperkiln.papers.numbers.symbols import MAX_PROSE, MAX_SENTENCE, bounded
from paperkiln.papers.phrases import phrases
from paperkiln.papers.scope import Scope

# How much a statement counts by where it stands.
SECTION_SCORES = {
    "method": 1.5, "training": 1.5, "abstract": 1.0, "experiments": 1.0, "introduction": 0.5,
    "other": 0.5, "": 0.5, "conclusion": 0.0, "ablation": -0.5, "related": -3.0, "future": -3.0,
}  # fmt: skip
APPENDIX = -0.25
_BLOCK_SCORES = {"footnote": -0.5, "code": -0.5, "caption": -1.0}
MAX_READINGS = 8000  # no paper states as many numbers of models

_USE = phrases(
    "we use|we set|we employ|we adopt|we train|we choose|we fix|we configure|we pretrain|"
    "we pre train|we keep|our|is set|are set|set to|consist of|consists of|composed of|comprise*|"
    "comprising|all models|all our models|the model|by default|hyperparameter*|hyper parameter*|"
    "configuration|the network|the transformer|the backbone|the decoder|the encoder"
)
_HYPOTHETICAL = phrases(
    "e.g.|for example|for instance|suppose|assum*|if we|consider a|typical|typically|would|imagine|"
    "hypothetical|such as|say,|in principle|theoretical"
)
_COMPARED = phrases(
    "compared to|compared with|unlike|instead of|rather than|versus|vs|in contrast|previous|"
    "prior work|existing|ablat*|vary|varied|varying|sweep*|swept|search|searched|search over|grid|"
    "ranging|scale from|scaling from|scale up|scaling up|experiment with|experimented with|"
    "increase|increased|increasing|double|doubled|doubling|halve|halved|halving|limited to|fail*|"
    "as low as|beyond|larger|deeper|wider|bigger"
)
_SHOWN = re.compile(
    r"^\s*(?:In\s+)?(?:Figure|Fig\.)\s\S*\s(?:shows|plots|visuali[sz]es|depicts|compares|we)\b"
)
_ASKED = re.compile(r"\?\s*$")
_MAY = phrases("may|might|could|would")
_EXTENDED = phrases(
    "extend|extends|extended|extending|extension*|yarn|extrapolat*|interpolat*|up to|inference|"
    "long context|support|supports|enable|enables|enabled|enabling|"
    "configurable|scale to|scaled to|scaling to|fine tun*|finetun*|evaluat*|test*"
)
_LENGTHS = frozenset({"method", "training", "abstract", "introduction", ""})
_SIZE = re.compile(
    r"(?<![\w-])(?:(?P<name>tiny|mini|small|base|medium|large|big|huge|x{1,2}l|nano|micro)(?![\w-])"
    r"(?=[\s-]*(?:\(|model|variant|version|config|size|scale|transformer|\)|:|,|has|uses|with))"
    r"|(?P<count>\d+(?:\.\d+)?\s?[MB])(?!\w)(?:[\s-]parameters?)?"
    r"(?=[\s-]*(?:\(|model|variant|version|config|scale|param|:|,)))",
    re.IGNORECASE,
)
_ANAPHORA = re.compile(
    r"\s*(?:It|Its|This|These|They|The (?:encoder|decoder|network|model))\b"
)  # its subject is the one before
_SECOND_HALF = re.compile(r"\bencoder\b.*\bdecoder\b[^.;]{0,24}$", re.DOTALL | re.IGNORECASE)
_CODEBOOK = phrases("codebook*|code book*|dictionary")
_ROUTED = re.compile(r"(?:router|gating).* n_experts")  # a router chooses among the model's experts


def read_statements(document: Document, scope: Scope, symbols: dict[str, str]) -> list[Reading]:
    """Return every number that the prose states for a field, in reading order."""
    return list(islice(_read_all(document, scope, symbols), MAX_READINGS))


def _read_all(document: Document, scope: Scope, symbols: dict[str, str]) -> Iterator[Reading]:
    left = MAX_PROSE
    for order, block in enumerate(document.blocks):
        if isinstance(block, Table):
            yield from _read_cells(block, order, symbols, scope)
        elif left > 0 and block.kind not in ("heading", "title"):
            block = replace(block, text=bounded(block.text))
            left -= len(block.text.string)
            yield from _read_block(block, order, symbols, scope)


def _read_cells(
    table: Table, order: int, symbols: dict[str, str], scope: Scope
) -> Iterator[Reading]:
    """Read the cells that hold a whole description: "encoder (3 blocks, d = 128, 4 heads)"."""
    for row in table.rows:
        owner = scope.header(row[0].text.string) if row else ""
        for cell in row:
            string = cell.text.string
            if not owner and 8 < len(string) < 400 and sum(c.isdigit() for c in string) > 1:
                block = Block("cell", cell.text, table.section)
                found = list(_read_block(block, order, symbols, scope))
                fields = {reading.field for reading in found}
                if len(fields) > 1 or fields == {"rope_theta"}:
                    place = order, cell.row, 1000 + cell.column
                    yield from (replace(reading, record=place) for reading in found)


def _read_block(
    block: Block, order: int, symbols: dict[str, str], scope: Scope
) -> Iterator[Reading]:
    string = block.text.string
    of_section = scope.section(block.section)
    previous = scope.part(block.label) if block.kind == "item" else ""
    for number, (start, end) in enumerate(_stretches(block)):
        sentence = string[start : min(end, start + MAX_SENTENCE)]
        carried = previous if _ANAPHORA.match(sentence) else ""
        previous, part, variant = "", 0, ""
        seen: dict[str, int | float] = {}
        for bound in bind(sentence, symbols):
            name, value = bound.term.field, value_of(bound.term.field, bound.quantity)
            if value is None and bound.formula is None:
                continue
            low = min(bound.term.start, bound.quantity.start)
            high = max(bound.term.end, bound.quantity.end)
            before, after = sentence[:low], sentence[high : high + 80]
            owner = of_section or scope.clause(before, after) or carried
            if _CODEBOOK.search(sentence[low:high]) or _ROUTED.match(f"{owner} {name}"):
                owner = ""  # codes are the vocabulary of the model that predicts them
            previous = owner
            if seen.get(name, value) != value and _SECOND_HALF.search(before[-200:]):
                continue
            if seen and name == next(iter(seen)) and seen[name] != value:
                part, seen, variant = part + 1, {}, ""  # a list of models repeats its first field
            if not seen and name == "n_parameters":  # "the 350M-parameter model has 24 layers"
                variant = sentence[bound.quantity.start : bound.quantity.end]
            else:
                variant = _size_before(before) or variant
            seen.setdefault(name, value or 0)
            reading = Reading(
                name, value or 0, block.text, start + low, start + high, block.section, order,
                SECTION_SCORES.get(block.section.kind, 0.5) + bound.strength,
                (f"{block.section.kind or 'front'} section", bound.cue), owner=owner,
                variant=variant, record=(order, number, part), formula=bound.formula,
                named=sentence[bound.term.start : bound.term.end],
            )  # fmt: skip
            yield _weigh(reading, sentence, before, block)


def _stretches(block: Block) -> Iterator[tuple[int, int]]:
    """Yield the sentences of a block, or the lines of a listing."""
    if block.kind != "code":
        yield from block.text.sentences
        return
    for line in re.finditer(r"[^\n]+", block.text.string):
        yield line.span()


def _weigh(reading: Reading, sentence: str, before: str, block: Block) -> Reading:
    """Add what the sentence and its place say about the reading."""
    if block.section.appendix:
        reading = reading.weighed(APPENDIX, "appendix")
    if block.kind in _BLOCK_SCORES:
        reading = reading.weighed(_BLOCK_SCORES[block.kind], block.kind)
    for pattern, where, weight in (
        (_USE, sentence, 1.0),
        (_HYPOTHETICAL, before[-120:], -2.5),
        (_COMPARED, before[-100:], -1.5),
        (_SHOWN, sentence, -2.0),
        (_ASKED, sentence, -1.5),
        (_MAY, sentence[len(before) : len(before) + 80], -0.5),
    ):
        if cue := pattern.search(where):
            reading = reading.weighed(weight, f"“{cue[0].lower()}”")
    if reading.field == "context_length":
        title = block.section.title.string
        if cue := _EXTENDED.search(title) or _EXTENDED.search(sentence):
            reading = reading.weighed(-1.0, f"“{cue[0].lower()}”: perhaps not the trained length")
        if block.section.kind not in _LENGTHS:
            reading = reading.weighed(-1.0, "a length in a measurement")
    return reading


def _size_before(before: str) -> str:
    """Return the size that the words before a statement name: base, large, 350M."""
    named = list(_SIZE.finditer(before[-80:]))
    return (named[-1]["name"] or named[-1]["count"]).strip() if named else ""
