"""From what a user names (an arXiv id, a link, a file, a folder, `-`) to the files of a paper."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from paperkiln.errors import PaperkilnError
from paperkiln.papers.document import SourceFile
from paperkiln.papers.source.files import open_path, open_source
from paperkiln.papers.source.reference import parse_reference

_MAX_INPUT = 1 << 28  # bytes of standard input
_SUFFIXES = (".tex", ".ltx", ".tar", ".gz", ".tgz", ".zip", ".xz", ".bz2", ".txt")


def obtain(
    name: str,
    *,
    offline: bool = False,
    refresh: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
    notice: Callable[[str], None] | None = None,
) -> tuple[dict[str, SourceFile], str]:
    """Return the files of the paper called `name`, and its arXiv id ("" for a local one).

    Raises PaperkilnError when it cannot be had, with what is accepted.
    """
    if name == "-":
        data = sys.stdin.buffer.read(_MAX_INPUT)
        return open_source(data, "paper.tex"), ""
    if not name.strip():
        raise PaperkilnError("no paper is named; give an arXiv id, a link, a file or a folder")
    path = Path(os.path.expanduser(name))
    if os.path.exists(path):  # unlike Path.exists, never raises: a name may be too long
        return open_path(path), ""
    like_a_path = name.startswith(("/", ".", "~")) or name.lower().endswith((*_SUFFIXES, os.sep))
    if like_a_path and "://" not in name:
        raise PaperkilnError(f"{name}: no such file or folder")
    reference = parse_reference(name)
    from paperkiln.papers.source.arxiv import fetch  # brings requests

    fetched = fetch(reference, offline=offline, refresh=refresh, progress=progress, notice=notice)
    return open_source(fetched.data, str(fetched.reference)), str(fetched.reference)
