"""The atlas of this repository: every number that it publishes follows from its records."""

from __future__ import annotations

from pathlib import Path

import pytest

from paperkiln.atlas.advise import advise
from paperkiln.atlas.findings import read_findings
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


ASKED = {
    "Is Muon better than AdamW?": "factorial-optimizer",
    "Should I use RoPE or learned positions?": "blocks-positional",
    "Is SwiGLU better than GELU?": "factorial-activation",
    "Does pre-norm help?": "blocks-norm-placement",
    "Should I make the model deeper or wider?": "blocks-shape",
    "Does a smaller batch help?": "factorial-batch",
    "Which learning rate is better?": "factorial-lr",
    "Is sliding-window attention better than exact attention?": "window-early",
    "Does the best learning rate depend on the optimizer?": "factorial-optimizer-by-lr",
    "Does the loss depend on norm placement in deep models?": "blocks-norm-placement-by-shape",
    "Which optimizer is fastest?": None,
    "Does dropout help?": None,
    "Is ALiBi better than RoPE?": None,
    "Does int8 quantization hurt?": None,
    "What is the best tokenizer?": None,
    "Does Muon save memory?": None,
    "Is RMSNorm better than LayerNorm?": None,
    "Who won the world cup?": None,
    "Does a larger batch cause spikes?": None,
    "Does grouped-query attention hurt the loss?": None,
}


@pytest.mark.parametrize("question", ASKED)
def test_a_question_is_answered_from_what_was_measured_or_refused(question: str) -> None:
    advice = advise(question, read_findings(ATLAS))
    assert advice.answered == (ASKED[question] is not None), advice.lines()
    assert ASKED[question] in {f.id for f in advice.live} | {None}
