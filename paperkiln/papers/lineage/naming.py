"""A sentence as words, in which every name of a model has become one word.

`@llama-2` stands for a known family however it was spelled, sized or cited; `~own` for the
paper's own model. What stands in parentheses is left out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from paperkiln.papers.document import Text
from paperkiln.papers.lineage.ancestors import ANCESTORS

OWN = "~own"
MAX_OWN_NAMES = 50
CITED_WITHIN = 30  # characters of its name a citation adds nothing to it
MAX_WORDS = 250  # longer is no sentence

_LETTERS = re.compile(r"(?<![^\W_])[^\W\d_]+")
_KEY = re.compile(r"[^\W_]{4,80}")
_WORD = re.compile(r"[^\W_]+(?:[-‑'’.,/][^\W_]+)*|[^\w\s]")
_JOIN = r"[-‑–\s]?"
# What may follow a family's name and still be the family: sizes, releases, tunings.
_TAIL = (
    r"(?:[-‑][sblgh](?:/\d{1,2})?(?![^\W_]))?"
    r"(?:[-‑_\s](?:a?\d+(?:\.\d+)?\s?[bm]\d?|small|base|medium|large|x{0,2}l|tiny|mini|micro|nano|"
    r"it|instruct|chat|(?:un)?cased|v\d(?:\.\d)?|\d{4})(?![^\W_])){0,4}"
)
_VERSION = r"(?![-‑\s]?\d(?:\.\d)?(?![\d.]*\s?[bBmM]\d?\b)(?!\d))"  # "Llama 4" is not Llama
_END = r"(?![^\W_]|\.\d)"
_HEADS = (
    "style|styled|like|based|type|inspired|esque|family|architecture|backbone|transformer|decoder|"
    "model"
)
_OTHER_NAME = rf"(?![-‑](?!(?:{_HEADS})s?\b)[^\W_])"  # "Llama-Adapter"


@dataclass(frozen=True)
class Name:
    """A model named at [start, end) of a text; `word` is what it becomes."""

    start: int
    end: int
    word: str


@dataclass(frozen=True)
class Words:
    """The words of a sentence, lower-case, with the [start, end) of each in the text."""

    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return len(self.words)

    def text(self, start: int = 0, end: int | None = None) -> str:
        """Return words [start, end), each followed by a space."""
        return "".join(f"{word} " for word in self.words[start:end])


def _spelled(name: str) -> str:
    return _JOIN.join(re.escape(part) for part in re.split(r"[-\s]+", name) if part)


@lru_cache(maxsize=1)
def _families() -> dict[str, tuple[re.Pattern[str], tuple[str, ...]]]:
    """Return, by the letters that an alias begins with, a pattern and the family of each group."""
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for family, row in ANCESTORS.items():
        for alias in row.aliases:
            match = _LETTERS.match(alias)
            assert match
            groups[match[0].lower()].append((alias, family))
    patterns = {}
    for letters, pairs in groups.items():
        pairs.sort(key=lambda pair: -len(pair[0]))
        pattern = rf"(?:{'|'.join(_branch(alias) for alias, _ in pairs)}){_END}(?i:{_TAIL})"
        patterns[letters] = (re.compile(pattern + _OTHER_NAME), tuple(f for _, f in pairs))
    return patterns


def _branch(alias: str) -> str:
    spelled = _spelled(alias)
    version = "" if alias[-1].isdigit() else _VERSION
    return f"({spelled if alias != alias.lower() else f'(?i:{spelled})'}{version})"


@lru_cache(maxsize=1)
def _keys() -> dict[str, str]:
    return {key: family for family, row in ANCESTORS.items() for key in row.keys}


def own_pattern(names: frozenset[str]) -> re.Pattern[str] | None:
    """Return a pattern that finds the paper's own model names, as spelled, with their sizes."""
    usable = sorted((n.strip() for n in names if 1 < len(n.strip()) <= 60), key=len, reverse=True)
    spelled = [s for s in map(_spelled, usable[:MAX_OWN_NAMES]) if s]
    if not spelled:
        return None
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(spelled)}){_END}(?i:{_TAIL})")


def find_names(text: Text, own: re.Pattern[str] | None) -> list[Name]:
    """Return where families and the paper's own models are named or cited, in order.

    A citation stands for a family only where the family is not named just before it.
    """
    string = text.string
    names = [Name(*m.span(), OWN) for m in own.finditer(string)] if own else []
    taken = bytearray(len(string))
    for name in names:
        taken[name.start : name.end] = b"\1" * (name.end - name.start)
    ends: list[int] = []
    for letters in _LETTERS.finditer(string):
        if ends and letters.start() < ends[-1]:
            continue
        family = _family_at(string, letters)
        if family and not any(taken[family.start : family.end]):
            names.append(family)
            ends.append(family.end)
    for at, key in text.citations:
        family_cited = key_family(key)
        if family_cited and not _names_end_before(at, ends):
            names.append(Name(at, at, f"@{family_cited}"))
    return sorted(names, key=lambda name: (name.start, name.end))


def _names_end_before(at: int, ends: list[int]) -> bool:
    i = bisect_right(ends, at)
    return i > 0 and at - ends[i - 1] <= CITED_WITHIN


def _family_at(string: str, letters: re.Match[str]) -> Name | None:
    start = letters.start()
    entry = _families().get(letters[0].lower())
    match = entry[0].match(string, start) if entry else None
    if entry and match and match.lastindex and string[max(start - 1, 0) : start] not in ("-", "‑"):
        return Name(start, match.end(), f"@{entry[1][match.lastindex - 1]}")
    key = _KEY.match(string, start) if string[letters.end() : letters.end() + 1].isdigit() else None
    family = key_family(key[0]) if key else None  # of a \citet, whose text is its key
    return Name(start, key.end(), f"@{family}") if key and family else None


def key_family(key: str) -> str | None:
    """Return the family whose paper a citation of a single key names."""
    return _keys().get(key.strip().lower())


def read_words(text: Text, start: int, end: int, names: Iterable[Name]) -> Words:
    """Return the words of the sentence text.string[start:end], in which `names` stand."""
    words: list[str] = []
    spans: list[tuple[int, int]] = []
    depth, at = 0, start

    def add(span: tuple[int, int], word: str) -> None:
        nonlocal depth
        if word in "([":
            depth += 1
        elif word in ")]":
            depth = max(depth - 1, 0)
        elif not depth and (word[0].isalnum() or word[0] in "@~,;:./'’"):
            words.append(word)
            spans.append(span)

    for name in names:
        if start <= name.start and name.end <= end:
            for match in _WORD.finditer(text.string, at, max(name.start, at)):
                add(match.span(), match[0].lower())
            add((name.start, name.end), name.word)
            at = max(name.end, at)
    for match in _WORD.finditer(text.string, at, end):
        add(match.span(), match[0].lower())
    return Words(tuple(words[:MAX_WORDS]), tuple(spans[:MAX_WORDS]))
