"""Which branch of a conditional is on the page: \\iffalse, \\newif switches, toggles.

Few tests can be decided without TeX. One that cannot is taken to hold: what an author hides is
hidden by \\iffalse, \\if0 or a switch of their own.
"""

from __future__ import annotations

import re

from paperkiln.papers.latex.stream import Handler, TokenStream
from paperkiln.papers.latex.tokens import Token, spell

_UNTRUE = frozenset({"iffalse", "ifxetex", "ifluatex", "ifeof", "ifvoid"})
_NUMBER = re.compile(r"\s*[-+]?[0-9]*\.?[0-9]*(?:pt|em|ex|mm|cm|in|sp)? ?")
# Of other packages: their tests and branches are {groups}, no \fi ends them.
_BRACED = frozenset(
    "iff ifthenelse iftoggle ifbool ifdef ifundef ifcsdef ifcsundef ifblank ifstrempty ifstrequal "
    "ifnumcomp ifdimcomp ifboolexpr iflanguage ifnextchar ifempty ifnotempty".split()
)


def _opens(stream: TokenStream, name: str) -> bool:
    """Whether \\name needs a \\fi: also when a style file that is not here defines it."""
    macro = stream.macros.get(name)  # of \let\ifdraft\iffalse
    return (
        name.startswith("if")
        and name not in _BRACED
        and (macro is None or any(token.text.startswith("if") for token in macro.body[:1]))
    )


def _condition(stream: TokenStream, token: Token) -> Token | None:
    name = token.text
    if name in _BRACED:
        return token
    if name[2:] in stream.switches:
        taken = stream.switches[name[2:]]
    elif name in _TESTS:
        taken = _TESTS[name](stream)
    else:
        taken = name not in _UNTRUE
    if not taken:
        _skip_branch(stream, stop_at_else=True)
    return None


def _test_defined(stream: TokenStream) -> bool:
    token = stream.raw()
    return token is not None and token.text in stream.macros


def _test_same(stream: TokenStream) -> bool:
    """Decide \\ifx\\name\\undefined; any other two are taken to be the same."""
    names = [token.text for token in (stream.raw(), stream.raw()) if token is not None]
    return "undefined" not in names or not any(name in stream.macros for name in names)


def _test_characters(stream: TokenStream) -> bool:
    """Decide \\if 01 and \\if0, by which authors hide text; any other two are taken as equal."""
    token = stream.peek()
    compared = token.text[:2] if token is not None and token.kind == "text" else ""
    if compared[:1] not in ("0", "1"):
        for _ in range(2):
            stream.group()
        return True
    for _ in compared.strip():
        stream.group()
    return compared in ("00", "11")


def _test_number(stream: TokenStream) -> bool:
    """Decide \\ifnum 1<2, with numbers written out; any other comparison is taken to hold."""
    left = _operand(stream)
    relation = next((sign for sign in "<>=" if stream.take(sign)), "")
    right = _operand(stream) if relation else ""
    try:
        low, high = float(left), float(right)
    except ValueError:
        return True
    return {"<": low < high, ">": low > high, "=": low == high}.get(relation, True)


def _test_odd(stream: TokenStream) -> bool:
    _operand(stream)
    return False


def _test_case(stream: TokenStream) -> bool:
    """Take the first case: \\or ends it."""
    _operand(stream)
    return True


def _operand(stream: TokenStream) -> str:
    """Take a number or a register, and return it as it is typed."""
    token = stream.peek()
    if token is None or token.kind != "text":
        if token is not None and token.kind == "word":
            stream.raw()
            name = f"\\{token.text}" + (stream.group_text() if token.text == "value" else "")
            stream.peek()
            return name
        return ""
    stream.raw()
    number, rest = token.cut(_NUMBER.match(token.text).end())  # type: ignore[union-attr]
    stream.push([rest] if rest.text else [])
    return number.text.strip()


_TESTS = {
    "ifdefined": _test_defined,
    "ifx": _test_same,
    "if": _test_characters,
    "ifcat": _test_characters,
    "ifnum": _test_number,
    "ifdim": _test_number,
    "ifodd": _test_odd,
    "ifcase": _test_case,
}


def _skip_branch(stream: TokenStream, stop_at_else: bool) -> None:
    depth = 0
    while (token := stream.raw()) is not None:
        if token.kind != "word":
            continue
        name = token.text
        if name == "fi":
            if depth == 0:
                return
            depth -= 1
        elif name == "else" and depth == 0 and stop_at_else:
            return
        elif _opens(stream, name):
            depth += 1
    stream.note("a conditional (\\iffalse, \\ifx …) is never closed by \\fi")


def _else(stream: TokenStream, token: Token) -> None:
    _skip_branch(stream, stop_at_else=False)


def _ignore(stream: TokenStream, token: Token) -> None:
    return None


def _new_if(stream: TokenStream, token: Token) -> None:
    name = stream.raw()
    if name is not None and name.text.startswith("if"):
        stream.switches.setdefault(name.text[2:], False)


def _set_toggle(stream: TokenStream, token: Token) -> None:
    name = stream.group_text()
    value = stream.group_text() if token.text.startswith("set") else token.text
    stream.switches[name] = value.endswith("true")


def _if_then_else(stream: TokenStream, token: Token) -> None:
    test = re.sub(r"\\boolean|[{}\s]", "", spell(stream.group()))
    held, otherwise = stream.group(), stream.group()
    undecided = token.text == "ifthenelse"
    stream.push(held if stream.switches.get(test, undecided) else otherwise)


HANDLERS: dict[str, Handler] = {
    "if": _condition,  # and every word that begins so
    "else": _else,
    "or": _else,
    "fi": _ignore,
    "newif": _new_if,
    **dict.fromkeys(
        "toggletrue togglefalse booltrue boolfalse setbool settoggle setboolean".split(),
        _set_toggle,
    ),
    **dict.fromkeys(("ifthenelse", "iftoggle", "ifbool"), _if_then_else),
}
