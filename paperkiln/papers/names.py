"""What the paper calls its own models."""

from __future__ import annotations

import re
from itertools import islice

from paperkiln.papers.document import Document

_WORD = r"[A-Z][\w.+-]{0,40}"
_NAME = rf"({_WORD}(?:\s(?:{_WORD}|[0-9][\w.+-]{{0,20}})){{0,2}})(?:\s\(([A-Z][\w-]{{1,30}})\))?"
_PRESENT = "introduce|present|propose|release|describe|develop|train|build|call|name|dub|denote"
_INTRODUCED = [  # the name, and the abbreviation behind it
    re.compile(pattern)
    for pattern in (
        rf"\b[Ww]e\s+(?:\w+ly\s+)?(?:{_PRESENT})"
        r"(?:\s+(?:it|this|the|our|our\s+model|the\s+resulting\s+\w+))?"
        rf"(?:\s+(?:as|models?|family|series))?\s+{_NAME}",
        rf"\b(?:called|named|dubbed|termed)\s+{_NAME}",
        r"\b[Tt]his\s+(?:paper|report|work)\s+(?:introduces|presents|describes|proposes)\s+"
        rf"(?:the\s+)?{_NAME}",
        rf"(?<![\w.+-]){_NAME}\s?\(ours?\)",
    )
]
_MOST = 60  # names of one paper's models
_MAX_TITLE, _MAX_BLOCK = 300, 20_000  # characters
_LIKE_A_NAME = re.compile(r"[A-Z].*[A-Z0-9]|[a-z][A-Z]")
_WORDS = frozenset(
    "the a an we our this transformer transformers attention model models language large small "
    "network networks adam adamw table figure section appendix new novel deep learning training "
    "two three one in for data pre-training fine-tuning bert gpt llama moe llm llms".split()
)


def own_names(document: Document) -> frozenset[str]:
    """Return the names that the paper gives to what it presents: from its title and its claims."""
    names = set()
    title = " ".join(document.title.string[:_MAX_TITLE].split())
    head = re.split(r":|\s[–—-]{1,3}\s|--", title)[0].strip()
    if head != title and len(head.split()) <= 4:
        names |= {head, *(w for w in head.split() if re.search(r"[A-Z].*[A-Z0-9]|\d", w))}
    elif 0 < len(title.split()) <= 3:
        names.add(title)
    for match in re.finditer(r"\b[A-Z][a-z]*[A-Z0-9][\w-]*", head if head != title else ""):
        names.add(match[0])
    for block in document.prose:
        if block.section.kind not in ("abstract", "introduction", "", "method", "conclusion"):
            continue
        for pattern in _INTRODUCED:
            for match in pattern.finditer(block.text.string, 0, _MAX_BLOCK):
                named = (name.strip(" .-") for name in match.groups() if name)
                names |= {name for name in named if _LIKE_A_NAME.search(name)}
    usable = (n for n in sorted(names) if len(n) > 2 and n.lower() not in _WORDS)
    return frozenset(islice((n for n in usable if not n.lower().endswith("transformer")), _MOST))
