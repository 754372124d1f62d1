"""Advice: thirty questions, half of them refused; and that words are matched as words."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from made_findings import REGISTRY, finding

from paperkiln.atlas.advise import advise, metric_of, parse, topic_of
from paperkiln.atlas.findings import read_findings
from paperkiln.atlas.vocabulary import FACTORS, GENERAL, METRICS, SCALE, STOP
from paperkiln.errors import PaperkilnError

QUESTIONS = json.loads((Path(__file__).parent / "atlas_questions.json").read_text())


def test_half_of_the_questions_are_to_be_refused() -> None:
    assert len(QUESTIONS) == 30
    assert sum("refused" in q for q in QUESTIONS) == 15


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda q: q["question"])
def test_a_question_of_the_list(asked: dict[str, Any]) -> None:
    advice = advise(asked["question"], REGISTRY)
    assert [f.id for f in advice.live] == asked.get("live", [])
    assert [f.id for f in advice.open] == asked.get("open", [])
    assert [f.id for f in advice.corrected] == asked.get("corrected", [])
    assert advice.answered is ("refused" not in asked)
    assert asked.get("refused", "") in advice.reason
    assert asked.get("warns", "") in " ".join(advice.warnings)
    assert bool(advice.warnings) is ("warns" in asked)


def test_an_answer_shows_effect_interval_scope_and_what_was_corrected() -> None:
    text = "\n".join(advise("Does the learning rate matter?", REGISTRY).lines())
    for part in (
        "F-lr-optimizer (supported)", "-0.31 [-0.35, -0.27]", "36 runs, 3 seeds", "scope: 0.2 M",
        "CORRECTED F-lr (superseded)", "see F-lr-optimizer; It depends on the optimizer.",
    ):  # fmt: skip
        assert part in text, text


def test_a_refusal_says_what_the_registry_covers() -> None:
    lines = advise("Does dropout help?", REGISTRY).lines()
    assert lines[0].startswith("NO EVIDENCE: ")
    assert "optimizer (best_val, tokens_per_second)" in lines[-1]
    assert "positional" not in lines[-1], "what is open is not covered"
    assert advise("Does Muon help?", []).lines()[-1] == "The registry covers: nothing yet"


@pytest.mark.parametrize(
    "question",
    ["Do gelugs help?", "the muonic loss", "batchelor loss", "Is adamwx better?", "ropes loss"],
)
def test_a_word_inside_of_another_is_no_match(question: str) -> None:
    assert not parse(question).factors


def test_two_factors_ask_for_a_finding_about_both() -> None:
    advice = advise("Is Muon with RoPE better than AdamW with RoPE?", REGISTRY)
    assert advice.answered
    assert "optimizer and positional together" in " ".join(advice.warnings)
    both = advise("Does the learning rate interact with the optimizer?", REGISTRY)
    assert [f.id for f in both.live] == ["F-lr-optimizer"]
    assert both.warnings == ()


@pytest.mark.parametrize(
    ("question", "covered"),
    [
        ("Does Muon help at 200k parameters?", True),
        ("Does Muon help at 0.2M parameters?", True),
        ("Does Muon help at 0.2 million parameters?", True),
        ("Does Muon help within 300 steps?", True),
        ("Does Muon help on TinyChat?", True),
        ("Does Muon help at 124M parameters?", False),
        ("Does Muon help at 7 billion parameters?", False),
        ("Does Muon help within 100,000 steps?", False),
        ("Does Muon help at other sizes?", False),
        ("Does Muon always help?", False),
        ("Does Muon help LLMs?", False),
    ],
)
def test_what_lies_beyond_the_scope_is_said(question: str, covered: bool) -> None:
    advice = advise(question, REGISTRY)
    assert advice.answered
    assert (not advice.warnings) is covered, advice.warnings


def test_a_factor_that_the_vocabulary_does_not_have_is_found_by_its_name() -> None:
    unusual = finding("F-label", factors=["label_smoothing"], claim="Label smoothing raises it.")
    advice = advise("Does label smoothing improve the loss?", [*REGISTRY, unusual])
    assert [f.id for f in advice.live] == ["F-label"]
    assert topic_of("norm_placement") == "norm"
    assert topic_of("wd") == "wd"


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda q: q["question"])
def test_the_registry_of_this_repository_is_asked_the_same(asked: dict[str, Any]) -> None:
    """Whatever came out there: what is cited matches, and what is about nothing is refused."""
    registry = read_findings(Path(__file__).parent.parent / "atlas")
    advice, question = advise(asked["question"], registry), parse(asked["question"])
    for cited in (*advice.live, *advice.open, *advice.corrected):
        assert set(map(topic_of, cited.factors)) & question.factors
        assert metric_of(cited) in question.metrics
    if question.elsewhere or not question.factors or not question.metrics:
        assert not advice.answered
    if advice.answered and "warns" in asked:
        assert advice.warnings


def test_every_metric_of_the_rows_has_a_word_for_it() -> None:
    for name, topic in {"best_val": "loss", "val@100": "loss", "tokens_per_second": "speed",
                        "spikes": "stability", "half_gap_step": "convergence"}.items():  # fmt: skip
        assert metric_of(finding(metric=name)) == topic


def test_no_phrase_of_the_vocabulary_means_two_things() -> None:
    phrases = [p for names, levels in FACTORS.values() for p in (*names, *sum(levels.values(), ()))]
    phrases += [p for words, _ in METRICS.values() for p in words]
    phrases += [*GENERAL, *SCALE]
    assert sorted(phrases) == sorted(set(phrases))
    assert not STOP & set(phrases)


def test_no_question_and_a_long_one_are_refused() -> None:
    with pytest.raises(PaperkilnError, match="ask something"):
        advise(" \n", REGISTRY)
    with pytest.raises(PaperkilnError, match="1,201 characters"):
        advise("muon? " * 200 + "x", REGISTRY)


def test_what_runs_in_the_browser_needs_only_pydantic() -> None:
    program = (
        "import sys; sys.modules.update(dict.fromkeys(['numpy', 'scipy', 'torch', 'filelock']))\n"
        "import paperkiln.atlas.findings, paperkiln.atlas.table, paperkiln.atlas.advise"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
