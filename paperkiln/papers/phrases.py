"""Lists of words and phrases as one pattern."""

from __future__ import annotations

import re


def phrases(*listed: str) -> re.Pattern[str]:
    """Return a pattern for any of the phrases, as whole words in any case.

    In a phrase a space stands for blanks or a hyphen, and * for any ending. A string may list
    several phrases, separated by |.
    """
    wanted = [phrase.strip() for text in listed for phrase in text.split("|")]
    wanted.sort(key=len, reverse=True)
    return re.compile("|".join(_pattern(phrase) for phrase in wanted), re.IGNORECASE)


def _pattern(phrase: str) -> str:
    pattern = re.escape(phrase).replace(r"\ ", r"[\s-]+").replace(r"\*", r"\w*")
    begin = r"\b" if phrase[0].isalnum() else ""
    return begin + pattern + (r"\b" if phrase[-1].isalnum() else "")
