"""One cell of a table: the training setting that it names, or the values that it gives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from paperkiln.papers.architecture import Scalar
from paperkiln.papers.numbers.quantities import Quantity
from paperkiln.papers.training.marks import marked, squeezed
from paperkiln.papers.training.names import first_optimizer, short_schedule
from paperkiln.papers.training.terms import phrases, settle

_OF_TRAINING = (
    r"(?:(?:training|pre-?training|train|optimi[sz]ation|optimi[sz]er|gradient|global|effective|"
    r"eff\.?|total|max(?:imum)?|peak|base|initial|default|number of|num\.?|#|n|linear|lr|"
    r"learning[- ]rate|adamw?'?s?|max\.)[\s_-]+)*"
)
_LABELS: list[tuple[str, str]] = [  # (field, what the whole label says), the first that fits
    ("min_lr", r"(?:min(?:imum|\.)?|final|end(?:ing)?|lowest)[\s_-]*(?:learning[\s_-]?rate|lr)|"
               r"η_?min|lr_min|minimum lr"),
    ("lr", rf"{_OF_TRAINING}(?:learning[\s_-]?rates?|lr|step size)(?:[\s_-]*(?:max|peak|value|η|"
           rf"α))*|η(?:_?max|_?peak)?|max_lr|peak_lr|lr_max"),
    ("schedule", rf"{_OF_TRAINING}(?:(?:learning[\s_-]?rate|"
                 rf"lr)[\s_-]*)?(?:decay[\s_-]*)?(?:schedul(?:e|er|ing)|annealing|"
                 rf"decay)(?:[\s_-]*(?:type|schedule|shape|function))?|lr_scheduler(?:_type)?"),
    ("warmup_part", rf"{_OF_TRAINING}warm-?up[\s_-]*(?:ratio|fraction|proportion|percentage)"),
    ("warmup", rf"{_OF_TRAINING}warm[\s-]?up(?:[\s_-]*(?:steps?|iterations?|iters|updates?|"
               rf"tokens|period|length|duration|schedule))?|num_warmup_steps|warmup_(?:steps|"
               rf"iters)"),
    ("weight_decay", rf"{_OF_TRAINING}weight[\s_-]?decay(?:[\s_-]*(?:λ|coefficient|rate|factor|"
                     rf"value|strength))?|wd"),
    ("clip", r"(?:max(?:imum)?[\s_.-]*)?(?:global[\s_-]*)?grad(?:ient)"
             r"?s?[\s_.-]*(?:norm[\s_-]*)?clip(?:ping)?(?:[\s_-]*(?:norm|value|threshold|"
             r"max norm|by norm|global norm))*|clip(?:ping)?[\s_-]*(?:grad(?:ient)"
             r"?s?(?:[\s_-]*norm)?|norm|value|threshold|global norm)?|"
             r"max(?:imum)?[\s_.-]*grad(?:ient)?[\s_.-]*norm|max_grad_norm|grad_clip"),
    ("betas", rf"{_OF_TRAINING}(?:\(?β_?1\)?\s*(?:,|/|and|&)\s*\(?β_?2\)?|\(β_?1,\s*β_?2\)|"
              rf"betas?|β|β_1,2|optimi[sz]er momentum)|adam(?:w)? (?:\(?β_?1,\s*β_?2\)?|betas?|"
              rf"β)|\{{β_?1,\s*β_?2\}}"),
    ("beta1", rf"{_OF_TRAINING}(?:β|beta)[\s_]?\{{?1\}}?"),
    ("beta2", rf"{_OF_TRAINING}(?:β|beta)[\s_]?\{{?2\}}?"),
    ("eps", rf"{_OF_TRAINING}(?:ε|ϵ|eps(?:ilon)?)"),
    ("optimizer", r"(?:training )?optimi[sz]er(?:s| type| name)?|optim"),
    ("batch_tokens", rf"{_OF_TRAINING}(?:tokens (?:per|/) ?(?:batch|step|update)|batch tokens|"
                     rf"token batch(?: size)?)"),
    ("batch", rf"{_OF_TRAINING}(?:mini-?)?(?:batch(?:[\s_-]?size)?|sequences per batch|"
              rf"batch size(?: in)? (?:tokens|sequences|samples))"),
    ("tokens", r"(?:(?:total|training|train|pre-?training|number of|num\.?|n|#|"
               r"trained)[\s_-]+)*(?:tokens|token budget|tokens seen)(?: trained| used)?"),
    ("steps", rf"{_OF_TRAINING}(?:steps|iterations|updates|iters)|max_(?:steps|iters)|"
              rf"(?:num_)?train(?:ing)?_steps|num_iters"),
    ("duration", r"(?:training )?(?:duration|budget|length|compute budget)"),
]  # fmt: skip
_LABEL = [(name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _LABELS]
_WORDS = re.compile(  # one of these is in every label; looking for them first is faster
    r"rate|lr|η|step|sched|decay|anneal|warm|wd|clip|grad|β|beta|mom|ε|ϵ|eps|optim|batch|token|"
    r"iter|update|duration|budget|length",
    re.I,
)
_PARENTHESES = re.compile(r"\(([^()β]*)\)")
_SYMBOL = re.compile(r"\s(?:[ηλα](?:_\w+)?|lr|wd)$")
_QUALIFIER = re.compile(r"\s*[,:]\s*(?:peak|max|tokens|sequences|steps|global)$")
_SEVERAL = re.compile(r"[{}∈]|sweep|grid|search|tuned", re.I)
_GAP = re.compile(r"[,/;]|--?|–|—|\bor\b|\band\b")
_ARROW = re.compile(r"→|->|⟶|\bto\b|⇒")
_FACTORS = {  # of a label's brackets: "Tokens (B)"
    "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12,
    "millions": 10**6, "billions": 10**9, "trillions": 10**12,
}  # fmt: skip
_OTHER_UNIT = re.compile(r"\s*(?:epochs?|hours|days|k?\s?samples\b)", re.I)
_UNIT = re.compile(r"\s*(?:[a-z-]+\s){0,2}(tokens|steps|iterations|updates)\b", re.I)
_MAX_CELL, _MAX_LABEL = 200, 70  # characters

Reading = tuple[str, Scalar, int, int]  # field, value, and where it stands in the cell


@dataclass(frozen=True, slots=True)
class Label:
    """The field that a cell names, with its unit and the words in its brackets."""

    field: str
    unit: str
    note: str


@lru_cache(maxsize=4096)
def label(string: str) -> Label | None:
    """Return the field that a whole cell names, with the unit and the words in its brackets."""
    string = " ".join(string.replace("\u2009", " ").split())
    if not string or len(string) > _MAX_LABEL or not _WORDS.search(string):
        return None
    aside = " ".join(_PARENTHESES.findall(string))
    plain = " ".join(_PARENTHESES.sub(" ", string).split()).strip(" :*†‡•-")
    plain = _SYMBOL.sub("", plain)
    for text in (plain, _QUALIFIER.sub("", plain)):
        for name, pattern in _LABEL:
            if text and pattern.fullmatch(text):
                return Label(name, f"{aside} {plain}".lower(), aside)
    return None


def read_cell(named: Label, string: str) -> list[Reading]:
    """Return the settings that a cell gives to its label's field, and others that it names."""
    if len(string) > _MAX_CELL:
        return []
    string, origin = squeezed(string)
    read = _READERS.get(named.field, _number)
    return [(f, v, origin(start), origin(end - 1) + 1) for f, v, start, end in read(named, string)]


def _optimizer(named: Label, string: str) -> Iterator[Reading]:
    if name := first_optimizer(string):
        yield name.field, name.value, name.start, name.end
    yield from _phrases(string, "beta1 beta2 eps weight_decay lr")


def _schedule(named: Label, string: str) -> Iterator[Reading]:
    if name := short_schedule(string):
        yield name.field, name.value, name.start, name.end
    yield from _phrases(string, "warmup_steps warmup_part min_lr min_lr_part warmup_tokens")


def _phrases(string: str, fields: str) -> Iterator[Reading]:
    for found in phrases(string):
        if found.field in fields.split():
            yield found.field, found.value, found.start, found.end


def _duration(named: Label, string: str) -> Iterator[Reading]:
    """Read "2T tokens (500K steps)"."""
    for quantity in marked(string)[1].values():
        if unit := _UNIT.match(string, quantity.end):
            name = "tokens" if unit[1].lower() == "tokens" else "steps"
            yield from _settled(settle(name, quantity, string), quantity)


def _betas(named: Label, string: str) -> Iterator[Reading]:
    pair = list(marked(string)[1].values())
    if len(pair) == 2 and all(0 <= q.value < 1 for q in pair):
        for name, quantity in zip(("beta1", "beta2"), pair, strict=True):
            yield name, float(quantity.value), quantity.start, quantity.end


def _number(named: Label, string: str) -> Iterator[Reading]:
    if _SEVERAL.search(string) or "epoch" in named.unit:
        return
    numbers = list(marked(string)[1].values())
    inside = [q for q in numbers if _in_brackets(string, q)]
    outside = [q for q in numbers if q not in inside]
    if not outside:
        return
    first, last = outside[0], outside[-1]
    between = string[first.end : outside[1].start].strip() if len(outside) > 1 else ""
    changes = bool(_ARROW.search(between))
    if between and not changes and _GAP.fullmatch(between):
        return  # several values: a sweep, a range, one for each data set
    quantity = last if changes and named.field == "batch" else first
    quantity = replace(quantity, value=quantity.value * _FACTORS.get(named.note.lower(), 1))
    yield from _settled(_in_unit(named, quantity, string), quantity)
    if named.field == "lr":
        if changes:
            yield from _settled(settle("min_lr", last, string), last)
        if name := short_schedule(string):
            yield name.field, name.value, name.start, name.end
    yield from _beside(named.field, inside, string)


def _in_unit(named: Label, quantity: Quantity, string: str) -> tuple[str, int | float] | None:
    """Return the field and the value of a number, by the units that label and cell give it."""
    field, after = named.field, string[quantity.end : quantity.end + 30].lower()
    if field in ("warmup", "steps", "tokens") and _OTHER_UNIT.match(after):
        return None
    if field == "warmup":
        field = "warmup_part" if quantity.percent else "warmup_steps"
        field = "warmup_tokens" if "token" in named.unit + after else field
    if field == "batch" and re.search(r"\btokens?\b", named.unit):
        field = "batch_tokens"
    return settle(field, quantity, string)


_BESIDE = {  # field of the label -> (unit in the brackets, its field)
    "warmup_part": (re.compile(r"\s*(?:steps|iterations|updates)", re.I), "warmup_steps"),
    "steps": (re.compile(r"\s*tokens", re.I), "tokens"),
    "batch": (re.compile(r"\s*(?:sequences|samples)", re.I), "batch_sequences"),
}


def _beside(field: str, inside: list[Quantity], string: str) -> Iterator[Reading]:
    """Read the steps in "0.02 (200 steps)" and the tokens in "90K (2B tokens)"."""
    unit, name = _BESIDE.get(field, (None, ""))
    for quantity in inside if unit else ():
        if unit.match(string, quantity.end):  # type: ignore[union-attr]
            yield from _settled(settle(name, quantity, string), quantity)


def _settled(settled: tuple[str, int | float] | None, quantity: Quantity) -> Iterator[Reading]:
    if settled:
        yield (*settled, quantity.start, quantity.end)


def _in_brackets(string: str, quantity: Quantity) -> bool:
    at = quantity.start
    return at > 1 and string.count("(", 0, at) > string.count(")", 0, at)


_READERS = {
    "optimizer": _optimizer, "schedule": _schedule, "duration": _duration, "betas": _betas,
}  # fmt: skip
