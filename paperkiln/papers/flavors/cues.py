"""Whether a sentence says that the paper's model uses a value, or only names it.

Every cue is one habit of how papers are written, with a weight and a phrase that tells it.
Cues are read in the clause that holds the value, so that "we use RMSNorm, whereas the original
Transformer uses LayerNorm" says one thing of each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from paperkiln.papers.architecture import Scalar
from paperkiln.papers.document import Block, Section, Text
from paperkiln.papers.evidence import sentence_at
from paperkiln.papers.flavors.clauses import (
    MODEL,
    MODEL_WITH,
    OTHERS,
    OWN,
    OWN_SUBJECT,
    REPLACED,
    TARGET,
    TRIED,
    VERB,
    WITH,
    Clause,
    clause_of,
    rejection,
    speaks_of_others,
)  # fmt: skip
from paperkiln.papers.flavors.lexicon import POLAR, Hit
from paperkiln.papers.scope import Scope

# What a section usually holds: a value named where the model is described is most often its own.
SECTIONS = {
    "method": 1.5, "training": 1.0, "abstract": 1.0, "introduction": 0.25, "experiments": 0.25,
    "other": 0.5, "": 0.5, "conclusion": 0.0, "ablation": -1.0, "related": -3.0, "future": -4.0,
}  # fmt: skip
_STAYS = frozenset({"related", "ablation", "future"})  # whatever its subsections are called
_VARIED = frozenset({"experiments", "ablation"})  # where a replacement is a trial, not a choice


@dataclass(frozen=True)
class Statement:
    """One place where a paper names a value of a field, and what it says of it there."""

    value: Scalar
    text: Text
    start: int
    end: int
    section: Section
    score: float
    cues: tuple[str, ...] = ()
    veto: str = ""
    """How the paper rejects the value here."""
    part: str = ""
    """The component, teacher or baseline that it is said of; "" for the model itself."""
    used: bool = False
    """Whether a cue of use speaks for it, not only the place."""


@dataclass
class _Weights:
    """Cues collected so far."""

    score: float = 0.0
    words: list[str] = field(default_factory=list)
    veto: str = ""
    used: bool = False

    def add(self, weight: float, words: str, use: bool = False) -> None:
        if weight:
            self.score += weight
            self.words.append(f"{weight:+g} {words}")
        self.used |= use

    def reject(self, words: str) -> None:
        self.add(-4, words)
        self.veto = words


# --- the cues -------------------------------------------------------------------------------

_PASSIVE = re.compile(
    r"^(?:\W{0,2}\s?\([^()]{0,60}\))?(?:\W{1,2}[\w-]++){0,5}?\s(?:is|are|was|were)\s"
    r"(?:also\s|then\s|all\s|[a-z]+ly\s)?(?:used|applied|adopted|employed|added|placed|inserted|"
    r"chosen|incorporated|utili[sz]ed|implemented|performed|introduced)\b",
    re.IGNORECASE,
)
_PREFERRED = re.compile(
    r"^[^.;:]{0,50}?\b(?:instead\sof|rather\sthan|in\splace\sof|replaces|over\sthe)\b", re.I
)
_EXAMPLE = re.compile(
    r"\b(?:such\sas|e\.g\.,?|for\s(?:example|instance),?)\s[^;:]{0,90}$|\blike\s(?:\w+\s)?$",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    r"\b(?:compar(?:ed|ing|isons?|able)\s(?:\w+\s)?(?:to|with|against|between|of)|versus|vs\.?|"
    r"relative\sto|than|outperform\w*|improv\w+\s(?:over|upon|on)|between|similar\sto|over\sthe)\s"
    r"(?:(?!\buses?\b|\bin\sthat\b)[^;:]){0,70}$",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"\b(?:could|might|may|can|would|either|optional(?:ly)?|possibly|in\ssome|in\sprinciple|"
    r"not\sonly|choices?|configurable|whether|if)\b",
    re.IGNORECASE,
)
_USUAL = re.compile(
    r"\b(?:commonly|widely|typically|traditionally|conventionally|usually|popular|prior|previous|"
    r"existing|vanilla|reference|traditional|conventional|classic(?:al)?|recent(?:ly)?|has\sbeen|"
    r"have\sbeen|was\s(?:first\s)?"
    r"(?:proposed|introduced)|variants?|literature|designed\sfor|known\sas|equivalent\sto|mirrors?|"
    r"resembl\w+|reminiscent|analog\w+|generali[sz]\w+)\b",
    re.IGNORECASE,
)
_COMMON = re.compile(
    r"\b(?:common(?:ly)?|widely|typical(?:ly)?|popular(?:ly)?|often)[\s-](?:used|adopted|"
    r"employed)?\s?"
    r"(?:\w+\s){0,3}?(?:functions?|choices?|methods?|variants?|schemes?|options?|"
    r"techniques?)\b[^.;]{0,40}$",
    re.IGNORECASE,
)
_CREDIT = re.compile(
    r"\b(?:proposed|introduced|suggested|popularized)\s(?:by|in)\b|\bas\sin\b|\bused\s(?:by|in)\b",
    re.IGNORECASE,
)
_SETTING = re.compile(r"\b(?:initiali[sz]\w*|epsilon|eps|weight\sdecay|precision)\b", re.I)
_HEADS = re.compile(
    r"\b(?:\w+\s)?(?:classification|regression|prediction|policy|reward|scoring|decision|"
    r"segmentation|detection)[\s-](?:heads?|mlps?|networks?)\b",
    re.IGNORECASE,
)
_LANGUAGE = re.compile(r"language[\s-]+model|\bllms?\b", re.IGNORECASE)


def weigh(name: str, block: Block, hit: Hit, hits: list[Hit], scope: Scope) -> Statement:
    """Return what the block says of the value spelled at `hit`; `hits` are all of the field's."""
    clause = clause_of(block.text, hit, hits)
    weights = _Weights()
    weights.add(*_place(block, clause))
    rejected = rejection(clause, polar=hit.value in POLAR.get(name, ()))
    other = speaks_of_others(clause, scope)
    part = _part(block, clause, hit, scope)
    trial = section_kind(block.section) in _VARIED and bool(
        REPLACED.search(clause.before) or "instead" in rejected
    )
    if rejected and trial:
        weights.add(-1, "varied in an experiment")
    elif rejected and other:
        weights.add(-3, f"{other} does without it")
    elif rejected:
        weights.reject(rejected)
    elif other:
        weights.add(-4, f"said of {other}")
    else:
        _add_use(weights, name, block, hit, clause, scope, trial)
        _add_mention(weights, block, hit, clause)
    if part:
        weights.add(-3, f"said of the {part}")
    return Statement(
        hit.value, block.text, hit.start, hit.end, block.section, weights.score,
        tuple(weights.words), weights.veto, part, weights.used and not part,
    )  # fmt: skip


def section_kind(section: Section) -> str:
    """Return what a section holds; within related work or an ablation it stays that."""
    kinds = [s.kind for s in section.ancestors()]
    return next((k for k in kinds if k in _STAYS), kinds[0])


def _place(block: Block, clause: Clause) -> tuple[float, str]:
    """Return the weight of the section."""
    kind = section_kind(block.section)
    if kind == "related" and OWN_SUBJECT.search(clause.before) and VERB.search(clause.before):
        return -1.0, "in related work, of the paper itself"
    return SECTIONS.get(kind, 0.5), f"in a section of {kind or 'no'} kind"


_KEY_VALUE = re.compile(r"key[\s/-]*(?:and\s)?values?", re.IGNORECASE)
_BRACKETED = re.compile(rf"\b{MODEL}\s?\([^()]{{0,120}}$", re.IGNORECASE)
_LAYER = re.compile(r"\(\s?(?:x|h|\w{0,3}\s?W)")  # of a linear map
_FEED_FORWARD = re.compile(
    r"feed-?\s?forward|\bffn|\bmlps?\b|hidden\slayer|inner\slayer|gemm|expert|activation|"
    r"channel[\s-]mix|_(?:gate|up|1)\b",
    re.IGNORECASE,
)


def _head_in(phrase: str) -> str:
    match = _HEADS.search(phrase)
    return match[0].lower() if match else ""


def _head_section(section: Section) -> str:
    return next((h for s in section.ancestors() if (h := _head_in(s.title.string))), "")


def _part(block: Block, clause: Clause, hit: Hit, scope: Scope) -> str:
    """Return the component that the value is said of, by section, subject or what follows."""
    found = _head_section(block.section) or scope.section(block.section)
    if found and found != "baseline":  # "Baselines" are others'; one's own starts at "Baseline"
        return found
    subject = _KEY_VALUE.sub("kv", clause.before[-160:])  # whose heads are no value heads
    if found := scope.part(subject) or _head_in(subject):
        return found
    attached = re.match(
        r"(?:\W{1,2}[\w-]++){0,2}?\s(?:for|in|of|as|inside|within)\s((?:[\w-]+\s?){1,5})",
        clause.after,
    )
    if attached and (found := scope.part(attached[1])):
        return found
    low, _ = sentence_at(block.text, hit.start)
    if low > 0 and re.match(r"\s*(?:It|Its|They|This|These)\b", block.text.string[low : low + 12]):
        before, _ = sentence_at(block.text, low - 1)
        return scope.part(block.text.string[before : before + 80])
    return ""


def _add_use(
    weights: _Weights, name: str, block: Block, hit: Hit, clause: Clause, scope: Scope, trial: bool
) -> None:
    """Add what says that the model has the value."""
    before, after = clause.before, clause.after
    verb = VERB.search(before)
    target = TARGET.search(before)
    if target and trial:
        weights.add(-1, "put in for an experiment")
    elif TRIED.search(before):
        weights.add(-2.5, "tried or compared")
    elif verb and (OWN.search(before) or scope.names_own(before)):
        weights.add(3, "the paper's model or authors use it", use=True)
    elif _PASSIVE.match(after):
        weights.add(2.5, "it is used", use=True)
    elif MODEL_WITH.search(before) or (_BRACKETED.search(before) and not _USUAL.search(before)):
        weights.add(2, "a model with it", use=True)
    elif verb:
        weights.add(2, f"'{verb[0].lower()}'", use=True)
    elif WITH.search(before):
        weights.add(1.5, "with it", use=True)
    if target and not trial:
        weights.add(2, "put in place of another", use=True)
    elif _PREFERRED.match(after):
        weights.add(1, "preferred to another", use=True)
    if re.search(r"\bour\s(?:[\w-]+\s)?$", before):
        weights.add(1.5, "'our'", use=True)
    if name in ("norm", "activation", "positional") and re.match(r"_?\w{0,3}[({\[]\s?\w", after):
        about = f"{before} {block.section.title.string}"
        if name != "activation" or _LAYER.match(after) or _FEED_FORWARD.search(about):
            weights.add(1, "applied in a formula", use=True)
        else:
            weights.add(-0.5, "in a formula that is not said to be of the feed-forward")
    if name == "bias" and re.search(r"\([^()]*$", before):
        weights.add(-1.5, "of one layer, in parentheses")
    if block.kind == "figure":
        weights.add(1.5, "in a figure of the architecture", use=True)
    elif block.kind == "item" and len(block.text.string) < 160 and not OTHERS.search(before):
        weights.add(1, "an item of a list", use=True)
    elif block.kind != "heading" and hit.start < 30 and re.match(r"[^.:]{0,40}[.:]", after):
        weights.add(1, "what the paragraph is about")
    if _LANGUAGE.search(block.section.path):
        weights.add(2, "of the language model")


def _add_mention(weights: _Weights, block: Block, hit: Hit, clause: Clause) -> None:
    """Add what says that the value is only named."""
    before, whole = clause.before, clause.whole
    own = weights.used and bool(OWN_SUBJECT.search(before))
    if _EXAMPLE.search(before):
        weights.add(-0.5 if own else -3, "an example")
    if _COMPARED.search(before):
        weights.add(-3, "what something is compared with")
    if _HEDGED.search(whole):
        weights.add(-1.5, "possible, not done")
    if _USUAL.search(whole):
        weights.add(-0.5 if own else -2, "general or earlier practice")
    if _COMMON.search(before):
        weights.add(-3, "what is commonly used")
    if not weights.used and _CREDIT.search(clause.after):
        weights.add(-1, "credited to others")
    if _SETTING.search(clause.sentence):
        weights.add(0 if own else 0.25, "a setting of it is given")
    if clause.explains:
        weights.add(-1.5, "explains another that the paragraph is about")
    if clause.listed:
        weights.add(-1.5, "one of several")
    low, high = hit.start - len(before), hit.end + len(clause.after)
    cited = sum(low <= at <= high for at, _ in block.text.citations)
    if cited >= 2 and not weights.used:
        weights.add(-1.5, "among citations")
    if block.kind in ("caption", "footnote"):
        weights.add(-0.5, f"in a {block.kind}")
    elif block.kind == "heading":
        weights.add(-0.5, "a heading")
