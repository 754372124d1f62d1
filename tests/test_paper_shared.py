"""Real papers, where they are at hand: the bench holds, and every quote is the author's own."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from paperkiln.papers.bench.bench import bench_folder, verdict

FOLDER = Path(
    os.environ.get("PAPERKILN_PAPERS") or Path(__file__).parents[1] / ".." / "shared" / "papers"
)
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"no papers in {FOLDER}; PAPERKILN_PAPERS may name their folder"
)


@cache
def figures() -> dict[str, Any]:
    report = bench_folder(str(FOLDER))
    return report.to_json() | {"verdict": verdict(report)}


def test_numbers() -> None:
    counts = figures()["numbers"]
    assert counts["wrong"] == 0, figures()["wrong"]
    assert counts["right"] >= 0.9 * counts["stated"]


def test_flavors() -> None:
    counts = figures()["flavors"]
    assert counts["wrong"] == 0, figures()["wrong"]
    assert counts["right"] >= 0.95 * counts["stated"]


def test_what_no_truth_lists_has_a_quote() -> None:
    assert all(entry["quote"] for entry in figures()["asserted_on_null"])


def test_every_quote_is_verbatim_at_its_place() -> None:
    assert figures()["quotes_checked"] > 500
    assert figures()["false_quotes"] == []


def test_better_than_the_first_match() -> None:
    auroc = figures()["auroc"]
    assert auroc["grouped"] > auroc["naive_grouped"]
    assert figures()["verdict"] == (0, [])
