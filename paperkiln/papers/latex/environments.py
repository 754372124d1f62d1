"""Environments, and the tables in them: what \\begin and \\end do to the reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from paperkiln.papers.document import Section, Text
from paperkiln.papers.latex import commands
from paperkiln.papers.latex.stream import CELL
from paperkiln.papers.latex.tabular import Float, Grid
from paperkiln.papers.latex.tokens import Token
from paperkiln.papers.latex.writer import Writer

if TYPE_CHECKING:
    from paperkiln.papers.latex.reader import Reader

_EMPTY = Text("")
_NEAR = 20  # open floats among which an \end{…} looks for its own


def abstract(reader: Reader) -> Section:
    """Return the section that an abstract is."""
    return Section(Text("Abstract"), 1, "abstract", reader.top)


def begin(reader: Reader, token: Token) -> None:
    """Open an environment."""
    name = token.text
    if name == "document":
        _begin_document(reader)
    elif name in commands.TABULARS:
        _begin_table(reader, name)
    else:
        for _ in range(commands.ENVIRONMENT_ARGUMENTS.get(name, 0)):
            reader.stream.option()
            reader.stream.group()
        if name in commands.MATH_ENVIRONMENTS:
            reader.math = True
            reader.write(token, "\n")
        elif name in commands.PICTURES:
            reader.end_paragraph(token)
            reader.picture.open += 1
            reader.picture.bracket = 0
        elif reader.grids and (name in commands.MATRICES or name in commands.FLOATS):
            reader.grids[-1].nested += 1
        elif name == "abstract":
            reader.flush()
            reader.section, reader.in_body = abstract(reader), True
        elif name in ("appendix", "appendices"):
            reader.appendix = True
        elif name in commands.LISTS:
            reader.end_paragraph(token)
            reader.lists += 1
            reader.pass_over_option()
        elif name in commands.FLOATS:
            reader.end_paragraph(token)
            reader.pass_over_option()
            reader.floats.append(Float(name))
        elif not reader.math and not reader.picture.open:
            if name in commands.PARAGRAPHS:
                reader.end_paragraph(token)
            reader.pass_over_option()


def end(reader: Reader, token: Token) -> None:
    """Close an environment."""
    name = token.text
    if name == "document":
        reader.stream.end_document()
    elif name in commands.TABULARS:
        _end_table(reader)
    elif name in commands.MATH_ENVIRONMENTS:
        reader.math = False
        reader.write(token, "\n")
    elif name in commands.PICTURES:
        reader.picture.open = max(reader.picture.open - 1, 0)
    elif reader.grids and (name in commands.MATRICES or name in commands.FLOATS):
        reader.grids[-1].nested -= 1
        if reader.grids[-1].nested < 0:  # the table was never ended
            finish_table(reader)
            _end_float(reader, name)
    elif name == "abstract":
        reader.flush()
        reader.section, reader.in_body = reader.top, reader.begun
    elif name in commands.LISTS:
        reader.end_paragraph(token)
        reader.lists = max(reader.lists - 1, 0)
        reader.kind = "item" if reader.lists else "paragraph"
    elif name in commands.FLOATS:
        reader.end_paragraph(token)
        _end_float(reader, name)
    elif name in commands.PARAGRAPHS:
        reader.end_paragraph(token)


def _begin_document(reader: Reader) -> None:
    """Forget what the preamble seemed to say."""
    if reader.begun and reader.section is reader.top:  # it was in a file of its own
        reader.blocks.clear()
    reader.writer = Writer()
    reader.begun = reader.in_body = True


def _end_float(reader: Reader, name: str) -> None:
    if name.startswith(("figure", "table", "wrap")):
        reader.picture.open = 0  # one that the author forgot to end
    if not any(opened.name == name for opened in reader.floats[-_NEAR:]):
        return
    while reader.floats:
        ended = reader.floats.pop()
        ended.pair()
        if reader.floats:  # what found no partner may find it further out
            reader.floats[-1].tables += ended.tables
            reader.floats[-1].captions += ended.captions
        if ended.name == name:
            return


# Tables


def _begin_table(reader: Reader, name: str) -> None:
    stream = reader.stream
    stream.take("*")
    for i in range(commands.TABULARS[name]):
        if i < 2:
            stream.option()
        stream.group()
    if reader.grids:  # a table in a cell only breaks its lines
        reader.grids[-1].nested += 1
        return
    if name in commands.FLOATS:
        reader.floats.append(Float(name))
    if not reader.captures:
        reader.flush()
    reader.grids.append(Grid(len(reader.groups), reader.writer))
    reader.writer = Writer()


def _end_table(reader: Reader) -> None:
    if not reader.grids:
        return
    grid = reader.grids[-1]
    if grid.nested > 0:
        grid.nested -= 1
        return
    finish_table(reader)


def finish_table(reader: Reader) -> None:
    """Make the innermost open table a block."""
    grid = reader.grids[-1]
    while len(reader.groups) > grid.depth:
        reader.close_group()
    _end_cell(reader)
    reader.grids.pop()
    reader.writer = grid.outer
    table = grid.table(reader.section)
    if table is not None and reader.in_body:
        reader.blocks.append(table)
        if reader.floats:
            reader.floats[-1].tables.append(table)
    if reader.floats and reader.floats[-1].name in commands.TABULARS:
        _end_float(reader, reader.floats[-1].name)


def _in_cell(reader: Reader) -> bool:
    """Whether an & or a line end here belongs to the table itself."""
    grid = reader.grids[-1] if reader.grids else None
    return grid is not None and grid.nested <= 0 and len(reader.groups) <= grid.depth


def ampersand(reader: Reader, token: Token) -> None:
    """End a cell; in an aligned formula, leave a blank."""
    if _in_cell(reader):
        _end_cell(reader)
    else:
        reader.write(token, " ")


def line_end(reader: Reader, token: Token) -> None:
    """End the row or the line, at \\\\ or \\\\[2pt]."""
    following = reader.stream.peek(skip_space=False)
    if following is not None and (following.kind == "[" or following.text.startswith("*")):
        reader.stream.take("*")
        reader.pass_over_option()
    if _in_cell(reader):
        _end_cell(reader)
        reader.grids[-1].end_row()
    else:
        reader.write(token, "\n")


def _end_cell(reader: Reader) -> None:
    writer = reader.take_writer()
    reader.math = False
    reader.stream.work += CELL
    reader.grids[-1].end_cell(writer.text() if writer.length else _EMPTY)


def _rule(reader: Reader, token: Token) -> None:
    reader.pass_over_option()
    if reader.grids:
        reader.grids[-1].rule()


def _multicolumn(reader: Reader, token: Token) -> None:
    number = reader.stream.group_text()
    reader.stream.group()
    if _in_cell(reader) and re.fullmatch("[1-9][0-9]?", number):
        reader.grids[-1].spans = reader.grids[-1].spans[0], int(number)


def _multirow(reader: Reader, token: Token) -> None:
    stream = reader.stream
    stream.option()
    number = stream.group_text()
    stream.option()
    stream.group()
    stream.option()
    if _in_cell(reader) and re.fullmatch("[1-9][0-9]?", number):
        reader.grids[-1].spans = int(number), reader.grids[-1].spans[1]


def _end_part(reader: Reader, token: Token) -> None:
    if reader.grids:
        reader.grids[-1].end_part(token.text)


COMMANDS: dict[str, Callable[[Reader, Token], None]] = {
    **dict.fromkeys(("tabularnewline", "cr"), line_end),
    **dict.fromkeys("hline toprule midrule bottomrule Xhline hdashline".split(), _rule),
    **dict.fromkeys("endhead endfirsthead endfoot endlastfoot".split(), _end_part),
    "multicolumn": _multicolumn,
    "multirow": _multirow,
}
