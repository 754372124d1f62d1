"""TeX's tokens, each with the stretch of the source that it came from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from paperkiln.papers.document import SourceFile


class Token(NamedTuple):
    """One token; `kind` is its character for { } [ ] $ & ~ ^ _, else one of the words below.

    text (a run of ordinary characters), par (blank line), word and symbol (control sequences,
    without the backslash), param (#1), begin and end (an environment, `text` is its name),
    verbatim.
    """

    kind: str
    text: str
    source: SourceFile
    start: int
    end: int
    exact: bool = True
    """False when a macro made the token: start and end are then those of the call."""

    def cut(self, at: int) -> tuple[Token, Token]:
        """Return a text token's first `at` characters, and the rest."""
        place = self.start + at
        head, tail = self._replace(text=self.text[:at]), self._replace(text=self.text[at:])
        if not self.exact:
            return head, tail
        return head._replace(end=place), tail._replace(start=place)

    def become(self, kind: str, text: str) -> Token:
        """Return another token in this one's place, one that does not stand there so."""
        return self._replace(kind=kind, text=text, exact=False)


# Possessive: a text may be megabytes long, and there is nothing to go back for.
_PATTERN = (
    r"(?P<text>(?:[^\\{}\[\]$&#~^_%\n]++|\n(?![ \t]*\n))++)"
    r"|(?P<par>\n[ \t]*\n\s*)"
    r"|\\(?P<word>LETTER+)"
    r"|\\(?P<symbol>[^A-Za-z]|\Z)"
    r"|(?P<comment>%[^\n]*\n?[ \t]*)"
    r"|(?P<param>#+[1-9]?)"
    r"|(?P<mark>\$\$|[{}\[\]$&~^_])"
)
_TOKEN = re.compile(_PATTERN.replace("LETTER", "[A-Za-z]"))
_STYLE_TOKEN = re.compile(_PATTERN.replace("LETTER", "[A-Za-z@]"))


class Lexer:
    """Gives the tokens of one file, one by one; `position` may be moved."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.text = source.plain
        self.position = 0
        self.at_is_letter = source.name.endswith((".sty", ".cls"))

    def next(self) -> Token | None:
        """Return the next token, comments left out; None at the end."""
        pattern = _STYLE_TOKEN if self.at_is_letter else _TOKEN
        while match := pattern.match(self.text, self.position):
            start, self.position = self.position, match.end()
            kind = match.lastgroup or ""
            if kind == "comment":
                # The comment took its line end; a blank line after it still ends a paragraph.
                if self.text.startswith("\n", self.position) and "\n" in match[0]:
                    self.position += 1
                    return Token("par", "\n", self.source, self.position - 1, self.position)
                continue
            text = match[kind]
            return Token(text if kind == "mark" else kind, text, self.source, start, self.position)
        return None

    def take_until(self, stop: str) -> Token:
        """Return the raw text up to `stop`, which is passed over; up to the end without it."""
        start = self.position
        end = self.text.find(stop, start)
        found = end >= 0
        end = end if found else len(self.text)
        self.position = end + len(stop) if found else end
        return Token("verbatim", self.text[start:end], self.source, start, end)


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a string that is in no file (their places mean nothing)."""
    lexer = Lexer(SourceFile("", text))
    return list(iter(lexer.next, None))


def spell(tokens: Iterable[Token]) -> str:
    """Return tokens as they would be typed."""
    marks = {"word": "\\{} ", "symbol": "\\{}"}
    return "".join(
        f"\\{token.kind}{{{token.text}}}"
        if token.kind in ("begin", "end")
        else marks.get(token.kind, "{}").format(token.text)
        for token in tokens
    )
