"""Which files are the paper: \\input and its kin, in reading order, from the main file on."""

from __future__ import annotations

import posixpath
import re

from paperkiln.papers.latex.stream import Handler, TokenStream
from paperkiln.papers.latex.tokens import Token, spell

_LONGEST_NAME = 300
_NOT_TEXT = (".bbl", ".bib", ".aux", ".toc")


def _include(stream: TokenStream, name: str, folder: str, what: str) -> None:
    """Go on with the file `name`; a missing one is noted, unless it only may be there."""
    found = _find(stream, name, folder)
    if found is None:
        if what and not re.search(r"[\\#]", name):
            stream.note(f"{what}{{{name[:_LONGEST_NAME]}}}: no such file in the source")
    elif found in stream.open_files:
        stream.note(f"{found} inputs itself; read once")
    elif stream.too_deep:
        stream.note(f"{found} lies too deep in files and macros and was left out")
    else:
        stream.enter(found, _start_of(stream, found))


def _start_of(stream: TokenStream, name: str) -> int:
    """Return where to read a file that is inputted: a subfile is a document of its own."""
    if name not in stream.starts:
        in_main = stream.files[stream.main].body
        stream.starts[name] = stream.files[name].body if in_main else 0
    return stream.starts[name]


def _find(stream: TokenStream, name: str, folder: str) -> str | None:
    name = name.strip().strip('"')
    if len(name) > _LONGEST_NAME:
        return None
    of_main = posixpath.dirname(stream.main)
    folders = [posixpath.join(of_main, folder), folder] if folder else []
    folders += [of_main, "", *(posixpath.dirname(o) for o in reversed(stream.open_files[-4:]))]
    for place in dict.fromkeys(folders):
        path = posixpath.normpath(posixpath.join(place, name))
        for candidate in (path, path + ".tex", path + ".ltx", path + ".sty"):
            if candidate in stream.files:
                return candidate
    return None


def _input(stream: TokenStream, token: Token) -> None:
    following = stream.peek()
    if following is not None and following.kind == "text":
        name = _unbraced_name(stream)
    else:
        name = stream.group_text()
    if name and not name.endswith(_NOT_TEXT):
        _include(stream, name, "", f"\\{token.text}")


def _unbraced_name(stream: TokenStream) -> str:
    """Read the name in TeX's own \\input name, which ends at a blank."""
    name = ""
    while (token := stream.peek(skip_space=not name)) and token.kind in ("text", "_", "~"):
        stream.raw()
        written = re.match(r"\S*", token.text)[0]  # type: ignore[index]
        name += written
        if len(written) < len(token.text):
            stream.push([token.cut(len(written))[1]])
            break
    return name


def _import(stream: TokenStream, token: Token) -> None:
    stream.take("*")
    folder, name = stream.group_text(), stream.group_text()
    if token.text.startswith("sub") and stream.open_files:
        folder = posixpath.join(posixpath.dirname(stream.open_files[-1]), folder)
    _include(stream, name, folder or ".", f"\\{token.text}")


def _package(stream: TokenStream, token: Token) -> None:
    """Read the macros of a package that comes with the paper."""
    stream.option()
    for name in spell(stream.group()).split(","):
        if f"{name.strip()}.sty" in stream.files:
            _include(stream, f"{name.strip()}.sty", "", "")


def _end_document(stream: TokenStream, token: Token) -> None:
    stream.end_document()


def _end_input(stream: TokenStream, token: Token) -> None:
    stream.leave()


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys("input include subfile subfileinclude InputIfFileExists".split(), _input),
    **dict.fromkeys(
        "import subimport includefrom subincludefrom inputfrom subinputfrom".split(), _import
    ),
    **dict.fromkeys(("usepackage", "RequirePackage"), _package),
    "endinput": _end_input,
    "bye": _end_document,
}
