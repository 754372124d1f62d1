"""Real text to test with: it is not part of the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "corpora"
CORPORA = Path(os.environ.get("PAPERKILN_CORPORA", _BESIDE))


def beginnings(n: int) -> list[str]:
    """Return the first n characters of each text; the test is skipped where there are none."""
    texts = [path.read_text("utf-8")[:n] for path in sorted(CORPORA.glob("*.txt"))]
    if not texts:
        pytest.skip(f"no texts in {CORPORA}; set PAPERKILN_CORPORA")
    return texts
