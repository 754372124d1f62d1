"""The sentence in which a paper says that its model takes over another model's architecture.

A claim needs three things in one clause: the paper's own model or its authors as the subject, a
phrase that takes something over, and the name of a known family as the head of an architecture
noun. What is taken over may not be a tokenizer, data, a training set-up or the like.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from paperkiln.papers.architecture import Scalar
from paperkiln.papers.document import Block, Document, Section, Text
from paperkiln.papers.lineage.ancestors import ANCESTORS, GENERIC, inherited
from paperkiln.papers.lineage.naming import OWN, Name, Words, find_names, own_pattern, read_words
from paperkiln.papers.lineage.shapes import REACH, SHAPES, read_noun
from paperkiln.papers.lineage.subject import find_subject, is_refused

Kind = Literal["architecture", "initialised"]

MAX_SENTENCES = 1000  # that name a family and are looked at closely; no paper has as many
MAX_LENGTH = 2000  # characters of a sentence
MAX_ITEMS = 12  # of a list of changes
MAX_NAMES = 8  # a sentence that names more families compares them

_WEIGHTS = {  # of a claim, by what its section usually holds; sections not named here do not count
    "method": 2.0, "training": 1.5, "abstract": 1.0, "other": 1.0, "experiments": 1.0, "": 1.0,
    "introduction": 0.5, "conclusion": 0.0, "ablation": -1.0,
}  # fmt: skip
_KINDS_OF_BLOCK = frozenset({"paragraph", "item", "abstract", "footnote"})
_CLOSE = 1.0  # claims of two families whose scores are closer than this stand side by side


_IMAGES = re.compile(r"\b(?:images?|visual|vision|pixels?|patch(?:es)?)\b", re.IGNORECASE)
_TEXT = re.compile(r"\b(?:languages?|texts?|tokens?|words?|vocabulary)\b", re.IGNORECASE)
# Something differs; `cut` cues stand before what does.
EXCEPT = re.compile(
    r"\b(?:(?P<cut>except(?:ing|ions?)?\b(?: (?:that|for|of))?|apart from|aside from|other than)"
    r"|but\b|instead|in place of|rather than|replac|without|modifi|chang|differ|adjust|tweak|"
    r"switch|deviat)",
    re.IGNORECASE,
)
DIFFERENCE = re.compile(
    r"\b(?:differ\w*|chang(?:e|es|ed)|modif\w+|except\w*|unlike|in contrast|compared (?:to|with)|"
    r"instead|however|replac\w+|deviat\w+)\b",
    re.IGNORECASE,
)
FIELDS = {
    "norm": re.compile(r"norm"),
    "norm_placement": re.compile(r"norm"),
    "activation": re.compile(
        r"activation|glu\b|relu|silu|swish|feed-?\s?forward|\bffn|\bmlp|nonlinear"
    ),
    "positional": re.compile(r"position|\brope\b|rotary|alibi|\bnope\b"),
    "attention": re.compile(r"attention"),
    "bias": re.compile(r"\bbias"),
    "tied_embeddings": re.compile(
        r"\b(?:un)?(?:tie|tied|tying)\b|weight.{0,3}shar|shar\w* .{0,24}embedding|"
        r"embedding.{0,12}shar"
    ),
}


@dataclass(frozen=True)
class Claim:
    """That the paper's model takes over `ancestor`; the sentence is block.text[start:end]."""

    ancestor: str
    kind: Kind
    """'initialised' where it starts from the ancestor's weights."""
    block: Block
    start: int
    end: int
    exceptions: tuple[str, ...] = ()
    """What the paper says is different, in its own words."""
    cues: tuple[str, ...] = ()
    score: float = 0.0
    others: tuple[str, ...] = ()
    """Families named beside it, or by a claim as strong: only what all share is inherited."""

    @property
    def text(self) -> str:
        """The sentence."""
        return self.block.text.string[self.start : self.end]

    @property
    def section(self) -> Section:
        """Where it stands."""
        return self.block.section

    @cached_property
    def excepted(self) -> frozenset[str]:
        """The fields that the exceptions speak of; they are not inherited."""
        said = " ".join(self.exceptions).lower()
        return frozenset(name for name, words in FIELDS.items() if words.search(said))

    def values(self) -> dict[str, Scalar]:
        """Return what is inherited."""
        common = inherited(self.ancestor, *self.others)
        return {name: value for name, value in common.items() if name not in self.excepted}


def find_lineage(document: Document, own_names: frozenset[str] = frozenset()) -> Claim | None:
    """Return the best-founded claim, or None; `own_names` are what the paper calls its models.

    A named family goes before the general Transformer, an architecture before mere weights.
    """
    itself = _families_presented(document, own_names)
    own = frozenset(name for name in own_names if itself.get(name, True))
    claims = [
        claim
        for claim in _claims(document, own_pattern(own))
        if claim.ancestor not in itself.values()
    ]
    if any(_reads_images(claim) for claim in claims) and not _is_about_images(document):
        claims = [claim for claim in claims if not _reads_images(claim)]
    if not claims:
        return None
    best = max(claims, key=lambda c: (c.ancestor not in GENERIC, c.score))  # the first of equals
    rivals = {
        c.ancestor
        for c in claims
        if c.kind == best.kind and c.score > best.score - _CLOSE and c.ancestor not in GENERIC
    }
    others = tuple(sorted((rivals | set(best.others)) - {best.ancestor}))
    if best.ancestor in GENERIC or not others:
        return best
    return replace(best, others=others)


def _families_presented(document: Document, own_names: frozenset[str]) -> dict[str, str]:
    """Return, of the own names that are a family's, the family where the title bears it, else "".

    "We train GPT-2" does not make GPT-2 the authors' own.
    """
    title = " ".join(document.title.string.split())
    return {
        own: name.word[1:] if own in title else ""
        for own in own_names
        for name in find_names(Text(own), None)
        if (name.start, name.end) == (0, len(own))
    }


def _reads_images(claim: Claim) -> bool:
    return ANCESTORS[claim.ancestor].modality == "image"


def _is_about_images(document: Document) -> bool:
    """Return whether images are more spoken of than text: a side experiment is not the model."""
    prose = [block.text.string for block in document.prose]
    images, words = (sum(len(p.findall(text)) for text in prose) for p in (_IMAGES, _TEXT))
    return images > words


def _claims(document: Document, own: re.Pattern[str] | None) -> Iterator[Claim]:
    seen = 0
    blocks = list(document.prose)
    for i, block in enumerate(blocks):
        weight = _weight(block)
        if weight is None:
            continue
        names = find_names(block.text, own)
        if all(name.word == OWN for name in names):
            continue
        for k, (start, end) in enumerate(block.text.sentences):
            here = names[bisect_left(names, start, key=_at) : bisect_left(names, end, key=_at)]
            families = sum(name.word != OWN for name in here)
            if not 0 < families <= MAX_NAMES or end - start > MAX_LENGTH:
                continue
            seen += 1
            if seen > MAX_SENTENCES:
                return
            words = read_words(block.text, start, end, here)
            label = block.label if k == 0 and block.kind == "item" else ""
            found = _best(words, label, strict=block.section.kind == "introduction")
            if found:
                exceptions = _exceptions(block, k, found.end, blocks[i + 1 : i + 1 + MAX_ITEMS])
                yield Claim(
                    found.family, found.kind, block, words.spans[0][0], end, exceptions, found.cues,
                    found.score + weight, found.others,
                )  # fmt: skip


def _at(name: Name) -> int:
    return name.start


def _weight(block: Block) -> float | None:
    """Return what a claim in this block is worth, None where it says nothing of this paper."""
    if block.kind not in _KINDS_OF_BLOCK:
        return None
    kinds = [section.kind for section in block.section.ancestors()]
    if not all(kind in _WEIGHTS for kind in kinds):
        return None
    return _WEIGHTS[kinds[0]] - (0.5 if block.section.appendix else 0.0)


@dataclass(frozen=True)
class _Found:
    family: str
    kind: Kind
    score: float
    cues: tuple[str, ...]
    others: tuple[str, ...]
    end: int
    """Offset in the text where the ancestor's noun phrase ends."""


def _best(words: Words, label: str, strict: bool) -> _Found | None:
    found = [
        claim
        for at, word in enumerate(words.words)
        if word[0] == "@" and (claim := _claim_at(words, at, label, strict))
    ]
    return max(found, key=lambda claim: claim.score, default=None)


def _claim_at(words: Words, at: int, label: str, strict: bool) -> _Found | None:
    """Return the claim whose ancestor is the name at word `at`, if the sentence makes one."""
    noun = read_noun(words, at)
    low = max(at - REACH, 0)
    before, after = words.text(low, at), words.text(noun.end, noun.end + 14)
    if label and not low:
        before = f"{label.lower().strip(' .:')} : {before}"
    for shape in SHAPES:
        match = shape.lead.search(before)
        if not match or not shape.fits(noun, match[0], after):
            continue
        subject = find_subject(before, match.start(), after, shape, strict)
        if subject is None or is_refused(before, subject.start, match.start(), after):
            continue
        kind: Kind = "initialised" if shape.starts_from_weights(noun, match[0]) else "architecture"
        if kind == "initialised" and noun.others:
            return None  # several starting points: a study of models, not a model
        cues = (f"subject: {subject.words}", shape.name, f"takes over: {noun.words}")
        score = shape.score - (2.0 if kind == "initialised" and shape.score > 2 else 0.0)
        return _Found(
            words.words[at][1:], kind, score + subject.score, cues, noun.others,
            words.spans[noun.end - 1][1],
        )  # fmt: skip
    return None


def _exceptions(
    block: Block, sentence: int, after: int, next_blocks: list[Block]
) -> tuple[str, ...]:
    """Return what is said to differ: in the sentence, in the next one, or in a list after it."""
    string = block.text.string
    start, end = block.text.sentences[sentence]
    phrases = []
    rest = string[after:end]
    cue = EXCEPT.search(rest)
    if cue:
        phrases.append(rest[cue.end() if cue["cut"] else 0 :].strip(" ,.:;\n"))
    for start, stop in block.text.sentences[sentence + 1 : sentence + 2]:
        if DIFFERENCE.search(string[start : min(start + 160, stop)]):
            phrases.append(string[start:stop].strip())
    if phrases and string.rstrip().endswith(":"):
        for item in next_blocks:
            if item.kind != "item" or item.section is not block.section:
                break
            phrases.append(f"{item.label} {item.text.string}".strip())
    return tuple(" ".join(phrase.split()) for phrase in phrases if phrase.strip())
