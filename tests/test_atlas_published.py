"""The atlas of this repository: every number that it publishes follows from its records."""

from __future__ import annotations

from pathlib import Path

import pytest

from paperkiln.atlas.history import depth
from paperkiln.atlas.preregister import study_sweep
from paperkiln.atlas.sweep import read_sweep
from paperkiln.atlas.verify import verify

ROOT = Path(__file__).parent.parent
ATLAS = ROOT / "atlas"


def test_every_published_number_follows_from_the_records() -> None:
    assert verify(ATLAS).problems == []


def test_the_rules_are_older_than_the_records_and_nothing_was_taken_out() -> None:
    if depth(ATLAS) != "full":
        pytest.skip("no whole git history here: nothing shows what came first")
    result = verify(ATLAS, strict=True)
    assert (result.problems, result.unchecked) == ([], [])


@pytest.mark.parametrize("name", ["screen", "factorial", "blocks", "window"])
def test_the_sweep_that_was_run_is_the_one_in_specs(name: str) -> None:
    shown = read_sweep(ROOT / "specs" / "sweeps" / f"{name}.json")
    assert study_sweep(ATLAS / "studies" / name).sha256 == shown.sha256
