"""Text in the making: what is written, and the source that each stretch of it came from."""

from __future__ import annotations

from dataclasses import dataclass, field

from paperkiln.papers.document import Run, Text
from paperkiln.papers.latex.tokens import Token


@dataclass
class Writer:
    """Collects what a reader of the page sees; `text` gives it with its origins."""

    length: int = 0
    label_end: int = 0
    """Where the label of an item ended."""
    citations: list[tuple[int, str]] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)
    _runs: list[Run] = field(default_factory=list)
    _expanded: list[tuple[int, int]] = field(default_factory=list)

    def write(self, token: Token, string: str, exact: bool = True) -> None:
        """Add `string`, which came from the place of `token`; exact if it stands there so."""
        if not string:
            return
        exact = exact and token.exact
        end = self.length + len(string)
        if not token.exact:
            if self._expanded and self._expanded[-1][1] == self.length:
                self._expanded[-1] = (self._expanded[-1][0], end)
            else:
                self._expanded.append((self.length, end))
        self._run(token, exact)
        self._parts.append(string)
        self.length = end

    def _run(self, token: Token, exact: bool) -> None:
        """Lengthen the last run, or begin one."""
        last = self._runs[-1] if self._runs else None
        if last is not None and last.source is token.source and last.exact == exact:
            if exact and last.end == token.start:
                self._runs[-1] = Run(last.at, last.source, last.start, token.end, True)
                return
            if not exact and (last.start, last.end) == (token.start, token.end):
                return
        self._runs.append(Run(self.length, token.source, token.start, token.end, exact))

    def cite(self, keys: str) -> None:
        """Remember that a citation stands here."""
        self.citations.append((self.length, keys))

    def label(self) -> str:
        """Return the label of the item."""
        return "".join(self._parts)[: self.label_end].strip()

    def text(self) -> Text:
        """Return what was written, without the blanks around it."""
        string = "".join(self._parts)
        bare = string.strip()
        if not bare:
            return Text("", (), tuple((0, keys) for _, keys in self.citations))
        whole = Text(string, tuple(self._runs), tuple(self.citations), tuple(self._expanded))
        if len(bare) == len(string):
            return whole
        start = len(string) - len(string.lstrip())
        return whole.slice(start, start + len(bare))
