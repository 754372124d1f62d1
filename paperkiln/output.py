"""How a verb speaks: results to standard output, remarks to standard error."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

# Control characters, which a small model may well produce, as pictures a terminal does not obey.
_PICTURES = {i: 0x2400 + i for i in range(32) if chr(i) not in "\n\t"} | {0x7F: 0x2421}
_PICTURES |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


def printable(text: str) -> str:
    """Return text with control characters, but newline and tab, as visible pictures."""
    return text.translate(_PICTURES)


def one_line(text: str) -> str:
    """Return what a stranger's file calls something, as it may stand in a line."""
    return printable(" ".join(text.splitlines()))


def tell(notes: Sequence[str]) -> None:
    """Show what a user should know beside the result."""
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def show(args: argparse.Namespace, values: Any, as_text: Callable[[Any], str]) -> None:
    """Print a result as JSON if --json asks for it, else as text."""
    if args.json:
        show_json(values)
    else:
        print(as_text(values))


def show_json(values: Any) -> None:
    """Print JSON for a program; arrays become lists."""
    print(json.dumps(values, indent=2, ensure_ascii=False, default=lambda array: array.tolist()))


def duration(seconds: float) -> str:
    """Return a time for a person: 42 s, 7 min, 3.5 h, 12 days."""
    for unit, size, most in (("s", 1, 90), ("min", 60, 5400), ("h", 3600, 172_800)):
        if seconds < most:
            return f"{seconds / size:.{1 if unit == 'h' else 0}f} {unit}"
    return f"{seconds / 86_400:,.0f} days"
