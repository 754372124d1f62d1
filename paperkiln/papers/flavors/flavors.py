"""Which flavour of each part a paper's own model has, weighed over everything the paper says.

A paper names more flavours than it uses: it credits, compares, tries and rejects. Each naming is
weighed where it stands; a value counts by its best statement and how often it is repeated. What
the paper rejects is not asserted unless the paper says elsewhere, as strongly, that it uses it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace

from paperkiln.papers.architecture import FLAVORS, Evidence, Mention, Scalar, Value, Verdict
from paperkiln.papers.document import Block, Document
from paperkiln.papers.evidence import evidence
from paperkiln.papers.flavors.configuration import statements_in
from paperkiln.papers.flavors.cues import Statement, weigh
from paperkiln.papers.flavors.lexicon import GATE_OF, find
from paperkiln.papers.scope import Scope

WIN = 1.5  # the score from which a value may be asserted
MARGIN = 1.5  # by which it must lead the next
STRONG = 3.5  # of a statement that stands although the paper rejects the value elsewhere
MAX_STATEMENTS = 800  # of one field; no paper has as many
_QUOTES = 3  # of one value
# The value that is also said of any model, and how it is spelled when it is meant.
_GENERAL = {
    "attention": (
        "exact",
        re.compile(r"\0(?:full|dense|global|exact|quadratic|vanilla|standard)", re.IGNORECASE),
    ),
    "activation": ("glu", re.compile(r"(?!)")),  # some gate, wherever it stands
    "norm": ("layernorm", re.compile(r"^(?!.*(?:pre|post)[\s-]?\0)", re.IGNORECASE | re.DOTALL)),
}


@dataclass
class FlavorReading:
    """What a paper says of one flavour field."""

    value: Value | None = None
    reason: str = ""
    """Why `value` is None, in words."""
    mentions: list[Mention] = field(default_factory=list)
    """Every value that the paper names, best first."""


@dataclass(frozen=True)
class _Candidate:
    """A value with all that the paper says of it, best statement first."""

    value: Scalar
    statements: tuple[Statement, ...]
    score: float
    veto: str

    @property
    def best(self) -> Statement:
        return self.statements[0]

    @property
    def standing(self) -> bool:
        """Whether it may be asserted."""
        return self.score >= WIN and not self.veto and not self.best.part


def read_flavors(document: Document, scope: Scope) -> dict[str, FlavorReading]:
    """Return what the paper says of every flavour field."""
    found: dict[str, list[Statement]] = defaultdict(list)
    for block in document.blocks:
        open_fields = tuple(name for name in FLAVORS if len(found[name]) < MAX_STATEMENTS)
        if isinstance(block, Block):
            for name in open_fields:
                hits = find(name, block.text.string)
                found[name] += [weigh(name, block, hit, hits, scope) for hit in hits]
        else:
            for name, statement in statements_in(block, scope, open_fields):
                found[name].append(statement)
    return {name: _judge(name, _candidates(name, found[name])) for name in FLAVORS}


def _candidates(name: str, statements: list[Statement]) -> list[_Candidate]:
    """Return a candidate for each value, best first."""
    by_value: dict[Scalar, list[Statement]] = defaultdict(list)
    for statement in statements:
        by_value[statement.value].append(statement)
    candidates = [_candidate(value, said) for value, said in by_value.items()]
    candidates = _without_generic(name, candidates)
    return sorted(candidates, key=lambda c: (bool(c.veto), -c.score))


def _candidate(value: Scalar, said: list[Statement]) -> _Candidate:
    """Weigh all statements of one value together."""
    ranked = tuple(sorted(said, key=lambda s: -s.score))
    best = ranked[0]
    again = min(sum(s.used and s.score >= WIN for s in ranked[1:]), 3)
    veto = next((s.veto for s in said if s.veto), "")
    if best.used and best.score >= STRONG:
        veto = ""
    score = best.score + 0.5 * again
    return _Candidate(value, ranked, round(score, 2), veto)


def _without_generic(name: str, candidates: list[_Candidate]) -> list[_Candidate]:
    """Leave out what is said of any model once something particular is said of this one.

    "Multi-head attention" is said beside a value that says how the heads attend, and "pre-LN" of
    whatever norm stands first.
    """
    general, particular = _GENERAL.get(name, ("", re.compile("")))
    if not any(c.standing and c.best.used and c.value != general for c in candidates):
        return candidates
    kept = []
    for c in candidates:
        said = [s for s in c.statements if c.value != general or particular.search(_spelled(s))]
        if said:
            kept.append(_candidate(c.value, said))
    return kept


def _spelled(statement: Statement) -> str:
    """Return the value as it is spelled, after the mark \\0, and the few characters before it."""
    string, start = statement.text.string, statement.start
    return f"{string[max(start - 5, 0) : start]}\0{string[start : statement.end]}"


# --- verdicts -------------------------------------------------------------------------------


def _judge(name: str, candidates: list[_Candidate]) -> FlavorReading:
    """Return the verdict over candidates that are sorted best first."""
    mentions = [_mention(c) for c in candidates]
    standing = [c for c in candidates if c.standing]
    if not standing:
        return FlavorReading(None, _why_not(candidates), mentions)
    top, rivals = standing[0], standing[1:]
    if any(c.veto and c.score > top.score for c in candidates) and not top.best.used:
        return FlavorReading(None, f"{top.value} is only named, beside what is rejected", mentions)
    if name == "activation" and rivals:
        top, rivals = _gated(top, rivals)
    rival = rivals[0] if rivals else None
    if rival is None or top.score - rival.score >= MARGIN:
        return FlavorReading(_value(top, "used"), "", mentions)
    if name == "activation" and {top.value, rival.value} <= set(GATE_OF):
        value = replace(_value(top, "family", rival), value="gated-glu")
        return FlavorReading(value, "", mentions)
    return FlavorReading(_value(top, "contested", rival), "", mentions)


def _gated(top: _Candidate, rivals: list[_Candidate]) -> tuple[_Candidate, list[_Candidate]]:
    """Take a gated unit and the function in its gate for one choice, the unit.

    SwiGLU is a gated linear unit with SiLU in the gate (Shazeer 2020), so a table that says SiLU
    and prose that says SwiGLU agree. GELU and ReLU stand without a gate as often, so a unit must
    lead them.
    """
    everyone = [top, *rivals]
    for c in everyone:
        gate = GATE_OF.get(c.value)
        leads = c is top or (c.value, top.value) == ("swiglu", "silu")
        if gate is not None and c.best.used and leads:
            return c, [r for r in everyone if r is not c and r.value != gate]
    return top, rivals


def _why_not(candidates: list[_Candidate]) -> str:
    """Return in words why nothing is asserted."""
    if not candidates:
        return "not stated"
    best = max(candidates, key=lambda c: c.score)
    if best.veto:
        return f"{best.value} is named, but {best.veto}"
    if best.best.part:
        return f"{best.value} is said only of the {best.best.part}"
    return f"{best.value} is mentioned, not said to be used"


def _value(candidate: _Candidate, verdict: Verdict, rival: _Candidate | None = None) -> Value:
    best = candidate.best
    others = [s for s in candidate.statements[1:_QUOTES] if s.score >= WIN and not s.part]
    quotes = tuple(_quote(s) for s in (best, *others))
    runner_up = _mention(rival) if rival else None
    return Value(candidate.value, verdict, quotes, candidate.score, best.cues, runner_up)


def _mention(candidate: _Candidate) -> Mention:
    best = candidate.best
    return Mention(candidate.value, candidate.score, _quote(best), best.cues, candidate.veto)


def _quote(statement: Statement) -> Evidence:
    return evidence(statement.text, statement.start, statement.end, statement.section)
