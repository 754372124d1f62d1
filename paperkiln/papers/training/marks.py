"""Text made ready for patterns: single spaces, and every number overwritten by marks.

Offsets always lead back: marks are as long as the number, and `squeezed` returns the way.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable

from paperkiln.papers.numbers.quantities import Quantity, quantities

_MARK, _REST = "\ue000", "\ue001"
NUMBER = f"{_MARK}{_REST}*"  # in a pattern over a marked sentence
IN_NUMBER = f"{_MARK}{_REST}"  # in a character class of such a pattern

_SPACE = re.compile(
    r"\s{2,}|\s(?=[,.;)_])|(?<=_)\s|[\n\t]|(?<![0-9])[\u2009\u00a0\u202f]|"
    r"[\u2009\u00a0\u202f](?![0-9])"
)  # digits are grouped by thin spaces


def squeezed(string: str) -> tuple[str, Callable[[int], int]]:
    """Return `string` with its white space single, and what leads its offsets back."""
    pieces, ends, shifts = [], [0], [0]
    at = length = 0
    for match in _SPACE.finditer(string):
        after = string[match.end() : match.end() + 1]
        tight = string[match.start() - 1 : match.start()] == "_" or after in tuple(",.;)_")
        space = "" if tight else " "
        pieces += [string[at : match.start()], space]
        length += match.start() - at + len(space)
        at = match.end()
        ends.append(length)
        shifts.append(at - length)
    return "".join([*pieces, string[at:]]), lambda i: i + shifts[bisect_right(ends, i) - 1]


def marked(string: str) -> tuple[str, dict[int, Quantity]]:
    """Return `string` with every number overwritten by marks, and the numbers by their start."""
    plain = _plain(string.replace(_MARK, " ").replace(_REST, " "))
    numbers = {q.start: q for q in quantities(plain)}
    pieces, at = [], 0
    for start, quantity in sorted(numbers.items()):
        pieces += [plain[at:start], _MARK, _REST * (quantity.end - start - 1)]
        at = quantity.end
    return "".join([*pieces, plain[at:]]), numbers


_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻−", "0123456789--")
_POWER = re.compile(
    r"(?<![\w.])(?:([0-9]+(?:\.[0-9]+)?)\s?[×·*x]\s?)?10(?:\^([-−]?[0-9]{1,2})(?![0-9]|\.[0-9])|"
    r"([⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2})(?![⁰¹²³⁴⁵⁶⁷⁸⁹]))"
)
_EULER = re.compile(r"([0-9]+(?:\.[0-9]+)?)e\^([-−]?)([0-9]{1,2})(?![0-9])")


def _plain(string: str) -> str:
    """Write 2×10^-5, 2×10⁻⁵ and 2e^-5 as 2e-5, padded with zeros so that every offset stays."""
    string = _POWER.sub(
        lambda m: f"{m[1] or 1}e{(m[2] or m[3]).translate(_SUPERSCRIPTS)}".rjust(len(m[0]), "0"),
        string,
    )
    return _EULER.sub(lambda m: f"{m[1]}e{'-' if m[2] else ''}{m[3]}".rjust(len(m[0]), "0"), string)
