"""What a sentence states of a training: settings that are a choice, not a sweep or a mention."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from paperkiln.papers.training.marks import NUMBER, marked
from paperkiln.papers.training.names import Name, first_optimizer, optimizers, schedules
from paperkiln.papers.training.terms import Found, phrases

_MOST = 24  # settings of one sentence; what has more is no sentence

_SWEPT = re.compile(
    r"\b(?:sweep\w*|swept|grid|search(?:ed|ing)?|(?<!fine-)(?<!fine )tun(?:e|ed|ing)|"
    r"var(?:y|ied|ying)|explor\w+|different|candidates?|rang(?:e|es|ing)|multiple|various|several|"
    r"tried|trying|test(?:ed)? with|between)\b[^.;]{0,90}$",
    re.I,
)
_CHOSEN = re.compile(
    r"\b(?:choose|chose|chosen|selected?|picked|settled? on|use[sd]?|best|optimal|final(?:ly)?|"
    r"adopt(?:ed)?)\b[^.;]{0,60}$",
    re.I,
)
_LIST_AFTER = re.compile(
    rf"\s?(?:--?|–|—|to\b|/)\s?{NUMBER}"
    rf"|\s?(?:,|or\b|and\b)\s?(?:and\s|or\s)?{NUMBER}\s?(?:[,;.)}}]|and\b|or\b|for\b|resp|$)"
)
_LIST_BEFORE = re.compile(r"\d[\s\w]{0,3}\s(?:,|and|or)\s$")
_IN_TURN = re.compile(r"\brespectively\b|\bfor\b", re.I)
_NOT_PEAK = re.compile(
    r"(?:reduced|lower|smaller|higher|larger|decayed|current|new|inner|meta)\s+$", re.I
)
_LOWEST = re.compile(r"(?:min(?:imum|imal)?|final|end(?:ing)?|lowest)[\s_-]*$", re.I)
_OF_RATE = re.compile(  # the last thing spoken of is the learning rate
    r"\blearning[\s-]rates?\b"
    r"(?![^.;]*\b(?:decay|dropout|batch|temperature|coefficient|weight|margin)\b)",
    re.I,
)
_RATE = re.compile(r"learning|\blr\b|warm|cosine|anneal|η|peak", re.I)
_OPTIMIZED = re.compile(r"learning|optimi[sz]er|Adam|\blr\b|SGD", re.I)
_OF_ADAM = re.compile(r"β|\bbeta|\bAdam|\beps\b|optimi[sz]er", re.I)
_NOT_WHOLE = re.compile(
    r"(?:micro|per[\s-](?:device|gpu|worker|core)|device|local|gpu|node|physical|test|eval\w*|"
    r"inference|validation|small|large|larger|smaller)[\s-]*$",
    re.I,
)
_NOT_TOTAL = re.compile(
    r"\b(?:first|last|final|every|after|until|within|additional|further|next|extra|another|per|"
    r"than|at|step|each|once|before)\s+(?:about\s+|approximately\s+|the\s+)?$",
    re.I,
)
_RECURRING = re.compile(
    r"\s*(?:steps|iterations|updates|tokens)?\s*"
    r"(?:each\b|per\s|/|of\swarm|for\swarm|warm|between|apart)",
    re.I,
)
_NOT_TRAINED_ON = re.compile(  # a tokenizer, a filter, the model that this one starts from
    r"\b(?:tokeni[sz]er|classifier|bpe)\b[^.;]{0,60}$"
    r"|\b(?:checkpoint|initiali[sz]ed|starting point)\b",
    re.I,
)
_OF_LENGTH = re.compile(
    r"warm|\bmax(?:imum)?\s(?:sequence|length)|sequences? of|context|per\s", re.I
)
_AT_HAND = re.compile(r"(?:pre-?)?training\s(?:corpus|data\w*|set|mixture)", re.I)
_MILESTONE = re.compile(r"\b(?:until|once|after|when)\b[^.;]{0,30}$", re.I)
_LABEL = re.compile(r"\W*(?:\w+\s)?optimi[sz]er\w*\W{1,4}(?=\S)", re.I)


def statements(sentence: str) -> list[Found | Name]:
    """Return the settings that a sentence states as chosen, in order."""
    numbers = [kept for found in phrases(sentence)[:_MOST] if (kept := _meant(found, sentence))]
    about_rate = any(f.field.startswith(("lr", "min_lr", "warmup")) for f in numbers)
    names: list[Found | Name] = [
        *optimizers(sentence, len(numbers)),
        *schedules(sentence, about_rate),
    ]
    if not any(name.field == "optimizer" for name in names):
        names += _labelled(sentence)
    return sorted([*numbers, *names], key=lambda f: f.start)[:_MOST]


def _labelled(sentence: str) -> list[Name]:
    """Read "Optimizer: adamw", in any spelling."""
    label = _LABEL.match(sentence)
    name = first_optimizer(sentence[label.end() : label.end() + 40]) if label else None
    if not label or not name or name.start > 8:
        return []
    return [replace(name, start=label.end() + name.start, end=label.end() + name.end)]


def _meant(found: Found, sentence: str) -> Found | None:
    """Return what a phrase means in its sentence, None when it states no choice."""
    if _listed(found, sentence) or _swept(found, sentence):
        return None
    return _MEANINGS.get(found.field, lambda found, sentence: found)(found, sentence)


def _listed(found: Found, sentence: str) -> bool:
    """Whether the number is one of a list or a range, and nothing says which is whose."""
    if found.at == found.start and _LIST_BEFORE.search(sentence[max(found.at - 12, 0) : found.at]):
        return True  # "1,000 and 8,000 tokens per step"
    if found.field in ("beta1", "beta2", "min_lr"):
        return False
    if found.field == "lr" and re.search(r"\bfrom\s", sentence[found.start : found.at]):
        return False  # "annealing from 3e-4 to 3e-5"
    if not _LIST_AFTER.match(marked(sentence[found.until : found.until + 40])[0]):
        return False
    return not _IN_TURN.search(sentence[found.until : found.until + 120])


def _swept(found: Found, sentence: str) -> bool:
    """Whether the number is one that was tried, and not the one that was chosen."""
    if not _SWEPT.search(sentence[max(found.start - 140, 0) : found.start]):
        return False
    return not _CHOSEN.search(sentence[max(found.start - 60, 0) : found.at])


def _rate(found: Found, sentence: str) -> Found | None:
    before, said = sentence[: found.start], sentence[found.start : found.at]
    if found.value == 0 or _NOT_PEAK.search(before[-40:]):
        return None
    if _LOWEST.search(before[-40:]):
        return replace(found, field="min_lr")
    if found.strength == 0.5 and (found.value > 0.1 or not _OF_RATE.search(before[-300:])):
        return None  # the best of something else
    if not _OPTIMIZED.search(sentence) and not re.search(r"\blr|warm", said, re.I):
        return None
    return found


def _lowest(found: Found, sentence: str) -> Found | None:
    return found if _RATE.search(sentence) else None


def _epsilon(found: Found, sentence: str) -> Found | None:
    return found if _OF_ADAM.search(sentence) else None


def _batch(found: Found, sentence: str) -> Found | None:
    return None if _NOT_WHOLE.search(sentence[max(found.start - 40, 0) : found.start]) else found


def _decay(found: Found, sentence: str) -> Found | None:
    return None if found.value == 0 and found.at == found.start else found  # "λ ≥ 0 weight decay"


def _total(found: Found, sentence: str) -> Found | None:
    """Keep the steps or tokens of a whole training, not a milestone, a part or a corpus."""
    before, said = sentence[: found.start], sentence[found.start : found.at]
    if found.strength == 0.5 and not _OPTIMIZED.search(sentence):
        return None  # "for 100 steps" alone is of something else
    if _AT_HAND.match(said) or (said.startswith("consum") and _MILESTONE.search(before[-60:])):
        return None
    if _NOT_TOTAL.search(sentence[max(found.at - 40, 0) : found.at]):
        return None
    if _RECURRING.match(sentence[found.until : found.until + 40]) or _OF_LENGTH.search(said):
        return None
    return None if _NOT_TRAINED_ON.search(sentence[max(found.at - 300, 0) : found.at]) else found


_MEANINGS: dict[str, Callable[[Found, str], Found | None]] = {
    "lr": _rate, "min_lr": _lowest, "min_lr_part": _lowest, "eps": _epsilon, "steps": _total,
    "tokens": _total, "batch_sequences": _batch, "batch_tokens": _batch, "weight_decay": _decay,
}  # fmt: skip
