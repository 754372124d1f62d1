"""What the author defines: \\newcommand, \\def and their kin, environments, acronyms."""

from __future__ import annotations

import re
from collections.abc import Iterator

from paperkiln.papers.latex.commands import PROTECTED
from paperkiln.papers.latex.stream import Handler, Macro, Parameter, TokenStream, made_by
from paperkiln.papers.latex.tokens import Token, spell, tokenize

_LOOKS = re.compile(r"\*?(?:\[[^\]\n]*\])?")  # of a listing or a link
_SHORT = 200  # characters of an environment's name
_VERBATIM = frozenset({"verbatim", "verbatim*", "Verbatim", "lstlisting", "minted", "alltt"})
_DROPPED = frozenset(
    "comment filecontents filecontents* thebibliography CCSXML tcblisting*".split()
)


def _define(stream: TokenStream, name: str, macro: Macro, keep: bool = False) -> None:
    if not name or name in PROTECTED or (keep and name in stream.macros):
        return
    if "@" in name or any("@" in t.text for t in macro.body if t.kind == "word"):
        return  # the inner works of a style file
    stream.macros[name] = macro


def _name(stream: TokenStream) -> str:
    """Return the name in \\newcommand{\\name} or \\newcommand\\name."""
    return next((token.text for token in stream.group() if token.kind == "word"), "")


def _parameters(stream: TokenStream) -> list[Parameter]:
    """Read the [2][default] of a \\newcommand."""
    count = spell(stream.option() or []).strip()
    default = stream.option()
    parameters = [Parameter()] * (int(count) if count in set("123456789") else 0)
    if parameters and default is not None:
        parameters[0] = Parameter("o", default)
    return parameters


def _new_command(stream: TokenStream, token: Token) -> None:
    stream.take("*")
    name, parameters = _name(stream), _parameters(stream)
    _define(stream, name, Macro(stream.group(), parameters), keep=token.text[0] == "p")


def _def(stream: TokenStream, token: Token) -> None:
    name = stream.raw()
    parameters: list[Parameter] = []
    while (part := stream.peek(skip_space=False)) is not None and part.kind != "{":
        stream.raw()
        if part.kind == "param":
            parameters.append(Parameter())
        elif part.kind == "par":
            return
        elif parameters:  # \def\name#1,#2.{…}: an argument ends at the comma, one at the stop
            parameters[-1] = Parameter("d", stop=part)
    body = stream.group()
    if name is not None and name.kind == "word":
        _define(stream, name.text, Macro(body, parameters))


def _let(stream: TokenStream, token: Token) -> None:
    name = stream.raw()
    stream.peek()
    stream.take("=")
    value = stream.peek()
    stream.raw()
    if name is not None and value is not None and name.kind == "word":
        known = stream.macros.get(value.text) if value.kind == "word" else None
        _define(stream, name.text, known or Macro([value], []))


def _operator(stream: TokenStream, token: Token) -> None:
    stream.take("*")
    name = _name(stream)
    _define(stream, name, Macro(stream.group(), []))


def _document_command(stream: TokenStream, token: Token) -> None:
    name, specification = _name(stream), stream.group_text()
    parameters = list(_signature(specification))
    _define(stream, name, Macro(stream.group(), parameters))


def _signature(specification: str) -> Iterator[Parameter]:
    """Yield the parameters of an xparse signature: s m o O{default} …"""
    for kind, default in re.findall(r"([a-zA-Z])\s*((?:\{[^{}]*\})?)", specification):
        if kind in "sot":
            yield Parameter("s" if kind == "t" else kind)
        elif kind in "Oo":
            yield Parameter("o", tokenize(default[1:-1]))
        else:
            yield Parameter()


# Acronyms: the short form stands for its first use too


def _acronym(stream: TokenStream, token: Token) -> None:
    """Read \\newacronym{label}{short}{long}, \\acro{label}[short]{long} and \\acrodef."""
    stream.option()
    label = stream.group()
    short = stream.group() if token.text == "newacronym" else stream.option() or label
    stream.acronyms[spell(label).strip()] = short, stream.group()


def _glossary_entry(stream: TokenStream, token: Token) -> None:
    """Read \\newglossaryentry{label}{name=…, description=…} and \\DeclareAcronym."""
    label, entry = stream.group_text(), spell(stream.group())
    keys = dict(re.findall(r"(\w+)\s*=\s*\{?([^{},]*)", entry))
    short = keys.get("short") or keys.get("name") or label
    stream.acronyms[label] = tokenize(short), tokenize(keys.get("long") or short)


def _use_acronym(stream: TokenStream, token: Token) -> None:
    stream.take("*")
    stream.option()
    label = stream.group()
    short, long = stream.acronyms.get(spell(label).strip(), (label, label))
    if stream.too_deep:
        return
    wanted = long if token.text in ("acrlong", "acl", "aclp", "glsdesc") else short
    stream.push(wanted if wanted is label else made_by(token, wanted))


# Environments


def _new_environment(stream: TokenStream, token: Token) -> None:
    stream.take("*")
    name, parameters = stream.group_text(), _parameters(stream)
    before, after = stream.group(), stream.group()
    spelled = spell(before)
    if name not in PROTECTED and "@" not in spelled and f"\\begin {{{name}}}" not in spelled:
        stream.environments[name] = Macro(before, parameters), Macro(after, [])


def _environment(stream: TokenStream) -> str:
    """Return the name in \\begin{name}; of a broken \\end{table> what is legible."""
    brace = stream.raw()
    if brace is None or brace.kind != "{":
        stream.push([brace] if brace else [])
        return ""
    parts: list[Token] = []
    while (token := stream.raw()) is not None:
        if token.kind == "}":
            return spell(parts).strip()
        parts.append(token)
        if token.kind not in ("text", "_") or len(token.text) > _SHORT or len(parts) > _SHORT:
            break
    stream.note("a { without its }", brace)
    legible = re.match(
        r"\s*[A-Za-z]*\*?[>)\]]?", "".join(t.text for t in parts[:1] if t.kind == "text")
    )
    name = legible[0]  # type: ignore[index]
    stream.push([parts[0].cut(len(name))[1], *parts[1:]] if name else parts)
    return name.strip(" >)]")


def _begin(stream: TokenStream, token: Token) -> Token | None:
    name = _environment(stream)
    dropped = name in _DROPPED or name in stream.dropped_environments
    if dropped or name in _VERBATIM:
        lexer = stream.lexer()
        content = lexer.take_until(f"\\end{{{name}}}") if lexer else None
        return None if dropped else content
    if name in stream.environments:
        stream.expand(token, stream.environments[name][0])
        return None
    return token._replace(kind="begin", text=name)


def _end(stream: TokenStream, token: Token) -> Token | None:
    name = _environment(stream)
    if name in stream.environments:
        stream.expand(token, stream.environments[name][1])
        return None
    return token._replace(kind="end", text=name)


def _drop(stream: TokenStream, token: Token) -> None:
    stream.dropped_environments.add(stream.group_text())


def _verb(stream: TokenStream, token: Token) -> Token | None:
    lexer = stream.lexer()
    if lexer is None:
        return None
    lexer.position = _LOOKS.match(lexer.text, lexer.position).end()  # type: ignore[union-attr]
    delimiter = lexer.text[lexer.position : lexer.position + 1]
    lexer.position += len(delimiter)
    content = lexer.take_until({"": "\n", "{": "}"}.get(delimiter, delimiter))
    return content._replace(kind="text") if len(content.text) < _SHORT else None


def _address(stream: TokenStream, token: Token) -> None:
    """Pass over the address in \\url{…} and \\href{…}{text}: a % in it begins no comment."""
    lexer = stream.lexer()
    if lexer is None:
        stream.option()
        stream.group()
        return
    lexer.position = _LOOKS.match(lexer.text, lexer.position).end()  # type: ignore[union-attr]
    if lexer.text.startswith("{", lexer.position):
        lexer.take_until("}")


def _letters(stream: TokenStream, token: Token) -> None:
    """Obey \\makeatletter and \\makeatother."""
    if (lexer := stream.lexer()) is not None:
        lexer.at_is_letter = token.text == "makeatletter"


def _ignore(stream: TokenStream, token: Token) -> None:
    return None


def _each(names: str, handler: Handler) -> dict[str, Handler]:
    return dict.fromkeys(names.split(), handler)


HANDLERS: dict[str, Handler] = {
    **_each(
        "newcommand renewcommand providecommand DeclareRobustCommand newrobustcmd renewrobustcmd "
        "newcommandx",
        _new_command,
    ),
    **_each("def gdef edef xdef", _def),
    "let": _let,
    "DeclareMathOperator": _operator,
    **_each(
        "NewDocumentCommand RenewDocumentCommand ProvideDocumentCommand DeclareDocumentCommand "
        "NewExpandableDocumentCommand",
        _document_command,
    ),
    **_each("newenvironment renewenvironment", _new_environment),
    **_each("newacronym acro acrodef newacro", _acronym),
    **_each("newglossaryentry DeclareAcronym", _glossary_entry),
    **_each(
        "gls Gls GLS glspl Glspl acrshort acrlong acrfull ac acs acl acf acp Ac acfp aclp",
        _use_acronym,
    ),
    "excludecomment": _drop,
    "begin": _begin,
    "end": _end,
    **_each("verb lstinline", _verb),
    **_each("url nolinkurl href", _address),
    **_each("makeatletter makeatother", _letters),
    **_each("global long outer protected xspace relax expandafter noexpand", _ignore),
}
