"""Who takes over: a paper's authors, their model, or somebody else; and what unmakes a claim."""

from __future__ import annotations

import re
from dataclasses import dataclass

from paperkiln.papers.lineage.shapes import (
    BAD,
    COMPONENT,
    NOT_ARCHITECTURE,
    NOUN,
    PREPOSITIONS,
    Shape,
)


@dataclass(frozen=True)
class Subject:
    """Who takes over; `start` is its offset in the words before the name."""

    start: int
    words: str
    score: float


_SELF = re.compile(r"(?<!\S)(?:we|our|ours|us|~own|this (?:work|paper|report|study))(?!\S)")
_OTHERS = (
    "most|many|some|several|popular|modern|recent|current|such|existing|previous|prior|other|"
    "target|victim|original|evaluated|competing|compared|publicly|available|open-source|commercial"
)
_MODEL = re.compile(
    r"(?:^|, )(?:and )?(?:the|all|both|each|these|its|every|this|two|three|four) "
    r"(?:of (?:the|these|our) )?"
    rf"(?:(?!(?:{PREPOSITIONS}|{BAD}|{_OTHERS}) )[^@,\s]\S* ){{0,5}}{NOUN}(?!\S)"
    r"|^models (?=are|were|use|follow|have|share)"
)
_CLAUSE = re.compile(
    r"(?<!\S)(?:;|:|\.|while|whereas|although|though|but|because|since|where|when|if|that|which|"
    r"who|whose|than) "
)
_ANTECEDENT = re.compile(
    r"(?<!\S)(?:we|our|~own) .*(?<!\S)(?:train|propose|introduce|present|develop|build|design|"
    rf"release|use|adopt|employ|pre-?train|create|construct|is|are)\S* .*(?:{NOUN}|~own) (?:, )?$"
)
_THEN_WE = re.compile(r"(?:[^@]{0,80} )?, (?:we|our|~own|the (?:\S+ )?model) ")
_REFUSED = re.compile(
    r"(?<!\S)(?:unlike|rather|not|never|differ\w*|contrast|compar\w+|against|outperform\w*|"
    r"evaluat\w+|validat\w+|benchmark\w*|prob(?:e|es|ing)|measur\w+|analy[sz]e\w*|"
    r"investigat\w+|stud(?:y|ied)|baselines?|teachers?|judges?|critic|annotat\w+|retriev\w+|"
    r"tests?|tested|attack\w*|generat(?:e|es|ed|ing)|prompt\w*|inspired|motivated|might|could|"
    r"would|can|may|if|ablat\w*|previously|instead of|experiment with|quer(?:y|ies)|distil\w*|"
    r"steer\w*|inspect\w*|visuali[sz]\w*|serve|explain\w*|report\w*|cit(?:e|es))(?!\S)"
)
_AS_BASELINE = re.compile(
    r"(?<!\S)(?:as|for) (?:an? |our |the )?(?:\S+ )?(?:baselines?|comparisons?|reference) "
)
_REFUSED_AFTER = re.compile(
    r"(?:[^,;]* )?(?:(?:as|for) (?:an? |the |our )?(?:[^\s,]+ ){0,2}(?:baselines?|teachers?|"
    r"judges?|rewards?|critic|evaluator|evaluation|reference|verifier|annotator|retriever|"
    r"comparisons?|ablations?|draft|target)(?!\S)"
    r"|to (?:encode|compute|evaluate|score|label|annotate|filter|extract|judge|embed|rewrite|"
    r"produce|obtain|detect|classify|measure|generate|translate|summarize|tokenize)(?!\S)"
    r"|baselines?(?!\S)"
    r"|(?:in|for) (?:its |the |our )?(?:tokeni\w+|data|training|optimi\w+) )"
)


def find_subject(before: str, lead: int, after: str, shape: Shape, strict: bool) -> Subject | None:
    """Return who takes over: the authors, their model, or None if it is somebody else's.

    `strict` asks for the authors or a name of theirs: an introduction describes other models too.
    """
    if shape.name == "is labelled so":
        return None if strict else Subject(lead, before[lead:].strip(), 0.0)
    cut = _clause_start(before, lead)
    clause = before[cut:]
    own = _own_words(clause, lead - cut)
    if own:
        return _unless_named_after(clause, cut, own, 0.5)
    model = None if strict else _MODEL.search(clause)
    if model and cut + model.start() <= lead:
        return _unless_named_after(clause, cut, model, 0.0)
    for word in ("that ", "which "):  # "we train a model that follows"
        if before.endswith(word, 0, cut) and lead - cut <= 24:
            who = _ANTECEDENT.search(before[: cut - len(word)])
            return (
                Subject(who.start(), who[0].strip()[:60], 0.0)
                if who and "@" not in who[0]
                else None
            )
    if lead - cut <= 4 and _THEN_WE.match(after):  # "Built on it, we train"
        return Subject(lead, "we", 0.0)
    return None


def _clause_start(before: str, lead: int) -> int:
    """Return where the clause begins that holds the offset `lead`."""
    cut = 0
    for mark in _CLAUSE.finditer(before, 0, lead):
        label = mark[0] == ": " and len(before[: mark.start()].split()) <= 3
        cut = cut if label else mark.end()
    named = before.rfind("@", cut)  # another family's name may be the subject, up to its comma
    comma = before.find(", ", named) if named >= 0 else -1
    return comma + 2 if comma >= 0 else cut


def _own_words(clause: str, lead: int) -> re.Match[str] | None:
    """Return the first "we" of the clause, or the last if a main clause begins with it: ", we"."""
    own = [match for match in _SELF.finditer(clause) if match.start() <= max(lead, 0)]
    if not own:
        return None
    last = own[-1]
    begins = clause.endswith(", ", 0, last.start()) and ", " not in clause[last.start() :]
    return last if begins else own[0]


def _unless_named_after(
    clause: str, cut: int, subject: re.Match[str], score: float
) -> Subject | None:
    """Return the subject, unless another family stands between it and the name."""
    if "@" in clause[subject.start() :]:
        return None
    return Subject(cut + subject.start(), subject[0].strip(" ,"), score)


def is_refused(before: str, subject: int, lead: int, after: str) -> bool:
    """Return whether the words from subject to name, or those after it, unmake the claim."""
    ahead = before[:lead].split()[-1:]
    if ahead and (ahead[0] in NOT_ARCHITECTURE or ahead[0] in COMPONENT):
        return True  # "our training configuration follows"
    return bool(
        _REFUSED.search(before, subject)
        or _AS_BASELINE.search(before)
        or _REFUSED_AFTER.match(after)
    )
