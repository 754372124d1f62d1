"""What each command leaves on the page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING

from paperkiln.papers.document import Section, Text, section_kind
from paperkiln.papers.latex import commands, environments
from paperkiln.papers.latex.stream import CELL
from paperkiln.papers.latex.tokens import Token

if TYPE_CHECKING:
    from paperkiln.papers.latex.reader import Reader

_LENGTH = re.compile(
    r"\s*=?\s*[-+]?\s*[0-9]*[.,]?[0-9]*\s*(?:true)?(?:pt|em|ex|mm|cm|in|mu|sp|bp|pc|fil+)?"
    r"(?:\s+(?:plus|minus)\s+[-+]?[0-9]*\.?[0-9]*\s*(?:pt|em|ex|mm|cm|in|mu|fil+)?){0,2}"
)


def symbol(reader: Reader, token: Token) -> None:
    """Write what \\% or \\, or \\'e stands for."""
    name = token.text
    if name == "\\":
        environments.line_end(reader, token)
    elif name in "()[]" and name:
        reader.math = name in "(["
        if name in "[]":
            reader.write(token, "\n")
    elif name in commands.ACCENTS and not reader.math:
        _accent(reader, token)
    else:
        reader.write(token, commands.CHARACTERS.get(name, ""))


def _accent(reader: Reader, token: Token) -> None:
    letters = [t for t in reader.stream.group() if t.kind in ("text", "word")]
    if letters:
        letter = letters[0].text
        made = unicodedata.normalize("NFC", letter[:1] + commands.ACCENTS[token.text])
        end = letters[0].end if letters[0].exact and token.exact else token.end
        reader.write(token._replace(end=end), made + letter[1:])


def word(reader: Reader, token: Token) -> None:
    """Write what a control word leaves; one that is not known leaves its arguments."""
    name = token.text
    if name in commands.SYMBOLS:
        reader.write(token, commands.SYMBOLS[name])
    elif name in commands.SILENT:
        _silent(reader, token)
    elif name in commands.HEADINGS:
        _heading(reader, token)
    elif name in commands.CITATIONS or name.lower().startswith("cite"):
        _cite(reader, token)
    elif name in _WORDS:
        _WORDS[name](reader, token)
    elif name in commands.ACCENTS and not reader.math:
        _accent(reader, token)
    elif name in commands.FRACTIONS:
        _fraction(reader, token)
    elif name in commands.TITLES:
        reader.flush()
        reader.capture_argument(lambda text: _set_title(reader, text))
    elif name in commands.STYLED:
        _styled(reader, name)
    elif reader.picture.open and name in ("node", "path", "draw"):
        reader.picture.node = reader.picture.node or name == "node"
        reader.picture.bracket = 0
    elif name in commands.STATEMENTS:
        reader.write(token, "\n")
    elif (name in commands.LENGTHS or name.endswith(commands.PARAMETERS)) and _length(reader, name):
        pass
    elif name in commands.LOOKS or reader.picture.open or "@" in name:
        if not reader.math:
            reader.pass_over_option()
    else:  # of a style file that is not here: its name says more than nothing
        reader.write(token, name)


def _silent(reader: Reader, token: Token) -> None:
    stream = reader.stream
    stream.take("*")
    arguments = commands.SILENT[token.text]
    for _ in range(max(arguments, 1)):
        while stream.option() is not None:
            pass
        if token.text == "cmidrule" and stream.take("("):  # \cmidrule(lr){1-2}
            stream.up_to(token.become("text", ")"))
        if arguments:
            stream.group()


def _styled(reader: Reader, name: str) -> None:
    stream = reader.stream
    stream.take("*")
    stream.option()
    for _ in range(commands.STYLED[name]):
        stream.group()
    reader.pass_over_option()


def _length(reader: Reader, name: str) -> bool:
    """Pass over the length in \\vskip 2pt or \\parskip=2pt, if there is one: \\bigskip has none."""
    following = reader.stream.peek(skip_space=False)
    if following is None or following.kind != "text":
        return name in commands.LENGTHS
    length = _LENGTH.match(following.text)[0]  # type: ignore[index]
    written = "=" in length or (
        name not in commands.LOOKS and re.search("[0-9][ a-z]*[a-z]", length)
    )
    found = name in commands.LENGTHS or bool(written)
    if found:
        reader.stream.take(length)
    return found


def _fraction(reader: Reader, token: Token) -> None:
    """Write a/b, and (a+b)/c where the line would otherwise say something else."""
    parts = [reader.stream.group(), reader.stream.group()]
    opened, slash, closed = (token.become("text", mark) for mark in "(/)")
    above, below = ([opened, *part, closed] if _is_sum(part) else part for part in parts)
    reader.stream.push([*above, slash, *below])


def _root(reader: Reader, token: Token) -> None:
    reader.write(token, "√")
    reader.pass_over_option()
    part = reader.stream.group()
    opened, closed = (token.become("text", mark) for mark in "()")
    reader.stream.push([opened, *part, closed] if _is_sum(part) else part)


def _is_sum(tokens: list[Token]) -> bool:
    """Whether a + or - stands in the formula itself, not in an exponent."""
    depth = 0
    typed = ""
    for token in tokens:
        depth += (token.kind == "{") - (token.kind == "}")
        typed += token.text if depth == 0 else ""
    return bool(re.search(r"\S\s*[-+]", typed))


def _set_title(reader: Reader, text: Text) -> None:
    reader.title = reader.title or text


def _heading(reader: Reader, token: Token) -> None:
    level = commands.HEADINGS[token.text]
    if level > 3 and (reader.grids or reader.captures):
        return  # a \paragraph in a cell is a bold word
    reader.close_all()
    reader.picture.open = 0
    reader.flush()

    def add(title: Text) -> None:
        parent: Section | None = reader.section
        while parent and parent.level >= level and parent.parent:
            parent = parent.parent
        kind = section_kind(title.string)
        if kind == "other" and parent is not None and parent.kind:
            kind = parent.kind
        reader.appendix = reader.appendix or title.string.lower().startswith(("append", "supplem"))
        reader.section = Section(title, level, kind, parent, reader.appendix)
        reader.add_block("heading")(title)

    reader.capture_argument(add)


def _cite(reader: Reader, token: Token) -> None:
    reader.stream.work += CELL
    stream = reader.stream
    stream.take("*")
    while stream.option() is not None:
        pass
    keys = stream.group_text()
    if reader.in_body or reader.captures:
        reader.writer.cite(keys)
    if token.text in commands.TEXTUAL_CITATIONS:
        reader.write(token, keys.split(",")[0].split(":")[-1].strip())


def _footnote(reader: Reader, token: Token) -> None:
    reader.capture_argument(reader.add_block("footnote"))


def _caption(reader: Reader, token: Token) -> None:
    if token.text == "captionof":
        reader.stream.take("*")
        reader.stream.group()

    def add(text: Text) -> None:
        if reader.floats:
            reader.floats[-1].captions.append(text)
        reader.add_block("caption", reader.floats[-1].name if reader.floats else "")(text)

    reader.capture_argument(add)


def _part_caption(reader: Reader, token: Token) -> None:
    """Read \\subfloat[its caption]{what it holds}."""
    caption = reader.stream.option()
    if caption:
        mark = token.become
        reader.stream.push([mark("word", "caption"), mark("{", "{"), *caption, mark("}", "}")])


def _item(reader: Reader, token: Token) -> None:
    reader.end_paragraph(token)
    if not (reader.grids or reader.captures):
        reader.kind = "item"
    label = reader.stream.option()
    if label:
        reader.stream.push([*label, token.become("word", "labelend")])


def _label_end(reader: Reader, token: Token) -> None:
    writer = reader.writer
    writer.label_end = writer.length
    reader.write(token, ": " if re.search(r"\w\w$", writer.label()) else " ")


def _abstract(reader: Reader, token: Token) -> None:
    following = reader.stream.peek()
    if following is None or following.kind != "{":
        return
    reader.flush()

    def add(text: Text) -> None:
        outer, in_body = reader.section, reader.in_body
        reader.section, reader.in_body = environments.abstract(reader), True
        reader.add_block("paragraph")(text)
        reader.section, reader.in_body = outer, in_body

    reader.capture_argument(add)


def _start_appendix(reader: Reader, token: Token) -> None:
    reader.appendix = True


def _script(reader: Reader, token: Token) -> None:
    reader.write(token, "^" if "super" in token.text else "_")


def _first_only(reader: Reader, token: Token) -> None:
    """Show the first of two arguments, as \\texorpdfstring does."""
    shown = reader.stream.group()
    reader.stream.group()
    reader.stream.push(shown)


def _shown_option(reader: Reader, token: Token) -> None:
    """Read the [text] of \\twocolumn, which holds the title and sometimes the abstract."""
    reader.stream.push(reader.stream.option(paragraphs=True) or [])


def _quantity(reader: Reader, token: Token) -> None:
    """Read \\SI{3}{\\giga\\byte}."""
    stream = reader.stream
    stream.option()
    number, unit = stream.group(), stream.group()
    stream.push([*number, token.become("text", " "), *_units(token, unit)])


def _unit(reader: Reader, token: Token) -> None:
    reader.stream.option()
    reader.stream.push(_units(token, reader.stream.group()))


def _units(token: Token, unit: list[Token]) -> list[Token]:
    return [
        part.become("text", commands.UNITS[part.text])
        if part.kind == "word" and part.text in commands.UNITS
        else part
        for part in unit
    ]


def _dingbat(reader: Reader, token: Token) -> None:
    number = reader.stream.group_text()
    reader.write(token, "✓" if number in ("51", "52") else "✗" if "53" <= number <= "56" else "")


def _space(reader: Reader, token: Token) -> None:
    if token.text != "hfill":
        reader.stream.take("*")
        reader.stream.group()
    reader.write(token, " ")


def _end_paragraph(reader: Reader, token: Token) -> None:
    reader.end_paragraph(token)


_Command = Callable[["Reader", Token], None]


def _each(names: str, handler: _Command) -> dict[str, _Command]:
    return dict.fromkeys(names.split(), handler)


_WORDS: dict[str, _Command] = {
    **_each("footnote footnotetext blfootnote tablefootnote", _footnote),
    **_each("caption captionof subcaption subcaptionbox tabcaption figcaption", _caption),
    **_each("subfloat subfigure subtable", _part_caption),
    **_each("item", _item),
    "labelend": _label_end,
    "abstract": _abstract,
    **_each("appendix appendices", _start_appendix),
    **_each("textsuperscript textsubscript", _script),
    **_each("par endgraf", _end_paragraph),
    **_each("hspace hfill", _space),
    "sqrt": _root,
    "texorpdfstring": _first_only,
    "twocolumn": _shown_option,
    **_each("SI qty", _quantity),
    **_each("si unit", _unit),
    "ding": _dingbat,
    **environments.COMMANDS,
}
