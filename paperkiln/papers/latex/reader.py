"""LaTeX to Document: what a reader of the typeset paper would see, each word with its origin.

A general parser (pylatexenc 2.10) was tried and left: 1.4 s for a 109 kB paper, a recursion
error at a few thousand nested braces, and macro expansion that loses the origin of the text.
This reader is one loop over the tokens with an explicit stack; it never recurses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from paperkiln.papers.document import Block, Document, Section, SourceFile, Table, Text
from paperkiln.papers.latex import conditionals, environments, inputs, macros, typeset
from paperkiln.papers.latex.stream import BLOCK, TokenStream
from paperkiln.papers.latex.tabular import Float, Grid
from paperkiln.papers.latex.tokens import Token
from paperkiln.papers.latex.writer import Writer

_NODE = re.compile(r"\bnode\b")


@dataclass
class Picture:
    """Where in a TikZ picture the reader is; only the text of its nodes is read."""

    open: int = 0
    """Pictures that are open."""
    node: bool = False
    """The next brace opens a node."""
    bracket: int = 0
    """Open [options]: a brace in them is no node."""
    nodes: int = 0
    """Nodes that are open."""

    @property
    def hides(self) -> bool:
        """Whether what comes is drawing, not text."""
        return self.open > 0 and self.nodes == 0


class Reader:
    """Writes blocks, token by token; the handlers of commands and environments change it."""

    def __init__(self, files: dict[str, SourceFile], main: str) -> None:
        handlers = {**macros.HANDLERS, **conditionals.HANDLERS, **inputs.HANDLERS}
        self.stream = TokenStream(files, main, handlers)
        self.top = Section(Text(""), 0, "")
        self.section = self.top
        self.appendix = False
        self.title = Text("")
        self.blocks: list[Block | Table] = []
        self.writer = Writer()
        self.kind = "paragraph"
        self.groups: list[Callable[[], None] | None] = []
        """What to do when each open brace closes."""
        self.captures = 0
        """Open groups whose text is written apart: footnotes, captions, headings."""
        self.grids: list[Grid] = []
        self.floats: list[Float] = []
        self.picture = Picture()
        self.lists = 0
        self.math = False
        self.begun = files[main].body == 0
        """Whether the preamble is over."""
        self.in_body = self.begun

    def read(self) -> None:
        """Read every token."""
        marks: dict[str, Callable[[Token], None]] = {
            "text": self._text, "{": self._open_brace, "}": self._close_brace,
            "$": self._dollar, "$$": self._dollar, "~": self._tie, "par": self.end_paragraph,
            "verbatim": self._verbatim,
        }  # fmt: skip
        handlers = {
            "word": typeset.word, "symbol": typeset.symbol, "&": environments.ampersand,
            "begin": environments.begin, "end": environments.end,
        }  # fmt: skip
        while (token := self.stream.next()) is not None:
            if token.kind in handlers:
                handlers[token.kind](self, token)
            else:
                marks.get(token.kind, self._plain)(token)
        self.close_all()
        self.flush()

    # Text

    def write(self, token: Token, string: str, exact: bool = False) -> None:
        """Write `string` in the place of `token`."""
        if (self.in_body or self.captures) and not self.picture.hides:
            self.writer.write(token, string, exact)

    def _plain(self, token: Token) -> None:
        if self.picture.hides:
            self.picture.bracket += {"[": 1, "]": -1}.get(token.kind, 0)
        self.write(token, token.text, exact=True)

    def _text(self, token: Token) -> None:
        if self.picture.hides:
            if ";" in token.text:
                self.picture.bracket, self.picture.node = 0, False
            self.picture.node = self.picture.node or bool(_NODE.search(token.text))
        self.write(token, token.text, exact=True)

    def _tie(self, token: Token) -> None:
        self.write(token, "\u00a0")

    def _dollar(self, token: Token) -> None:
        self.math = not self.math

    def _verbatim(self, token: Token) -> None:
        if self.captures or self.grids:
            self.write(token, token.text, exact=True)
        elif self.in_body:
            self.flush()
            self.writer.write(token, token.text)
            self.kind = "code"
            self.flush()

    def end_paragraph(self, token: Token) -> None:
        """End the paragraph; in a cell, a caption or a footnote, the line."""
        self.math = False
        if self.grids or self.captures:
            self.write(token, "\n")
        else:
            self.flush()

    def take_writer(self) -> Writer:
        """Return what was written, and begin anew."""
        writer = self.writer
        if writer.length or writer.citations:
            self.writer = Writer()
        return writer

    def flush(self) -> None:
        """Make what was written a block."""
        writer = self.take_writer()
        if writer.length and self.in_body and (text := writer.text()):
            self._append(Block(self.kind, text, self.section, writer.label()))
        self.kind = "item" if self.lists else "paragraph"

    def add_block(self, kind: str, label: str = "") -> Callable[[Text], None]:
        """Return what makes a text a block of its own."""

        def add(text: Text) -> None:
            if text and self.in_body:
                self._append(Block(kind, text, self.section, label))

        return add

    def _append(self, block: Block) -> None:
        self.blocks.append(block)
        self.stream.work += BLOCK

    # Groups

    def _open_brace(self, token: Token) -> None:
        picture = self.picture
        if picture.hides and picture.node and picture.bracket <= 0:
            picture.node = False
            picture.nodes += 1
            self._capture(self._node)
        else:
            self.groups.append(None)

    def _node(self, text: Text) -> None:
        self.picture.nodes -= 1
        self.add_block("figure")(text)

    def _close_brace(self, token: Token) -> None:
        if self.groups:
            self.close_group()

    def close_group(self) -> None:
        """Close the innermost group."""
        close = self.groups.pop()
        if close is not None:
            if self.grids and len(self.groups) < self.grids[-1].depth:
                environments.finish_table(self)
            close()

    def _capture(self, use: Callable[[Text], None]) -> None:
        """Write what follows, up to the closing brace, apart; then give it to `use`."""
        self.stream.work += BLOCK
        outer, math = self.writer, self.math
        self.writer, self.math = Writer(), False
        self.captures += 1

        def close() -> None:
            text = self.writer.text()
            self.captures -= 1
            self.writer, self.math = outer, math
            use(text)

        self.groups.append(close)

    def capture_argument(self, use: Callable[[Text], None]) -> None:
        """Give the text of the {argument} that comes next to `use`; pass over its [option]."""
        self.stream.take("*")
        self.stream.option()
        following = self.stream.peek()
        if following is not None and following.kind == "{":
            self.stream.raw()
            self._capture(use)

    def close_all(self) -> None:
        """Close what the author left open, so that one lost brace does not swallow the paper."""
        while self.grids:
            environments.finish_table(self)
        while self.captures:
            self.close_group()

    def pass_over_option(self) -> None:
        """Pass over the [option] of a command that is not known here: \\command[option]{text}."""
        following = self.stream.peek(skip_space=False)
        if following is not None and following.kind == "[":
            self.stream.option()


def read_latex(files: dict[str, SourceFile], main: str) -> Document:
    """Return the document that begins in the file `main`.

    Never raises for what the source holds: what could not be read is in `notes`.
    """
    reader = Reader(files, main)
    reader.read()
    read, notes = reader.stream.read, reader.stream.notes
    unread = [name for name in files if name.endswith(".tex") and name not in read]
    if unread:
        notes.append(f"not part of the paper (never inputted): {_first(unread)}")
    odd = [f"{f.name} ({f.encoding})" for f in files.values() if not f.encoding.startswith("utf-8")]
    if odd:
        notes.append(f"not UTF-8: {_first(odd)}")
    kept = {name: files[name] for name in read}
    return Document(reader.title, reader.blocks, kept, main, notes)


def _first(names: list[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
