"""Numbers as papers write them: 151,936, 2^15, 3×10^-4, 128K, 1.3 billion, eight."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_WORDS = {
    **{word: n for n, word in enumerate(_ONES)},
    **{word: 10 * n for n, word in enumerate(_TENS, 2)},
    **{f"{ten}-{_ONES[i]}": 10 * n + i for n, ten in enumerate(_TENS, 2) for i in range(1, 10)},
    "dozen": 12,
    "single": 1,
}
_SUFFIX = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_MAX_DIGITS, _MAX_BITS = 18, 64
_LARGEST = 1e18  # nothing that a paper counts is more
_SCALE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}

# "128,256" is one number and "128, 256" are two; thin spaces group digits as commas do.
_DIGITS = (
    r"[0-9]{1,3}(?:[,\u2009\u202f\u00a0][0-9]{3})+(?![0-9])(?:\.[0-9]+)?"
    r"|[0-9]{1,3}\ 0[0-9]{2}(?![0-9.])"
    r"|[0-9]+(?:\.[0-9]+)?|\.[0-9]+"
)
_BIG = r"thousand|million|billion|trillion"
_NUMBER = re.compile(
    rf"(?<![\w.^])(?P<sign>[-−])?(?:(?P<digits>{_DIGITS})"
    r"(?:e(?P<exp>[-+−]?[0-9]{1,2})\b)?"
    r"(?:\s?[×·*xX]\s?10\^(?P<ten>[-+−]?[0-9]{1,2}))?"
    r"(?:\^(?P<power>[-−]?[0-9]{1,2})(?![0-9.]))?"
    rf"(?:[\s-]?(?P<suffix>[KkMBT])(?![A-Za-z0-9])|[\s-]?(?P<scale>{_BIG})\b)?"
    r"(?P<percent>\s?%)?"
    rf"|(?P<word>{'|'.join(sorted(_WORDS, key=len, reverse=True))})\b"
    rf"(?:[\s-](?P<word_scale>{_BIG})\b)?)",
    re.IGNORECASE,
)
# A number that names something: Figure 3, Section 2, step 5, Llama 3, [12]
_NAMES = re.compile(
    r"(?:figures?|fig\.|tables?|tab\.|sections?|sec\.|appendix|equations?|eq\.|algorithm|chapter|"
    r"phase|stage|page|theorem|lemma|version|row|col(?:umn)?|ref\.|line|case|example)[\s\u00a0]*$",
    re.IGNORECASE,
)


_BY = re.compile(r"\s?[x×]\s?[0-9]")
_BY_BEFORE = re.compile(r"[0-9]\s?[x×]\s?$")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number at string[start:end]; `kilo` when it was written with a K."""

    value: int | float
    start: int
    end: int
    kilo: bool = False
    percent: bool = False
    scaled: bool = False
    """Written with M, B, T, million or billion."""

    @property
    def binary(self) -> int | float:
        """The value with K read as 1024, as context lengths are meant (4K is 4096)."""
        return round(self.value / 1000 * 1024) if self.kilo else self.value


def quantities(string: str) -> list[Quantity]:
    """Return every number in `string`, in order; those that number a figure or section not."""
    found = []
    for match in _NUMBER.finditer(string):
        start, end = match.span()
        value = _value(match)
        if value is None or _NAMES.search(string[max(start - 14, 0) : start]):
            continue
        if _BY.match(string, end) or _BY_BEFORE.search(string[max(start - 6, 0) : start]):
            continue  # 16×16 is the shape of a patch, a tile or a kernel
        suffix = (match["suffix"] or "").lower()
        found.append(
            Quantity(
                value,
                start,
                end,
                kilo=suffix == "k",
                percent=bool(match["percent"]),
                scaled=suffix in ("m", "b", "t") or bool(match["scale"] or match["word_scale"]),
            )
        )
    return found


def _value(match: re.Match[str]) -> int | float | None:
    if match["word"]:
        return _WORDS[match["word"].lower()] * _SCALE.get((match["word_scale"] or "").lower(), 1)
    digits = re.sub(r"[,\u2009\u202f\u00a0 ]", "", match["digits"])
    if len(digits) > _MAX_DIGITS:
        return None
    value: int | float = float(digits) if "." in digits else int(digits)
    exponent, power = _exponent(match["exp"] or match["ten"]), _exponent(match["power"])
    if (value == 0 and power < 0) or (value > 1 and power * math.log2(value) > _MAX_BITS):
        return None
    if match["power"]:
        value = value**power
    value *= 10**exponent if exponent >= 0 else 10.0**exponent
    value *= _SUFFIX.get((match["suffix"] or "").lower(), 1)
    value *= _SCALE.get((match["scale"] or "").lower(), 1)
    if value > _LARGEST:
        return None
    value = -value if match["sign"] else value
    whole = round(value)
    return whole if abs(value - whole) <= 1e-9 * abs(value) else value  # 8.2B is a whole number


def _exponent(text: str | None) -> int:
    return int(text.replace("−", "-")) if text else 0
