"""One paper's extraction against its truth: outcomes, candidates, and quotes that must hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from paperkiln.papers.architecture import Architecture, Evidence, Scalar
from paperkiln.papers.bench.cases import OUTSIDE, Case
from paperkiln.papers.document import SourceFile

NUMBERS = ("d_model", "n_layers", "n_heads", "n_kv_heads", "d_ff", "vocab_size", "context_length")
# Each flavour's values in the order in which the naive baseline believes them.
PRIORITY: dict[str, tuple[str, ...]] = {
    "norm": ("rmsnorm", "layernorm"),
    "activation": ("swiglu", "geglu", "gelu", "silu", "relu"),
    "positional": ("rope", "alibi", "sinusoidal", "learned"),
}
FLAVORS = tuple(PRIORITY)
FIELDS = (*NUMBERS, *FLAVORS)
FAMILIES = {"gated-glu": ("swiglu", "geglu", "silu", "reglu")}


@dataclass(frozen=True)
class Outcome:
    """What became of one scored field of one paper.

    `kind` is right, wrong, missed, asserted_on_null, abstained, or alternative (asserted where
    abstaining is right, and allowed).
    """

    paper: str
    group: str
    field: str
    kind: str
    got: Scalar | None = None
    truth: Scalar | None = None
    quote: str = ""
    note: str = ""


@dataclass(frozen=True)
class Candidate:
    """A value that one paper names for one flavour, its scores, and whether it is the true one."""

    paper: str
    group: str
    field: str
    score: float
    naive: float
    true: bool
    vetoed: bool


def outcomes(case: Case, found: Architecture) -> Iterator[Outcome]:
    """Yield the outcome of each scored field that the case has a truth for."""
    for name in FIELDS:
        if name not in case.truth:
            continue
        got = found.asserted(name)
        value = found.values.get(name)
        quote = value.evidence[0].quote if got is not None and value and value.evidence else ""
        kind, note = judge(case, name, got)
        yield Outcome(case.id, case.group, name, kind, got, case.truth[name], quote, note)


def judge(case: Case, name: str, got: Scalar | None) -> tuple[str, str]:
    """Return the kind of outcome that a value (None: nothing asserted) is, and a note on it."""
    null = case.truth[name] in (None, OUTSIDE)
    if got is None and null:
        return "abstained", ""
    meant = FAMILIES.get(got, (got,)) if isinstance(got, str) else (got,)
    if accepted(case, name).intersection(meant):
        return ("alternative" if null else "right"), ""
    if not null:
        return ("missed" if got is None else "wrong"), ""
    known = name in case.public and case.public[name] in meant
    return "asserted_on_null", "publicly known, not stated" if known else ""


def accepted(case: Case, name: str) -> set[Scalar | None]:
    """Return the values of a field that count as right."""
    truth = case.truth[name]
    stated = () if truth is None or truth == OUTSIDE else (truth,)
    return {*stated, *case.alternatives.get(name, ())}


def candidates(case: Case, found: Architecture) -> Iterator[Candidate]:
    """Yield every value that the paper names for a flavour that the case has a truth for.

    The naive baseline scores the same candidates by their place in PRIORITY, the first highest.
    """
    for name, priority in PRIORITY.items():
        if name not in case.truth:
            continue
        right = accepted(case, name)
        for mention in found.mentions.get(name, ()):
            place = priority.index(mention.value) if mention.value in priority else len(priority)
            yield Candidate(
                case.id, case.group, name, mention.score, -place,
                mention.value in right, bool(mention.vetoed),
            )  # fmt: skip


def all_evidence(found: Architecture) -> Iterator[Evidence]:
    """Yield every evidence that an architecture carries."""
    for value in (*found.values.values(), *found.training.values()):
        yield from value.evidence
        if value.runner_up:
            yield value.runner_up.evidence
    for mentions in found.mentions.values():
        yield from (mention.evidence for mention in mentions)
    yield from (variant.evidence for variant in found.variants)
    if found.inherits:
        yield found.inherits.evidence


def holds(evidence: Evidence, files: Mapping[str, SourceFile]) -> bool:
    """Return whether the quote stands verbatim at its stated file, line and characters."""
    source = files.get(evidence.file)
    if source is None or not 0 <= evidence.start < evidence.end <= len(source.text):
        return False
    quoted = source.text[evidence.start : evidence.end]
    return quoted == evidence.quote and source.line(evidence.start) == evidence.line
