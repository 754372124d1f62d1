"""A table of text, aligned for a terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence

from paperkiln.output import printable


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return the table, the first `left` columns to the left and the others to the right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for i, name in enumerate(header):
        table.add_column(Text(name), justify="left" if i < left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(printable(value)) for value in row))
    out = io.StringIO()
    Console(file=out, width=1000, color_system=None, force_terminal=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def probability(p: float | None) -> str:
    """Return a p value as papers print it."""
    if p is None:
        return "-"
    return "<.0001" if p < 0.0001 else f"{p:.4f}".lstrip("0")
