"""From a main file to one stream of tokens: files inputted, the author's macros expanded.

Everything is bounded: a macro that expands itself, files that input each other and groups that
never close end in a note to the reader of the result, not in a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from paperkiln.papers.document import SourceFile
from paperkiln.papers.latex.tokens import Lexer, Token, spell

MAX_WORK = 1_000_000  # tokens read or made: a source of 5 MB has about as many
PIECE = 16  # characters that are as much work as one token
BLOCK, CELL = 25, 8  # tokens that are as much work as a paragraph and a table cell, later too
_MAX_DEPTH = 120  # macros within macros, files within files
_MAX_EXPANSIONS = 20_000  # that start from one call
_MAX_ARGUMENT = 20_000  # tokens
_MAX_UNCLOSED = 20  # arguments without end, after which arguments are cut short
_SHORT = 200
_MAX_NOTES = 50


class Parameter(NamedTuple):
    """What a macro takes: m a {group}, o an [option], s a star, d all up to the token `stop`."""

    kind: str = "m"
    default: list[Token] | None = None
    stop: Token | None = None


@dataclass
class Macro:
    """A macro: #1 to #n in its body stand for what was given for its parameters."""

    body: list[Token]
    parameters: list[Parameter]


@dataclass
class _Frame:
    """A place that tokens come from: a file, or the tokens that a macro left."""

    lexer: Lexer | None = None
    tokens: list[Token] | None = None
    index: int = 0

    def next(self) -> Token | None:
        """Return the next token, or None when the place is used up."""
        if self.tokens is None:
            return self.lexer.next()  # type: ignore[union-attr]
        if self.index >= len(self.tokens):
            return None
        self.index += 1
        return self.tokens[self.index - 1]


class TokenStream:
    """The tokens of a paper in reading order, macros expanded; `next` until it returns None.

    What a control sequence does to the stream is in `handlers`: definitions, conditionals and
    files are three modules of their own.
    """

    def __init__(
        self, files: dict[str, SourceFile], main: str, handlers: dict[str, Handler]
    ) -> None:
        self.files = files
        self.main = main
        self.handlers = handlers
        self.macros: dict[str, Macro] = {}
        self.environments: dict[str, tuple[Macro, Macro]] = {}
        self.switches: dict[str, bool] = {}
        self.acronyms: dict[str, tuple[list[Token], list[Token]]] = {}
        self.dropped_environments: set[str] = set()
        self.open_files: list[str] = []
        self.starts: dict[str, int] = {}
        """Where a file that was inputted begins: after its \\begin{document}, if it has one."""
        self.read: dict[str, None] = {}
        """Names of the files that belong to the paper, in reading order."""
        self._notes: dict[str, list[str]] = {}
        self._frames: list[_Frame] = []
        self._origin = ("", -1)
        self._expansions = 0
        self.work = 0
        self._unclosed = 0
        self.enter(main, 0)

    # Reading

    def next(self) -> Token | None:
        """Return the next token that is neither a macro nor a matter of the handlers."""
        while (token := self.raw()) is not None:
            if token.kind != "word":
                return token
            name = token.text
            if (macro := self.macros.get(name)) is not None:
                self.expand(token, macro)
            elif (handler := self.handlers.get(name)) is not None:
                if (made := handler(self, token)) is not None:
                    return made
            elif name.startswith("if"):
                if (made := self.handlers["if"](self, token)) is not None:
                    return made
            elif not (name.endswith(("true", "false")) and self._switch(name)):
                return token
        return None

    def raw(self) -> Token | None:
        """Return the next token as it stands."""
        frames = self._frames
        while frames:
            token = frames[-1].next()
            if token is not None:
                self.work += 1 + len(token.text) // PIECE
                if self.work > MAX_WORK:
                    self.note(f"reading stopped after {MAX_WORK:,} pieces; the rest is unread")
                    frames.clear()
                    return None
                return token
            if frames.pop().lexer is not None:
                self.open_files.pop()
        return None

    def push(self, tokens: list[Token]) -> None:
        """Let `tokens` be read next."""
        if tokens:
            self._frames.append(_Frame(tokens=tokens))

    def peek(self, skip_space: bool = True) -> Token | None:
        """Return the next raw token without taking it; blanks before it are passed over."""
        while (token := self.raw()) is not None:
            if skip_space and token.kind == "text" and token.text[:1].isspace():
                token = token.cut(len(token.text) - len(token.text.lstrip()))[1]
                if not token.text:
                    continue
            self.push([token])
            return token
        return None

    def note(self, text: str, token: Token | None = None) -> None:
        """Remember something that the reader of the result should know, and where."""
        if text in self._notes or len(self._notes) < _MAX_NOTES:
            places = self._notes.setdefault(text, [])
            if token is not None and token.source.name:
                places.append(f"{token.source.name}:{token.source.line(token.start)}")

    @property
    def notes(self) -> list[str]:
        """What was noted, once each, with the first places."""
        lines = []
        for text, places in self._notes.items():
            first = list(dict.fromkeys(places))
            where = f" near {', '.join(first[:3])}{' …' if len(first) > 3 else ''}"
            times = f" ({len(places)} times)" if len(places) > 1 else ""
            lines.append(text + (where if places else "") + times)
        return lines

    # Arguments

    def group(self) -> list[Token]:
        """Return the tokens of the {group} that comes next, or the one token in its place."""
        token = self.peek()
        if token is None or token.kind in ("par", "}"):
            return []
        self.raw()
        if token.kind == "{":
            return self._until("}", token) or []
        if token.kind == "text":
            token, rest = token.cut(1)
            self.push([rest] if rest.text else [])
        return [token]

    def option(self, paragraphs: bool = False) -> list[Token] | None:
        """Return the tokens of a [group] if one comes next; one of `paragraphs` may be long."""
        token = self.peek()
        if token is None or token.kind != "[":
            return None
        self.raw()
        return self._until("]", token, paragraphs)

    def take(self, prefix: str) -> bool:
        """Take `prefix`, say a star, if it comes next."""
        token = self.peek(skip_space=False)
        if token is None or token.kind != "text" or not token.text.startswith(prefix):
            return False
        self.raw()
        rest = token.cut(len(prefix))[1]
        self.push([rest] if rest.text else [])
        return True

    def group_text(self) -> str:
        """Return the {group} that comes next as it was typed."""
        return spell(self.group()).strip()

    def _until(self, closer: str, opener: Token, paragraphs: bool = True) -> list[Token] | None:
        """Return the tokens up to `closer`; without one, put all back and return None."""
        limit = _MAX_ARGUMENT if self._unclosed < _MAX_UNCLOSED else _SHORT
        taken: list[Token] = []
        depth = 0
        while len(taken) < limit and (token := self.raw()) is not None:
            kind = token.kind
            if kind == closer and depth == 0:
                return taken
            taken.append(token)
            depth += (kind == "{") - (kind == "}")
            if depth < 0 or (kind == "par" and not paragraphs):
                break
        self._unclosed += 1
        self.note(f"a {opener.text} without its {closer}", opener)
        self.push([opener, *taken])
        return None

    def up_to(self, stop: Token) -> list[Token]:
        """Return the tokens before the one that is, or the text that holds, `stop`."""
        taken: list[Token] = []
        while len(taken) < _SHORT and (token := self.raw()) is not None:
            at = token.text.find(stop.text) if token.kind == stop.kind else -1
            if at >= 0 and stop.kind == "text":
                head, tail = token.cut(at)
                self.push([rest] if (rest := tail.cut(len(stop.text))[1]).text else [])
                return [*taken, head] if head.text else taken
            if at == 0 and token.text == stop.text:
                return taken
            taken.append(token)
        self.push(taken)
        return []

    # Macros

    def expand(self, call: Token, macro: Macro) -> None:
        """Let the body of `macro` be read next, with the arguments that follow."""
        origin = call.source.name, call.start
        self._expansions = self._expansions + 1 if origin == self._origin else 0
        self._origin = origin
        if len(self._frames) > _MAX_DEPTH or self._expansions > _MAX_EXPANSIONS:
            self.note(f"\\{call.text[:_SHORT]} expands without end and was left out", call)
            return
        arguments = [self._argument(parameter, call) for parameter in macro.parameters]
        end = call.end
        if call.exact and arguments:  # the call reaches to the end of its last argument
            for argument in arguments:
                for token in argument[-1:]:
                    if token.source is call.source and token.exact:
                        end = max(end, token.end)
            end += call.source.text.startswith("}", end)
        made: list[Token] = []
        for token in macro.body:
            if token.kind != "param":
                made.append(Token(token.kind, token.text, call.source, call.start, end, False))
            elif token.text.startswith("##"):  # of a macro that this one defines
                made.append(Token("param", token.text[1:], call.source, call.start, end, False))
            elif 0 < (number := int(token.text[1:] or 0)) <= len(arguments):
                made.extend(arguments[number - 1])
        self.work += len(made)
        self.push(made)

    def _argument(self, parameter: Parameter, call: Token) -> list[Token]:
        kind, default, stop = parameter
        if kind == "m":
            return self.group()
        if kind == "s":
            self.take("*")
            return []
        if kind == "d" and stop is not None:
            return self.up_to(stop)
        given = self.option()
        return made_by(call, default or []) if given is None else given

    def _switch(self, name: str) -> bool:
        """Set what \\newif declared, if `name` does that."""
        switch, value = (name[:-4], True) if name.endswith("true") else (name[:-5], False)
        if switch not in self.switches:
            return False
        self.switches[switch] = value
        return True

    # Files

    def enter(self, name: str, position: int) -> None:
        """Read the file `name` next, from `position` on."""
        lexer = Lexer(self.files[name])
        lexer.position = position
        self._frames.append(_Frame(lexer=lexer))
        self.open_files.append(name)
        self.read.setdefault(name)

    def leave(self) -> None:
        """Leave the innermost file unread from here on."""
        while self._frames:
            if self._frames.pop().lexer is not None:
                self.open_files.pop()
                return

    def end_document(self) -> None:
        """End the paper or, in a subfile with a \\begin{document} of its own, that file."""
        subfile = bool(self.open_files) and self.starts.get(self.open_files[-1], 0) > 0
        self.leave()
        if not subfile:
            self._frames.clear()
            self.open_files.clear()

    @property
    def too_deep(self) -> bool:
        """Whether macros and files are nested as no paper nests them."""
        return len(self._frames) > _MAX_DEPTH

    def lexer(self) -> Lexer | None:
        """Return the lexer if the next token comes from a file, raw text can then be taken."""
        frames = self._frames
        while frames and (tokens := frames[-1].tokens) is not None:
            if frames[-1].index < len(tokens):
                return None
            frames.pop()
        return frames[-1].lexer if frames else None


def made_by(call: Token, tokens: list[Token]) -> list[Token]:
    """Return `tokens` as they stand on the page in the place of `call`."""
    return [token._replace(source=call.source, start=call.start, end=call.end, exact=False)
            for token in tokens]  # fmt: skip


Handler = Callable[[TokenStream, Token], "Token | None"]
"""Does what a control sequence asks of the stream; returns the token that is left, if one is."""
