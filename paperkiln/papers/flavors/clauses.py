"""The clause around a value, who does what in it, and whether it turns the value away."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass

from paperkiln.papers.document import Text
from paperkiln.papers.evidence import sentence_at
from paperkiln.papers.flavors.lexicon import Hit
from paperkiln.papers.lineage.ancestors import ANCESTORS, GENERIC, alias_pattern
from paperkiln.papers.scope import Scope

REACH = 260  # characters before and after a value in which its cues stand


@dataclass(frozen=True)
class Clause:
    """The words around a value, in its own clause."""

    before: str
    after: str
    sentence: str
    earlier: tuple[tuple[int, int], ...] = ()
    """Where other values of the same field stand in `before`."""
    later: tuple[int, ...] = ()
    """Where they start in `after`."""
    explains: bool = False
    """Whether another value heads the paragraph, as in "RMSNorm: a LayerNorm without mean"."""

    @property
    def whole(self) -> str:
        """The clause without the value itself."""
        return f"{self.before}\0{self.after}"

    @property
    def listed(self) -> bool:
        """Whether another value stands beside this one with only a comma or a word between."""
        return any(
            len(self.before) - end < 40 and _LISTING.fullmatch(self.before[end:])
            for _, end in self.earlier
        ) or any(start < 60 and _LISTING.fullmatch(self.after[:start]) for start in self.later)


_LISTING = re.compile(
    r"(?:\s?[\w-]+){0,2}\s?(?:[,/]|\b(?:or|and|vs\.?|versus|nor)\b|→|->){1,2}(?:\s?[\w-]+){0,2}\s?",
    re.IGNORECASE,
)
_BREAK = re.compile(
    r";|\b(?:whereas|while|but|although|though|however|because|unlike|except|since)\b|"
    r",\s(?:and\s|so\s)?(?=(?:we|our|it|they|this|which|where|who|rather|instead)\b)|"
    r"\s[–—-]{1,3}\s|---|:\s(?=we\b)",
    re.IGNORECASE,
)  # fmt: skip


_SPACE = re.compile(r"\s")
_RELATIVE = re.compile(r"(?:which|who|where)\b", re.IGNORECASE)


def _goes_on(string: str, low: int, found: re.Match[str]) -> bool:
    """Return whether a break only opens a clause about the other model named just before it.

    "Unlike BERT, which uses learned embeddings" says it of BERT, "we train nanoGPT, which uses
    RoPE" of what is trained.
    """
    if not _RELATIVE.match(string, found.end()):
        return False
    named = list(OTHERS.finditer(string, max(found.start() - 60, low), found.start()))
    return bool(named) and found.start() - named[-1].end() < 12


def _heads(string: str, first: Hit) -> bool:
    """Return whether a paragraph begins with a value and a colon."""
    return first.start < 30 and bool(re.match(r"[^.:]{0,30}:", string[first.end : first.end + 31]))


def clause_of(text: Text, hit: Hit, hits: list[Hit]) -> Clause:
    """Return the clause around a hit, at most REACH characters each side."""
    string = text.string
    low, high = sentence_at(text, hit.start)
    low, high = max(low, hit.start - REACH), min(max(high, hit.end), hit.end + REACH)
    sentence = string[low:high]
    for found in _BREAK.finditer(string, low, hit.start):
        keeps = found[0].lower() == "unlike" or _goes_on(string, low, found)
        low = low if keeps else found.end()
    if after := _BREAK.search(string, hit.end, high):
        high = after.start()
    i = bisect_left(hits, hit.start, key=lambda h: h.start)
    near = [h for h in hits[max(i - 8, 0) : i + 9] if h.value != hit.value]
    return Clause(
        _SPACE.sub(" ", string[low : hit.start]),
        _SPACE.sub(" ", string[hit.end : high]),
        sentence,
        tuple((h.start - low, h.end - low) for h in near if low <= h.start < hit.start),
        tuple(h.start - hit.end for h in near if hit.end <= h.start < high),
        _heads(string, hits[0]) and hits[0].value != hit.value,
    )


# --- who does it ----------------------------------------------------------------------------

MODEL = (
    r"(?:models?|layers?|sub-?layers?|blocks?|networks?|transformers?|encoders?|decoders?|"
    r"architectures?|experts?|ffns?|mlps?|feed-?forward(?:\snetworks?)?|backbone|stack)"
)
OWN = re.compile(
    r"^\s*(?:models|layers|blocks|runs|experiments)\b|"
    r"\b(?:we|our|ours|this\s(?:work|paper|model|architecture|network)|it|both|all\sof\sour|"
    rf"(?:the|each|every|all|its)\s(?:[\w-]+\s){{0,3}}?{MODEL})\b",
    re.IGNORECASE,
)
OWN_SUBJECT = re.compile(r"\b(?:we|our|this\s(?:work|paper)|ours)\b", re.IGNORECASE)
USE = (
    r"(?:us(?:e[sd]?|ing|age)|utili[sz](?:e[sd]?|ing)|adopt(?:s|ed|ing)?|employ(?:s|ed|ing)?|"
    r"appl(?:y|ies|ied|ying)|incorporat(?:e[sd]?|ing)|integrat(?:e[sd]?|ing)|choos(?:e|es|ing)|"
    r"chose|chosen|select(?:s|ed)?|opt(?:s|ed)?\s(?:for|to)|leverag(?:e[sd]?|ing)|"
    r"implement(?:s|ed)?|add(?:s|ed|ing)?|insert(?:s|ed)?|plac(?:e[sd]?|ing)|includ(?:e[sd]?|ing)|"
    r"contain(?:s|ing)?|featur(?:es|ing)|consist(?:s|ing)?\sof|compris(?:es|ing)|has|have|having|"
    r"equipped|followed\sby|follow(?:s|ed|ing)?|introduc(?:e[sd]?|ing)|propos(?:e[sd]?|ing)|"
    r"keep|retain(?:s|ed)?|rel(?:y|ies)\son|combin(?:e[sd]?|ing)|appends?|inject(?:s|ed)?|"
    r"encod(?:es?|ed)|shar(?:es?|ed)|ti(?:es?|ed)|normali[sz]e[sd]?|stick\swith|settled?\son|"
    r"switch(?:ed)?\sto|built|build|extends?)"
)
VERB = re.compile(rf"\b{USE}\b", re.IGNORECASE)
WITH = re.compile(
    r"\b(?:with|via|through|uses?|using|by)\s(?:(?:a|an|the)\s)?(?:[\w-]+\s){0,2}$", re.I
)
MODEL_WITH = re.compile(rf"\b{MODEL}\s(?:with|using)\b", re.IGNORECASE)
_FINITE = (
    r"\b(?:us(?:e|es|ed)|adopt(?:s|ed)?|employ(?:s|ed)?|appl(?:y|ies|ied)|utili[sz]e[sd]?|has|have|"
    r"had|replac(?:e[sd]?|ing)|introduc(?:e[sd]?|ing)|propos(?:e[sd]?|ing)|incorporate[sd]?|"
    r"add(?:s|ed)?|rel(?:y|ies|ied)\son|train(?:s|ed)?|suggest(?:s|ed)?|mov(?:e[sd]?)|"
    r"learn(?:s|ed)?|encod(?:es?|ed)|combine[sd]?|cho(?:ose|oses|se)|show(?:s|ed)?)\b"
)
_CITATION_KEY = r"[A-Za-z-]+(?:19|20)\d\d\w*"
_ALIASES = alias_pattern(
    alias for name, row in ANCESTORS.items() if name not in GENERIC for alias in row.aliases
)
OTHERS = re.compile(
    rf"(?<![\w-])(?:(?:{_ALIASES})(?:[\s-]?[\d.]+[BM]?)?(?![\w]|-(?:style|like|based|type|"
    rf"inspired))|"
    rf"(?:original|vanilla|standard)\s(?:transformers?|architecture)\b|et\sal\b|{_CITATION_KEY}|"
    r"(?:most|many|some|several|recent|modern|existing|prior|previous|other|popular|earlier|"
    r"contemporary|current|these|such|common|typical|traditional|conventional|various)\s"
    r"(?:[\w-]+\s){0,3}?(?:models?|works?|methods?|approaches|architectures?|llms?|transformers?|"
    r"implementations?|studies|systems|networks?|papers?|authors|researchers))",
    re.IGNORECASE,
)  # fmt: skip


_IN_THAT = re.compile(r"\b(?:in\sthat|except(?:\sthat)?|so)\s(?:it|they)\b", re.IGNORECASE)
_TAKEN_UP = re.compile(
    r"\b(?:we|our\s\w+)\s(?:[\w-]+\s){0,2}?(?:us(?:e[sd]?|ing)|train|adopt|employ|build\son|"
    r"start\sfrom|follow|extend|modify|pre-?train|take|choose|work\swith|make\suse\sof)\b"
    r"[^.;:]{0,60}$",
    re.IGNORECASE,
)


def speaks_of_others(clause: Clause, scope: Scope) -> str:
    """Return the other model or authors that are the subject of the clause, else ""."""
    named = list(OTHERS.finditer(clause.before))
    if not named or scope.names_own(named[-1][0]):
        return ""
    last = named[-1]
    rest = clause.before[last.end() :]
    if OWN_SUBJECT.search(rest) or scope.names_own(rest) or _IN_THAT.search(rest):
        return ""
    if _TAKEN_UP.search(clause.before[: last.start()]):
        return ""  # "we train nanoGPT, which uses RoPE"
    possessive = re.match(r"(?:'|’)s?\s", rest)
    return last[0] if possessive or re.search(_FINITE, rest, re.IGNORECASE) else ""


# --- what is rejected -----------------------------------------------------------------------

_NOT_A_LIST = (
    r"(?!\b(?:we|uses?|used|with|by|for|is|are|was|were|adopt\w*|employ\w*|appl\w+|which|that|to|"
    r"in\sfavou?r)\b)"
)
_GAP = rf"(?P<gap>(?:{_NOT_A_LIST}[^.;:\0]){{0,90}})$"
_INSTEAD = re.compile(
    r"\b(?:instead\sof|rather\sthan|in\s(?:place|lieu)\sof|as\sopposed\sto|unlike|"
    r"(?:drop-in\s)?(?:replacements?|substitutes?|alternatives?)\s(?:for|of|to)|"
    r"(?:prefer\w*|cho(?:ose|oses|se|sen)|choosing|select\w*|favou?r\w*|opt\w*|used?|adopt\w*)"
    r"\s[^.;:]{1,60}?\sover|depart\w*\sfrom)"
    rf"\s(?:using\s|the\suse\sof\s|employing\s|adding\s)?{_GAP}",
    re.IGNORECASE,
)
REPLACED = re.compile(
    r"\b(?:replac(?:e[sd]?|ing)|swap(?:s|ped|ping)?|substitut(?:e[sd]?|ing)|chang(?:e[sd]?|ing)|"
    rf"(?:switch|mov|shift)\w*\s(?:away\s)?from)\s{_GAP}",
    re.IGNORECASE,
)
TARGET = re.compile(
    r"\b(?:replac\w*|swap\w*|substitut\w*|chang\w*|switch\w*|convert\w*|modif\w+)\b"
    r"[^.;:]{0,100}?\b(?:with|by|to|for|in\sfavou?r\sof)\s(?:[\w-]+[\s(]+){0,6}$",
    re.IGNORECASE,
)
_MODIFIED = re.compile(rf"\b(?:modif(?:y|ies|ied|ying)|turn(?:s|ed)?|upgrade[sd]?)\s{_GAP}", re.I)
_INTO = re.compile(r"\b(?:to|into)\s(?:[\w-]+\s){0,3}$", re.IGNORECASE)
_PUT_AWAY = (
    r"(?:replaced|removed|dropped|omitted|discarded|avoided|eliminated|excluded|disabled|"
    r"abandoned|swapped|not\s(?:used|applied|needed|employed|included|present|necessary|required))"
)
_PUT_AWAY_AFTER = re.compile(
    rf"^(?:\W{{1,3}}[\w-]++){{0,3}}?\s(?:is|are|was|were|has\sbeen|have\sbeen)\s(?:[a-z]+ly\s|"
    rf"then\s|also\s)?{_PUT_AWAY}",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:no|without|w/o|never|nor|neither|(?:not|n't|n’t)(?:\s(?:rely|depend)\son|"
    r"\s(?:use|using|used|employ|employing|adopt|apply|applying|include|need|require|have|add))|"
    r"omit(?:s|ted|ting)?|remov(?:e[sd]?|ing)|drop(?:s|ped|ping)?|eliminat(?:e[sd]?|ing)|"
    r"discard(?:s|ed|ing)?|avoid(?:s|ed|ing)?|exclud(?:e[sd]?|ing)|abandon(?:s|ed|ing)?|"
    r"eschew(?:s|ed|ing)?|forgo(?:es|ing)?|dispens\w+\swith|free\sof|lack(?:s|ing)?|absence\sof|"
    r"against(?:\s(?:using|adopting))?|decided\snot\sto\s\w+)\s"
    r"(?:(?!only\b)(?:any|the|all|a|an|explicit|standard|additional|using|use|of|traditional|"
    r"conventional|original|usual|learned|absolute|fixed|both|our|its|their)\s){0,3}$",
    re.IGNORECASE,
)
_NO_GAIN = re.compile(
    r"\b(?:(?:did|do|does|could|was|were|is|are)(?:\snot|n['’]t)\b[^.;]{0,40}?\b(?:find|improv\w+|"
    r"help\w*|observe\w*|yield\w*|outperform\w*|see|provide|benefit\w*|work|converge\w*|use|adopt)|"
    r"(?:no|little|few)\s(?:[\w-]+\s){0,3}?(?:gains?|improvements?|benefits?|advantages?)|"
    r"not\sworth|unstable|diverge[sd]?|under-?perform\w*|perform(?:s|ed)?\sworse|inferior|"
    r"degrad(?:e[sd]?|ing|ation)|hurts?)\b",
    re.IGNORECASE,
)
_FUTURE_BEFORE = re.compile(
    r"\b(?:future\s(?:work|research|stud|direction|version)|plan\sto|intend\sto|would\slike\sto)",
    re.IGNORECASE,
)
_FUTURE_AFTER = re.compile(
    r"\b(?:(?:to|for|in|as)\s(?:a\s)?future\s(?:work|research|stud|direction|version)|"
    r"(?:left|deferred|leave\sit)\s(?:to|for))",
    re.IGNORECASE,
)
TRIED = re.compile(
    r"\b(?:experiment(?:ed|s|ing)?\swith|tried|tested|consider(?:ed|ing)?|explor(?:ed?|ing)|"
    r"investigat(?:ed?|ing)|compar(?:ed?|ing)|ablat\w+)\b(?![^.;]{0,80}\b(?:decided\son|chose|"
    r"adopted)\b)",
    re.IGNORECASE,
)  # fmt: skip
_OF_THE_NORM_ITSELF = re.compile(r"^\W?\s?(?:bias|gain|affine|parameters?|weights?)\b", re.I)


def _listed(clause: Clause, gap: re.Match[str] | None) -> bool:
    """Return whether the gap leads from a word of rejection to this value.

    A comma ends what is rejected, unless a list of the same kind goes on: "instead of LayerNorm,
    SwiGLU" rejects one value, "instead of ReLU, GELU, or Swish" three.
    """
    if gap is None:
        return False
    low, high = gap.span("gap")
    if "," not in gap["gap"] and not re.search(r"\band\b", gap["gap"]):
        return True
    inside = any(low <= start < high for start, _ in clause.earlier)
    return inside and not re.match(r"[^,;]{0,40}\b(?:is|are|was|were)\b", clause.after)


def rejection(clause: Clause, polar: bool) -> str:
    """Return in what words the paper rejects the value here, "" where it does not."""
    before, after = clause.before, clause.after
    future = _FUTURE_AFTER.search(after)
    if future and re.search(r"\b(?:leave|leaving|defer|postpone)\b", after[: future.start()]):
        future = None  # what is left stands between
    if future or _FUTURE_BEFORE.search(before):
        return "left to future work"
    if polar or _OF_THE_NORM_ITSELF.match(after):
        return ""
    if _NEGATED.search(before):
        return "rejected: " + " ".join(before.split()[-3:])
    if _PUT_AWAY_AFTER.match(after):
        return "replaced or removed"
    if re.search(r"\bour\s(?:[\w-]+\s){0,2}$", before):
        return ""
    if _listed(clause, _INSTEAD.search(before)):
        return "another is used instead of it"
    if _listed(clause, REPLACED.search(before)) and not TARGET.search(before):
        return "replaced by another"
    if clause.later and _MODIFIED.search(before) and _INTO.search(after[: clause.later[0]]):
        return "modified into another"
    own = OWN_SUBJECT.search(before) and VERB.search(before) and not TRIED.search(before)
    if not own and _NO_GAIN.search(after):
        return "tried without gain"
    return ""
