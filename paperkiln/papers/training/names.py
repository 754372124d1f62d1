"""The optimizers and learning-rate schedules that papers name, and when a name is a choice."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPTIMIZERS: dict[str, str] = {  # specific spellings first
    "adamw": r"AdamW|Adam-W|adamw|decoupled\sAdam|Adam\s(?:optimi[sz]er\s)?(?:\([^()]{0,30}\)\s)?"
    r"with\s(?:a\s|the\s)?decoupled\sweight[\s-]decay",
    "adafactor": r"Ada[Ff]actor|adafactor",
    "adagrad": r"Ada[Gg]rad",
    "adadelta": r"Ada[Dd]elta",
    "radam": r"RAdam|RectifiedAdam",
    "nadam": r"N[Aa]dam|NAdamW",
    "adamax": r"Ada[Mm]ax",
    "ademamix": r"AdEMAMix",
    "adam-mini": r"Adam-mini",
    "rmsprop": r"RMS[Pp]rop",
    "adam": r"Adam|ADAM|adam(?=\soptimi)",
    "sgd": r"SGD|[Ss]tochastic\s[Gg]radient\s[Dd]escent",
    "muon": r"Muon(?:Clip)?|MUON|muon(?=\soptimi)",
    "lamb": r"LAMB",
    "lars": r"LARS",
    "lion": r"Lion|LION",
    "sophia": r"Sophia(?:-[GH])?",
    "shampoo": r"Shampoo",
    "soap": r"SOAP",
}
_WORDS_TOO = ("lion", "sophia", "soap", "lars", "lamb")  # a choice only beside "optimizer"
_NAMES = list(_OPTIMIZERS)
_OPTIMIZER = re.compile(
    "|".join(
        rf"(?P<o{i}>(?<![\w-])(?:{pattern})(?!\w|-\w))"
        for i, pattern in enumerate(_OPTIMIZERS.values())
    )
)
_ANY_CASE = re.compile(
    r"\b(adamw|adam|sgd|muon|adafactor|lion|lamb|rmsprop|sophia)(?:_?w)?\b", re.I
)
_USED = re.compile(
    r"\b(?:use[sd]?|using|employ\w*|adopt\w*|combin\w+|utili[sz]\w*|with|via|by|choose|chose|chosen|"
    r"apply|applied|optimi[sz]er(?:\s(?:is|was))?|optimi[sz]er\s?[:=])\s?[\s:=]?"
    r"(?:(?:the|an|a|standard|default|fused|paged|8-bit|optimi[sz]er|adaptive|gradient|algorithm|"
    r"method|stochastic|popular|vanilla|our|same|both|mini-batch|well-known|commonly|used)\s){0,5}$",
    re.I,
)
_OPENS = re.compile(r"(?:^|[:;,(])\s*(?:and\s|an?\s|the\s)?$")
_DECOUPLED = re.compile(
    r"\bdecoupl\w+\s(?:[\w-]+\s){0,6}?(?:weight[\s-]decay|regulari[sz]ation)|"
    r"\bweight[\s-]decay\s(?:is\s)?decoupled",
    re.I,
)

_DECAY = r"(?:decay\w*|anneal\w*|decreas\w*|cool-?down)"
_PLAN = rf"(?:{_DECAY}|schedul\w*|curve|strategy)"
_LR = r"(?:learning[\s-]rate|lr)"
_BETWEEN = (
    rf"[\s-]*(?:(?:{_LR}|rate|half-?cycle|cycle|warm-?up|warm[\s-]restarts?|and|with|"
    rf"linear)[\s-]){{0,3}}"
)
_SCHEDULES: dict[str, str] = {
    "wsd": r"\bwsd\b|warm-?up[\s,/-]+stable[\s,/-]+(?:and[\s-])?(?:decay|cool-?down)|"
    rf"\btrapezoid(?:al)?[\s-]+{_BETWEEN}{_PLAN}",
    "inverse_sqrt": r"inverse[\s_-]+(?:square[\s-]+root|sqrt)|reciprocal\ssquare\sroot|\brsqrt\b|"
    r"\bnoam\b",
    "step": r"\b(?:multi-?)?step(?:wise)?[\s-]+(?:(?:learning[\s-]rate|lr)[\s-]+)?decay|"
    r"multi-?step\s(?:learning\srate\s)?schedul\w+|multisteplr",
    "polynomial": rf"\bpolynomial{_BETWEEN}{_PLAN}",
    "exponential": rf"\bexponential(?:ly)?{_BETWEEN}{_DECAY}",
    "cosine": rf"\bcosine{_BETWEEN}{_PLAN}|\bcosine\s(?:down\s)?to\b|\bcosineannealing\w*|"
    rf"\bcosine\s{_LR}|\bcosine\swarm\srestarts?|{_DECAY}\s(?:\w+\s){{0,5}}"
    r"(?:following|with|using|via|by|as|under)\sa\s(?:half-?)?cosine",
    "linear": rf"\blinear(?:ly)?[\s-]+(?:(?:{_LR}|rate)[\s-]+)?{_DECAY}|"
    rf"\blinear[\s-]+(?:{_LR}[\s-]+)?schedul\w*|{_DECAY}\s(?:\w+\s){{0,5}}linearly|"
    rf"\blinear(?:ly)?\swarm-?up\sand\s{_DECAY}",
    "constant": rf"\b(?:constant|fixed)[\s-]+{_LR}|\bconstant\s(?:{_LR}\s)?schedul\w*|"
    rf"{_LR}[^.;]{{0,40}}\b(?:kept|held|remains?|stays?|then)\s(?:\w+\s)?(?:constant|fixed)|"
    rf"(?:then|stays?|followed\sby\sa?)\s(?:a\s)?constant\b(?!\s\w)|\bno\s{_LR}\sdecay",
}
_PLANS = list(_SCHEDULES)
_SCHEDULE = re.compile(
    "|".join(f"(?P<s{i}>{pattern})" for i, pattern in enumerate(_SCHEDULES.values())), re.I
)
_FACTOR = re.compile(
    rf"\b{_LR}\b[^;]{{0,60}}\b(?:multiplied|divided|reduced|decayed|dropped|"
    rf"scaled)\s(?:\w+\s){{0,3}}?by\s(?:a\sfactor\sof\s)?[\d.]+\s(?:at|after|every|when)\b",
    re.I,
)
_RATE = re.compile(
    rf"\b{_LR}s?\b|\blrs?\b|\bη\b|warm[\s-]?(?:up|restart)|optimi[sz]er|\bAdamW?\b|\bSGD\b|"
    rf"\bMuon\b|step[\s-]size",
    re.I,
)
# Cosine schedules of other things: masking, EMA decay, noise, temperature.
_OTHER_CURVE = re.compile(
    r"mask\w*|\bema\b|noise|teacher|temperature|momentum|exploration|diffusion|τ|dropout|"
    r"sparsity|threshold|loss\sweight|weight\sdecay\sschedule",
    re.I,
)
_SHORT = {
    "cosine": "cosine", "linear": "linear", "constant": "constant", "wsd": "wsd",
    "trapezoidal": "wsd", "step": "step", "warmup-then-stable": "constant", "noam": "inverse_sqrt",
    "polynomial": "polynomial", "exponential": "exponential", "inverse": "inverse_sqrt",
}  # fmt: skip
_SHORT_NAME = re.compile(r"\b(?:" + "|".join(_SHORT) + r")\b(?!\s*(?:warm|similarity))", re.I)


@dataclass(frozen=True, slots=True)
class Name:
    """An optimizer or a schedule named at string[start:end]."""

    field: str
    value: str
    start: int
    end: int
    strength: float


def optimizers(sentence: str, settings: int) -> list[Name]:
    """Return the optimizers that a sentence uses; `settings` is how many numbers it sets.

    A name alone is a mention. It is a choice after "use" or "with", before its betas, or among
    other settings in a list.
    """
    found = []
    for match in _OPTIMIZER.finditer(sentence):
        value = _NAMES[int(match.lastgroup[1:])]  # type: ignore[index]
        before = sentence[max(match.start() - 90, 0) : match.start()]
        after = sentence[match.end() : match.end() + 200]
        strength = _choice(value, before, after, settings)
        if strength is None:
            continue
        if value == "adam" and _DECOUPLED.search(after):
            value = "adamw"
        found.append(Name("optimizer", value, *match.span(), strength))
    return found


_CALLED = re.compile(r"\s*(?:\([^()]{0,60}\)\s?)?optimi[sz]er", re.I)
_SETS = re.compile(  # its own settings follow
    r"(?:\s*optimi[sz]er)?\s*(?:with|\()?[^.;]{0,40}?"
    r"(?:β|\bbetas?\b|\bb1\b|\blr\b|learning[\s-]rate|η)"
)
_SUBJECT = re.compile(r"^\s*$|(?:is|are|was|were)\s(?:optimi[sz]ed|trained)", re.I)


def _choice(value: str, before: str, after: str, settings: int) -> float | None:
    called = bool(_CALLED.match(after))
    labelled = bool(re.search(r"optimi[sz]er[\s:=]*$", before, re.I))
    if value in _WORDS_TOO and not (called or labelled):
        return None
    listed = settings >= 2 and (called or _OPENS.search(before))
    if _USED.search(before) or _SETS.match(after) or listed:
        return 1.0
    return 0.5 if called and _SUBJECT.search(before) else None


def first_optimizer(cell: str) -> Name | None:
    """Return the optimizer named first in a table cell or after a label, in any spelling."""
    if match := _OPTIMIZER.search(cell):
        value = _NAMES[int(match.lastgroup[1:])]  # type: ignore[index]
        return Name("optimizer", value, *match.span(), 1.0)
    if match := _ANY_CASE.search(cell):
        return Name("optimizer", match[1].lower(), *match.span(), 1.0)
    return None


def schedules(sentence: str, of_rate: bool = False) -> list[Name]:
    """Return the learning-rate schedules that a sentence names, in order.

    `of_rate`: the context says that the sentence is about the learning rate.
    """
    if not (of_rate or _RATE.search(sentence)):
        return []
    found = []
    for match in _SCHEDULE.finditer(sentence):
        before = sentence[max(match.start() - 60, 0) : match.start()]
        other = list(_OTHER_CURVE.finditer(before))
        rate = list(_RATE.finditer(before))
        if other and not (rate and rate[-1].start() > other[-1].start()):
            continue
        value = _PLANS[int(match.lastgroup[1:])]  # type: ignore[index]
        found.append(Name("schedule", value, *match.span(), 1.0))
    if not found and (match := _FACTOR.search(sentence)):
        found.append(Name("schedule", "step", *match.span(), 0.75))
    return _then_decays(found)


def _then_decays(found: list[Name]) -> list[Name]:
    """Read a constant rate that then decays, in one sentence, as warm-up, stable, decay."""
    values = [name.value for name in found]
    if "constant" in values and len(set(values)) > 1:
        if values[0] == "constant" and set(values[1:]) & {"cosine", "linear", "exponential"}:
            return [Name("schedule", "wsd", found[0].start, found[-1].end, 0.75)]
        return [name for name in found if name.value != "constant"]
    return found


def short_schedule(cell: str) -> Name | None:
    """Return the schedule that a table cell names, where the label has said that it is one."""
    if found := schedules(cell, of_rate=True):
        return found[0]
    if match := _SHORT_NAME.search(cell):
        return Name("schedule", _SHORT[match[0].lower()], *match.span(), 1.0)
    return None
