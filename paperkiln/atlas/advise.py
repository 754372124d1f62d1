"""Answer a question from the registry, or say that there is no evidence.

Nothing is generated: an answer is a list of findings that match the question in factor *and*
metric, with what the question names beyond them. Standard library and pydantic only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from paperkiln.atlas.findings import CORRECTED, Finding
from paperkiln.atlas.table import evidence, remark
from paperkiln.atlas.vocabulary import (
    ELSEWHERE,
    FACTORS,
    GENERAL,
    METRICS,
    NEGATIONS,
    SCALE,
    STOP,
)
from paperkiln.errors import PaperkilnError

_MAX_QUESTION = 1000  # characters
_UNITS = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12,
          "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}  # fmt: skip


@dataclass(frozen=True)
class Question:
    """What the words of a question name."""

    factors: frozenset[str] = frozenset()
    levels: dict[str, frozenset[str]] = field(default_factory=dict)
    metrics: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()
    scale: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Advice:
    """The answer: findings, or why there is none."""

    question: str
    live: tuple[Finding, ...] = ()
    open: tuple[Finding, ...] = ()
    corrected: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()
    reason: str = ""
    covers: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def answered(self) -> bool:
        """Whether a live finding speaks to the question."""
        return bool(self.live)

    def lines(self) -> list[str]:
        """Return the answer as text."""
        said = [] if self.answered else [f"NO EVIDENCE: {self.reason}"]
        said += [f"NOT COVERED: {warning}" for warning in self.warnings]
        for finding in self.live:
            said += [f"{finding.id} ({finding.status}): {finding.claim}", *_details(finding)]
        for finding in self.open:
            said += [f"OPEN {finding.id}: {finding.claim}", *_details(finding)]
        for finding in self.corrected:
            said.append(f"CORRECTED {finding.id} ({finding.status}): {finding.claim}")
            said.append(f"  {remark(finding)}")
        if self.answered:
            return [*said, "Beyond these scopes the registry says nothing."]
        known = "; ".join(f"{name} ({', '.join(m)})" for name, m in self.covers.items())
        return [*said, f"The registry covers: {known or 'nothing yet'}"]

    def to_json(self) -> dict[str, Any]:
        """Return the answer for a program."""
        return {
            "question": self.question, "answered": self.answered, "reason": self.reason,
            "warnings": list(self.warnings),
            "live": [f.id for f in self.live], "open": [f.id for f in self.open],
            "corrected": [f.id for f in self.corrected],
            "covers": {name: list(metrics) for name, metrics in self.covers.items()},
            "lines": self.lines(),
        }  # fmt: skip


def _details(finding: Finding) -> list[str]:
    became = [f"  {remark(finding)}"] if remark(finding) else []
    return [f"  {evidence(finding)}", f"  scope: {finding.scope}", *became]


def advise(question: str, findings: Iterable[Finding]) -> Advice:
    """Return what the registry knows about a question.

    Raises PaperkilnError for an empty question, or one of more than 1000 characters.
    """
    question = " ".join(question.split())
    if not question:
        raise PaperkilnError('ask something, as in "Is Muon better than AdamW?"')
    if len(question) > _MAX_QUESTION:
        raise PaperkilnError(f"the question has {len(question):,} characters; ask in one sentence")
    findings = list(findings)
    asked = parse(question, {name for f in findings for name in f.factors})
    covers = _covers(findings)
    if reason := _unanswerable(asked):
        return Advice(question, reason=reason, covers=covers)
    matching, warnings = _matching(asked, findings)
    live = tuple(f for f in matching if f.live)
    return Advice(
        question,
        live=live,
        open=tuple(f for f in matching if f.status == "pending"),
        corrected=tuple(f for f in matching if f.status in CORRECTED),
        warnings=(*warnings, *_beyond(asked, live)) if live else (),
        reason="" if live else _no_evidence(asked, matching),
        covers=covers,
    )


def _unanswerable(asked: Question) -> str:
    if asked.elsewhere:
        return f"nothing here was measured about {', '.join(sorted(asked.elsewhere))}"
    if not asked.factors:
        return "the question names no factor that is varied here"
    if not asked.metrics:
        return "the question does not say what to compare (loss, speed, convergence, stability)"
    return ""


def _no_evidence(asked: Question, matching: Sequence[Finding]) -> str:
    about = " with ".join(
        "/".join([name, *sorted(asked.levels.get(name, ()))]) for name in sorted(asked.factors)
    )
    if matching:
        return f"no finding on {about} stands; what was found is open or corrected"
    return f"no finding is about {about} and {' or '.join(sorted(asked.metrics))}"


def _matching(asked: Question, findings: Iterable[Finding]) -> tuple[list[Finding], list[str]]:
    """Return the findings that match in factor and metric, the closest first."""
    topics = {f.id: frozenset(map(topic_of, f.factors)) for f in findings}
    matching = [
        f for f in findings
        if topics[f.id] & asked.factors and metric_of(f) in asked.metrics and _levels_fit(asked, f)
    ]  # fmt: skip
    together = [f for f in matching if topics[f.id] >= asked.factors]
    if together:
        # The effect itself before the interactions that it takes part in.
        return sorted(together, key=lambda f: len(topics[f.id])), []
    missing = sorted(asked.factors)
    return matching, [f"no finding is about {' and '.join(missing)} together"]


def _levels_fit(asked: Question, finding: Finding) -> bool:
    """Return whether the finding speaks of every level that the question names of its factors."""
    words = _words(f"{finding.claim} . {finding.scope} . {_given(finding)}")
    phrases = [
        (level, *FACTORS[name].levels[level])
        for name in set(map(topic_of, finding.factors))
        for level in asked.levels.get(name, ())
    ]
    return all(any(_find(p, words) is not None for p in synonyms) for synonyms in phrases)


def _given(finding: Finding) -> str:
    return " . ".join(getattr(finding.analysis, "given", {}).values())


def _beyond(asked: Question, live: Sequence[Finding]) -> list[str]:
    """Return what the question names that the findings do not speak of."""
    warnings = []
    if asked.scale:
        warnings.append(f"{', '.join(asked.scale)}: nothing is known beyond the scope below")
    texts = [f"{f.claim}. {f.scope}. {f.design}. {_given(f)}" for f in live]
    values = {value for text in texts for _, value in _numbers(_words(text))}
    strange = [
        text for text, value in _numbers(list(asked.numbers))
        if not any(abs(value - v) <= 0.01 * abs(v) for v in values)
    ]  # fmt: skip
    if strange:
        warnings.append(f"{', '.join(strange)}: not among the values of these findings")
    known = {word for text in texts for word in _affirmed(text)}
    unknown = [word for word in asked.unknown if word not in known]
    if unknown:
        warnings.append(f"{', '.join(unknown)}: no finding speaks of it")
    return warnings


def _affirmed(text: str) -> set[str]:
    """Return the words of the clauses that say what holds, not what does not."""
    clauses = [_words(clause) for clause in re.split(r"[.;:,](?!\d)", text)]
    return {word for words in clauses if not NEGATIONS & set(words) for word in words}


def _covers(findings: Iterable[Finding]) -> dict[str, tuple[str, ...]]:
    """Return the metrics with a live finding, by factor."""
    covers: dict[str, list[str]] = {}
    for finding in findings:
        for name in finding.factors if finding.live else ():
            metrics = covers.setdefault(name, [])
            if finding.metric not in metrics:
                metrics.append(finding.metric)
    return {name: tuple(metrics) for name, metrics in sorted(covers.items())}


# --- words ---------------------------------------------------------------------------------


def topic_of(factor: str) -> str:
    """Return the factor of the vocabulary that a factor of a sweep is, or its own name."""
    words = _words(factor)
    for name, (names, levels) in FACTORS.items():
        phrases = (*names, *(p for synonyms in levels.values() for p in synonyms), name)
        if any(_find(phrase, words) is not None for phrase in phrases):
            return name
    return factor


def metric_of(finding: Finding) -> str:
    """Return what a finding's metric measures, in the words of a question."""
    name = finding.metric.partition("@")[0]
    return next((topic for topic, (_, names) in METRICS.items() if name in names), name)


def parse(question: str, factors: Iterable[str] = ()) -> Question:
    """Return what a question names; `factors` are the names that the registry itself uses."""
    words = _words(question)
    found: dict[str, set[str]] = {
        kind: set() for kind in ("factor", "level", "metric", "elsewhere")
    }
    general = False
    scale = []
    for phrase, kind, name in _lexicon(factors):
        while (start := _find(phrase, words)) is not None:
            length = len(phrase.split())
            after = words[start + length : start + length + 1]
            words[start : start + length] = [f"<{kind}>"] * length  # keeps neighbours apart
            if kind in found:
                found[kind].add(name)
            elif kind == "general":
                general = True
            elif after != ["<factor>"]:  # a larger batch is no larger scale
                scale.append(phrase)
    levels: dict[str, frozenset[str]] = {}
    for name in found["level"]:
        factor, _, level = name.partition("/")
        levels[factor] = levels.get(factor, frozenset()) | {level}
    general = general or any(len(names) > 1 for names in levels.values())
    left = [word for word in words if not word.startswith("<")]
    return Question(
        factors=frozenset(found["factor"] | set(levels)),
        levels=levels,
        metrics=frozenset(found["metric"] or ({"loss"} if general else ())),
        elsewhere=frozenset(found["elsewhere"]),
        scale=tuple(scale),
        numbers=tuple(w for i, w in enumerate(left) if _number(w) is not None or _is_unit(left, i)),
        unknown=tuple(
            w for i, w in enumerate(left)
            if w not in STOP and _number(w) is None and not _is_unit(left, i)
        ),
    )  # fmt: skip


def _lexicon(factors: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return (phrase, kind, name), the longest phrases first."""
    entries = [(" ".join(_words(name)), "factor", topic_of(name)) for name in factors]
    for name, (names, levels) in FACTORS.items():
        entries += [(phrase, "factor", name) for phrase in names]
        entries += [(p, "level", f"{name}/{level}") for level, ps in levels.items() for p in ps]
    entries += [(phrase, "metric", name) for name, (ps, _) in METRICS.items() for phrase in ps]
    entries += [(phrase, "elsewhere", name) for name, ps in ELSEWHERE.items() for phrase in ps]
    entries += [(phrase, "scale", phrase) for phrase in SCALE]
    entries += [(phrase, "general", phrase) for phrase in GENERAL]
    # Sorting is stable: of two equal phrases, the earlier kind takes the words.
    return sorted((e for e in entries if e[0]), key=lambda entry: -len(entry[0].split()))


def _words(text: str) -> list[str]:
    """Return the words and numbers of a text, in lower case."""
    found = re.findall(r"\d+(?:[.,]\d+)*(?:e[+-]?\d+)?[a-z]*|[^\W\d_]+\d*", text.lower())
    return [word.replace(",", "") for word in found]


def _find(phrase: str, words: Sequence[str]) -> int | None:
    """Return where the words of a phrase stand in a row."""
    wanted = phrase.split()
    starts = range(len(words) - len(wanted) + 1)
    return next((i for i in starts if words[i : i + len(wanted)] == wanted), None)


def _number(word: str) -> float | None:
    match = re.fullmatch(r"(\d+(?:\.\d+)*(?:e[+-]?\d+)?)([kmbt]?)", word)
    try:
        return float(match[1]) * _UNITS.get(match[2], 1) if match else None
    except ValueError:  # 1.2.3
        return None


def _is_unit(words: Sequence[str], i: int) -> bool:
    return i > 0 and words[i] in _UNITS and _number(words[i - 1]) is not None


def _numbers(words: list[str]) -> list[tuple[str, float]]:
    """Return the numbers of a text as written and as values: 0.2 M is 200,000."""
    found = []
    for word, after in pairwise([*words, ""]):
        if (value := _number(word)) is not None:
            unit = _UNITS.get(after, 1)
            found.append((f"{word} {after}" if after in _UNITS else word, value * unit))
    return found
