"""Which quantity of a sentence belongs to which term.

A quantity is bound to the term it stands next to: before it for a count ("8 attention heads",
"49,152-token vocabulary"), after it for a size ("hidden size of 512", "d_model = 512"), or in
step for a list ("layers and hidden size of 12 and 768"). Only words that say nothing may stand
between the two, so that a number is never carried over a verb or another noun.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from paperkiln.papers.numbers.compact import compact
from paperkiln.papers.numbers.fields import Term, terms
from paperkiln.papers.numbers.quantities import Quantity, quantities
from paperkiln.papers.numbers.symbols import with_symbols
from paperkiln.papers.phrases import phrases

# A size and its value: at least one link, and any of the fillers.
_LINKS = frozenset(
    "= : ≈ ~ ≡ ∼ of is are was were to at as equals equal be being becomes has have having with "
    "using contains containing uses".split()
)
_FILLERS = _LINKS | frozenset(
    "a an the our its their each both all every single total maximum max default fixed set chosen "
    "given defined by about around approximately roughly exactly only up reduced limited kept "
    "size length dimension dimensions dimensionality dim value values number model models layers "
    "tokens base standard original expanded configuration context window train training which we "
    "use in ( ) [ ] , - – \" ' “ ”".split()
)
_SYMBOL = re.compile(
    r"(?:[A-Za-zα-ωΑ-Ω]|\|?[A-Z]\|?|[a-zA-Zα-ω]{1,8}_\{?\w+\}?|[A-Za-z](?:_\w+)?\^\w+)"
)
_WORD = re.compile(r"\|?[^\W\d][\w^]*\|?|[^\w\s]|\d")
_ASIDE = re.compile(r"\([^()]{0,40}\)")
_MAX_GAP = 80  # characters
_MAX_NUMBERS = 60  # of a sentence; one with more is a list of data

# What no count is made of, though it stands before "layers": "2 fully connected layers".
_NOT_ADJECTIVES = frozenset(
    "of per in for with and to from on at by each the a an every is are which that when than or "
    "out as first last next previous final remaining additional extra other top bottom times x "
    "conv convolution convolutional linear dense fully connected mlp ffn feed forward feedforward "
    "sub projection lstm gru rnn recurrent perceptron memory pooling output input embedding norm "
    "normalization dropout sparse upsampling downsampling adapter classification prediction lora "
    "mtp frozen trainable fine tuned deep moe routed expert experts query key value heads layers "
    "gpus tpus epochs steps tokens parameters hours days".split()
)
_COMPOUND = frozenset("top forward tuned connected x layers".split())  # parts of "top-down", …
_UNITS = frozenset("dimensional dim d token tokens bpe subword".split())  # "512-dimensional hidden"
_TOTALS = frozenset({"n_layers", "n_heads", "n_experts", "n_parameters"})
_NOT_A_TOTAL = re.compile(  # "the last 4 layers", "more than 12 heads", "layer 6"
    r"(?:layers?|blocks?|heads?|steps?|first|last|every|top|bottom|next|final|other|another|"
    r"remaining|than|sub|under|below|within|after|before|additional|extra|upper|lower|initial|early|later|middle|"
    r"alternate|alternating|between|from|at|remov(?:e|ing)|prun(?:e|ing)|mask(?:ing)?|freez(?:e|ing)|"
    r"ablat(?:e|ing)|skip(?:ping)?|drop(?:ping)?|add(?:ing)?|[<>≤≥])(?:\s+the)?[\s-]*$",
    re.IGNORECASE,
)
_OF_A_PIECE = re.compile(  # "an LM head has 170M parameters"
    r"\b(?:heads?|embeddings?|matri(?:x|ces)|tables?|layers?|blocks?|modules?|experts?|stem)\s+"
    r"(?:alone\s+)?(?:has|have|adds?|contains?|with|requires?|uses?|takes?|accounts?\s+for)\s+"
    r"(?:(?:about|around|approximately|roughly|only|~)\s*)?$"
)
_OTHER_NET = phrases(  # "a 2-layer MLP"
    "mlp|mlps|perceptron*|fully connected|feed forward|feedforward|cnn|cnns|lstm*|bilstm|gru*|"
    "conv*|dense net*|deep cnn|classifier|projection*|rnn*|recurrent|unet|u net|later|deep|apart|"
    "earlier|away|of the mlp|of mlp"
)
_LIST_BEFORE = re.compile(  # "69, 37 and 4 heads", "4 built and 8 executed layers"
    r"\d\s?[KMB]?,\s+[\d.]+\s?[KMB]?,?\s(?:and|or)\s+$|\b(?P<other>\d+)\s+[a-z-]+(?<!s)\s+and\s+$"
)
_EVERY_OTHER = re.compile(
    r"\bevery\s+(?:other|second|third|\w+th)\s+(?:\w+\s+)?(?:layer|block)\s*\([^()]*$"
)
_LIST_WORDS = frozenset(", and / & the number of respectively as well or a its".split())
_LIST_SIGNS = frozenset({",", "and", "/", "&"})
_NEEDS_LINK = frozenset("n_heads n_kv_heads n_layers n_experts n_parameters".split())
_FACTOR = re.compile(r"[·×⋅*/+]\s?$|\d\s?$")  # before a term: it is part of an expression
_ATOM = r"\s?[\w^{}()|]+"
_CHAIN = re.compile(rf"\s?(?:={_ATOM}(?:\s?[·×⋅*/+-]{_ATOM}){{0,3}}\s?){{1,3}}=\s?$")
_CONTINUED = re.compile(  # a number that is part of a longer expression
    r"\s*[·×⋅]\s*[A-Za-z(]|\s*[/^]|\s?[A-Za-z]\w*\s?=\s?\d"
)
_CHOSEN = re.compile(r"\s+(?:out\s+)?of\s+(?:(?:the|its)\s+)?[\d,]+\s+(?:[a-z-]+\s+){0,2}")
_OF = re.compile(r"\bof\s+(?:(?:the|its)\s+)?$")
_WIDTH = re.compile(  # what a feed-forward is a multiple of
    r"\s*(?:[·×⋅*x]\s*|times\s+(?:of\s+)?(?:the\s+|that\s+of\s+the\s+)?)?(?:the\s+)?"
    r"(?:d_\{?model\}?|dmodel|d(?![\w-])|d_h\b|D(?![\w-])|"
    r"(?:model|hidden|embedding)\s+(?:dimension(?:ality)?|size|width))"
)

_NO_DROPOUT = re.compile(  # but not "no dropout at inference"
    r"\b(?:no|without(?:\sany)?|not\s(?:use|apply)(?:\sany)?)\s(?P<dropout>drop-?out)\b"
    r"(?!\s(?:\w+\s){0,3}(?:at|during|for|in)\s(?:inference|test|evaluation|generation))",
    re.IGNORECASE,
)
_MLP_WITH = re.compile(
    r"(?P<layers>layers?[\s-])?(?:mlps?|ffns?|feed-?forward\s(?:networks?|layers?)|perceptrons?)\s"
    r"(?:with|of|has|have|having|uses?)\s(?:an?\s|the\s)?$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Bound:
    """A term with its quantity; `formula` is (factor, field) for "4 times the hidden size"."""

    term: Term
    quantity: Quantity
    cue: str
    strength: float
    formula: tuple[float, str] | None = None


def bind(sentence: str, symbols: dict[str, str]) -> list[Bound]:
    """Return the terms of a sentence with their quantities, in the order of the quantities."""
    numbers = quantities(sentence)[:_MAX_NUMBERS]
    if not numbers and not _NO_DROPOUT.search(sentence):
        return []
    named = with_symbols(sentence, terms(sentence), symbols)
    numbers = [q for q in numbers if not any(_overlap(t, q) for t in named)]
    taken = {bound.quantity: bound for bound in _in_step(sentence, named, numbers)}
    used = {bound.term for bound in taken.values()}
    for quantity in numbers:
        if quantity in taken:
            continue
        bound = _counted(sentence, quantity, named) or _sized(sentence, quantity, named, numbers)
        if bound and bound.term not in used:
            taken[quantity] = bound
            used.add(bound.term)
    bounds = [taken[q] for q in numbers if q in taken]
    bounds += _equated(sentence, named, bounds)
    present = {bound.term.field for bound in bounds}
    none = _NO_DROPOUT.search(sentence)
    if none and "dropout" not in present:
        term = Term("dropout", "size", 0.5, *none.span("dropout"))
        bounds.append(Bound(term, Quantity(0, *none.span()), "none is used", term.strength))
    return bounds + [
        Bound(term, quantity, "in short form", term.strength)
        for term, quantity in compact(sentence)
        if term.field not in present
    ]


def _overlap(term: Term, quantity: Quantity) -> bool:
    return term.start < quantity.end and quantity.start < term.end


def _counted(sentence: str, quantity: Quantity, named: list[Term]) -> Bound | None:
    """Bind "8 attention heads" and "512-dimensional hidden state"."""
    term = next((t for t in named if t.start >= quantity.end), None)
    if term is None or term.role == "size" or term.start - quantity.end > _MAX_GAP:
        return None
    gap = sentence[quantity.end : term.start]
    if term.field in ("n_experts", "n_experts_active"):
        if _CHOSEN.fullmatch(gap):  # "2 of 8 experts"
            chosen = replace(term, field="n_experts_active")
            return Bound(chosen, quantity, "some of the experts", term.strength)
        if _OF.search(sentence[max(quantity.start - 9, 0) : quantity.start]):
            term = replace(term, field="n_experts")  # "top-2 of 8 experts per token"
    words = re.findall(r"[^\W\d_][\w-]*|\d|[^\w\s-]", gap)
    if not _may_stand_between(words, term) or _is_partial(sentence, quantity, term):
        return None
    word = sentence[quantity.start : quantity.end].lower()
    if re.search(r"[A-Za-z]-$", sentence[: quantity.start][-2:]):
        return None  # the 7 of "RWKV-7 blocks"
    no_count = word == "single" or (word == "one" and not gap.startswith("-"))
    if no_count and term.field != "n_kv_heads":
        return None  # "one head may specialise" counts nothing
    strength = term.strength - (0.5 if words else 0)
    return Bound(term, quantity, f"number of “{sentence[term.start : term.end]}”", strength)


def _may_stand_between(words: list[str], term: Term) -> bool:
    """Whether words between a count and its term are adjectives: "12 identical layers"."""
    if len(words) > 4 or any(not word[0].isalpha() for word in words):
        return False
    lower = {word.lower() for word in words}
    parts = {part for word in lower for part in word.split("-")}
    if lower & _NOT_ADJECTIVES or parts & (_NOT_ADJECTIVES - _COMPOUND):
        return False
    return term.field in ("n_layers", "n_experts", "n_parameters") or lower <= _UNITS


def _is_partial(sentence: str, quantity: Quantity, term: Term) -> bool:
    """Whether the count is of some layers or heads, or of another kind of network."""
    if term.field not in _TOTALS:
        return False
    before = sentence[max(quantity.start - 24, 0) : quantity.start]
    after = sentence[term.end : term.end + 40].lstrip()
    listed = _LIST_BEFORE.search(before)
    return bool(
        _NOT_A_TOTAL.search(before)
        or (listed and listed["other"] != str(quantity.value))
        or _EVERY_OTHER.search(sentence[max(quantity.start - 60, 0) : quantity.start])
        or (term.field == "n_parameters" and _OF_A_PIECE.search(sentence[: quantity.start][-60:]))
        or _OTHER_NET.match(after)
        or _OTHER_NET.match(after.partition(" ")[2])
        or after.startswith(("--", "–"))
    )


def _sized(
    sentence: str, quantity: Quantity, named: list[Term], numbers: list[Quantity]
) -> Bound | None:
    """Bind "hidden size of 512", "d_model = 512", "vocabulary of about 37000"."""
    term = next((t for t in reversed(named) if t.end <= quantity.start), None)
    if term is None:
        return None
    between = any(term.end <= q.start < quantity.start for q in numbers)
    factor = term.field == "d_model" and _FACTOR.search(sentence[: term.start][-4:])
    linked = None if between or factor else _linked(sentence[term.end : quantity.start], term)
    if linked is None:
        head = _head_of_chain(sentence, quantity, named)
        if head is None:
            return None
        term, linked = head, True
    words = sentence[term.start : term.end]
    linked = linked or not _LINKS.isdisjoint(re.findall(r"^\w+|\w+$", words))
    linked = linked or sentence[: term.start].endswith("(")  # "(width 768)"
    after = sentence[quantity.end : quantity.end + 60]
    formula = _formula(quantity, after)
    if formula is None and _CONTINUED.match(after):
        return None
    if formula and formula[1] == term.field:
        return None
    if term.field == "n_layers" and _OTHER_NET.match(after.lstrip()):
        return None
    if re.match(r"[\s-]*(?:dimensional|dim|d)\b", after) and term.field in ("n_heads", "n_layers"):
        if term.field == "n_layers":
            return None
        term = replace(term, field="head_dim")  # "heads are 64-dimensional"
    if term.field == "d_model" and (net := _MLP_WITH.search(sentence[: term.start][-40:])):
        if net["layers"]:
            return None  # "a 2-layer MLP with hidden size 1024" is some head
        term = replace(term, field="d_ff", strength=term.strength - 0.5)
    if term.field == "vocab_size" and re.match(r"\s*(?:bpe\s+)?merge", after, re.IGNORECASE):
        return None  # each adds an entry to those that are there before
    return Bound(
        term, quantity, f"“{words}” and its value", term.strength - (not linked) / 2, formula
    )


def _head_of_chain(sentence: str, quantity: Quantity, named: list[Term]) -> Term | None:
    """Return d_k in "d_k = d_v = d_model / h = 64": what a chain of equations ends in."""
    chain = _CHAIN.search(sentence[max(quantity.start - _MAX_GAP, 0) : quantity.start])
    if chain is None:
        return None
    start = quantity.start - len(chain[0])
    return next((t for t in named if t.end == start and t.role != "count"), None)


def _linked(gap: str, term: Term) -> bool | None:
    """Return whether a gap links a term to its value (False: they only stand side by side).

    None when something else stands between them.
    """
    if len(gap) > _MAX_GAP:
        return None
    words = _WORD.findall(_ASIDE.sub(" ", gap))
    others = [word for word in words if word.lower() not in _FILLERS]
    if len(others) > 1 or any(not _SYMBOL.fullmatch(word) for word in others):
        return None
    linked = any(word.lower() in _LINKS for word in words)
    if term.role == "count" and not (words and words[0] in "=:"):
        return None
    if not linked and (
        "," in words or others or (term.role == "both" and term.field in _NEEDS_LINK)
    ):
        return None
    return linked


def _formula(quantity: Quantity, after: str) -> tuple[float, str] | None:
    """Return (factor, "d_model") for "4·d_model", "4 times the hidden size", "8/3 d"."""
    factor = float(quantity.value)
    if ratio := re.match(r"\s*/\s*([1-9][0-9]{0,2})(?![\d.])", after):
        factor /= int(ratio[1])
        after = after[ratio.end() :]
    width = _WIDTH.match(after) if 1 <= factor <= 16 else None
    return (factor, "d_model") if width and not re.match(r"\s*=", after[width.end() :]) else None


def _equated(sentence: str, named: list[Term], bounds: list[Bound]) -> Iterator[Bound]:
    """Bind the first name of "n_heads = n_kv_heads = 12"."""
    used = {bound.term for bound in bounds}
    at = {term.start: i for i, term in enumerate(named)}
    for bound in bounds:
        i = at[bound.term.start]
        if i and named[i - 1] not in used:
            before = named[i - 1]
            if sentence[before.end : bound.term.start].strip() == "=":
                yield Bound(before, bound.quantity, "the same value", bound.strength, bound.formula)


def _in_step(sentence: str, named: list[Term], numbers: list[Quantity]) -> Iterator[Bound]:
    """Bind "layers, hidden size and heads are 12, 768 and 12" one to one."""
    i = 0
    while i < len(named):
        run = [named[i]]
        before = [q for q in numbers if q.end <= run[0].start]
        if before and _counted(sentence, before[-1], run):
            i += 1  # "16 layers, hidden size d = 768" is no list of two names
            continue
        for term in named[i + 1 :]:
            if not _lists(sentence[run[-1].end : term.start]):
                break
            run.append(term)
        values = _values_after(sentence, run[-1].end, numbers)
        if len(run) > 1 and len(values) == len(run) == len({term.field for term in run}):
            for term, quantity in zip(run, values, strict=True):
                yield Bound(term, quantity, "in step with its list", term.strength)
        i += len(run)


def _lists(gap: str) -> bool:
    """Whether two terms with this gap between them stand in one list."""
    words = _WORD.findall(_ASIDE.sub(" ", gap).lower())
    return (
        len(gap) < _MAX_GAP
        and any(word in _LIST_SIGNS for word in words)
        and all(word in _LIST_WORDS or _SYMBOL.fullmatch(word) for word in words)
    )


def _values_after(sentence: str, at: int, numbers: list[Quantity]) -> list[Quantity]:
    """Return the list of quantities that follows a list of terms."""
    following = [q for q in numbers if q.start >= at]
    if not following or following[0].start - at > _MAX_GAP:
        return []
    words = _WORD.findall(_ASIDE.sub(" ", sentence[at : following[0].start]))
    if not all(word.lower() in _FILLERS or _SYMBOL.fullmatch(word) for word in words):
        return []
    run = following[:1]
    for quantity in following[1:]:
        gap = sentence[run[-1].end : quantity.start].lower()
        if " ".join(gap.split()) not in (",", "and", ", and", "/", "&", "-"):
            break
        run.append(quantity)
    return run
