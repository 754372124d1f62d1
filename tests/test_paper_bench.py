"""The paper bench counts as its docstring says, and refuses what it cannot read, in one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperkiln.errors import PaperkilnError
from paperkiln.papers.architecture import Architecture, Evidence, Mention, Scalar, Value
from paperkiln.papers.bench.auroc import auroc, bootstrap, weighted_mean
from paperkiln.papers.bench.bench import Report, load_arxiv_table, score, verdict
from paperkiln.papers.bench.cases import Case
from paperkiln.papers.bench.figures import rates, template_weights
from paperkiln.papers.document import SourceFile

TEXT = "\\documentclass{x}\nThe width is 64.\nWe use RoPE, not ALiBi.\n"


def evidence(quote: str, file: str = "main.tex") -> Evidence:
    """Evidence where it truly stands in TEXT, or at its start when it stands nowhere."""
    start = max(TEXT.find(quote), 0)
    line = TEXT.count("\n", 0, start) + 1
    return Evidence(file, line, start, start + len(quote), quote, quote, "Method")


def value(got: Scalar, verdict: Any = "used", quote: str = "width is 64") -> Value:
    return Value(got, verdict, (evidence(quote),) if quote else ())


def found(
    values: Mapping[str, Any] | None = None, mentions: Mapping[str, Any] | None = None
) -> Architecture:
    """An architecture of bare values, or Values, and of (value, score[, veto]) mentions."""
    return Architecture(
        title="",
        values={k: v if isinstance(v, Value) else value(v) for k, v in (values or {}).items()},
        mentions={
            name: [Mention(v, s, evidence("RoPE"), (), *veto) for v, s, *veto in several]
            for name, several in (mentions or {}).items()
        },
    )


def run(*pairs: tuple[Case, Architecture], **options: Any) -> Report:
    results = {case.id: architecture for case, architecture in pairs}
    return score([case for case, _ in pairs], lambda case: results[case.id], **options)


def files(case: Case) -> dict[str, SourceFile]:
    return {"main.tex": SourceFile("main.tex", TEXT)}


# --- AUROC --------------------------------------------------------------------------------------

AUROCS = [
    ([(2, True), (1, False)], 1.0),
    ([(1, True), (2, False)], 0.0),
    ([(1, True), (1, False)], 0.5),
    ([(3, True), (2, False), (1, True), (0, False)], 0.75),
    ([(1, True), (1, True), (1, False), (0, False)], 0.75),  # 2 ties, 2 wins of 4
    ([(1, True)], None),
    ([(1, False), (2, False)], None),
    ([], None),
]


@pytest.mark.parametrize(("pairs", "expected"), AUROCS)
def test_auroc_by_hand(pairs: list[tuple[float, bool]], expected: float | None) -> None:
    assert auroc(pairs) == expected


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), max_size=30))
def test_auroc_is_the_share_of_ordered_pairs(pairs: list[tuple[int, bool]]) -> None:
    duels = [(p, n) for p, a in pairs for n, b in pairs if a and not b]
    by_hand = [1.0 if p > n else 0.5 if p == n else 0.0 for p, n in duels]
    expected = sum(by_hand) / len(by_hand) if by_hand else None
    assert auroc(pairs) == (None if expected is None else pytest.approx(expected))


def test_bootstrap_is_deterministic_and_covers() -> None:
    units = [i * i / 121 for i in range(12)]

    def mean(drawn: list[float]) -> float:
        return sum(drawn) / len(drawn)

    first, again = bootstrap(units, mean), bootstrap(units, mean)
    assert first == again
    assert first
    assert 0 < first[0] < mean(units) < first[1] < 1
    assert bootstrap([0.7] * 4, mean) == pytest.approx((0.7, 0.7))


def test_bootstrap_of_mostly_undefined_draws_is_none() -> None:
    assert bootstrap([], lambda drawn: 1.0) is None
    assert bootstrap([1, 2], lambda drawn: None) is None
    # One paper of ten has pairs: about 65% of the draws hold it, so the interval stands.
    once: list[list[tuple[float, float]]] = [[(0.5, 1.0)], *([] for _ in range(9))]
    assert bootstrap(once, lambda units: weighted_mean(i for u in units for i in u)) == (0.5, 0.5)
    assert weighted_mean([]) is None


# --- Outcomes -----------------------------------------------------------------------------------

OUTCOMES = [
    # truth, alternatives, got, kind
    ({"d_model": 64}, {}, 64, "right"),
    ({"d_model": 64}, {}, 65, "wrong"),
    ({"d_model": 64}, {}, None, "missed"),
    ({"d_model": 64}, {"d_model": (65,)}, 65, "right"),
    ({"d_model": 64}, {"d_model": (None,)}, None, "right"),
    ({"d_model": 64}, {}, value(64, "contested"), "missed"),
    ({"d_model": 64}, {}, value(64, "derived"), "right"),
    ({"d_model": None}, {}, None, "abstained"),
    ({"d_model": None}, {}, 64, "asserted_on_null"),
    ({"d_model": None}, {"d_model": (64,)}, 64, "alternative"),
    ({"d_model": None}, {"d_model": (64,)}, 65, "asserted_on_null"),
    ({"norm": "outside"}, {}, None, "abstained"),
    ({"norm": "outside"}, {}, "rmsnorm", "asserted_on_null"),
    ({"activation": "silu"}, {}, value("gated-glu", "family"), "right"),
    ({"activation": "gelu"}, {}, value("gated-glu", "family"), "wrong"),
    ({"activation": "gelu"}, {"activation": ("geglu",)}, value("gated-glu", "family"), "right"),
    ({"positional": "rope"}, {}, value("rope", "inherited"), "right"),
]


@pytest.mark.parametrize(("truth", "alternatives", "got", "kind"), OUTCOMES)
def test_outcome(truth: dict[str, Any], alternatives: dict[str, Any], got: Any, kind: str) -> None:
    (name,) = truth
    case = Case("a", truth=truth, alternatives=alternatives)
    report = run((case, found({} if got is None else {name: got})))
    assert [o.kind for o in report.outcomes] == [kind]


def test_a_field_without_truth_is_not_scored() -> None:
    report = run((Case("a", truth={"moe_d_ff": 8}), found({"d_model": 64, "norm": "rmsnorm"})))
    assert report.outcomes == []


def test_json_has_the_agreed_shape_and_counts() -> None:
    case = Case(
        "a",
        truth={"d_model": 64, "n_layers": 2, "d_ff": 256, "n_heads": None, "norm": "rmsnorm"},
        public={"n_heads": 4},
    )
    got = run((case, found({"d_model": 64, "n_layers": 3, "n_heads": 4, "norm": "rmsnorm"})))
    figures = json.loads(json.dumps(got.to_json()))
    assert figures["numbers"] == {
        "stated": 3, "right": 1, "wrong": 1, "missed": 1, "asserted_on_null": 1,
    }  # fmt: skip
    assert figures["flavors"] == {
        "stated": 1, "right": 1, "wrong": 0, "missed": 0, "asserted_on_null": 0,
    }  # fmt: skip
    assert list(figures["auroc"]) == ["grouped", "grouped_ci", "pooled", "naive_grouped"]
    assert list(figures)[:5] == ["numbers", "flavors", "auroc", "per_field", "wrong"]
    assert figures["wrong"] == [
        {"paper": "a", "field": "n_layers", "got": 3, "truth": 2, "quote": "width is 64"}
    ]
    assert figures["asserted_on_null"] == [
        {"paper": "a", "field": "n_heads", "got": 4, "quote": "width is 64",
         "note": "publicly known, not stated"}
    ]  # fmt: skip
    assert figures["missed"] == [{"paper": "a", "field": "d_ff", "truth": 256}]
    assert figures["rates"]["numbers"] == {"precision": 1 / 3, "recall": 1 / 3, "f1": 1 / 3}
    assert figures["per_field"]["n_layers"]["precision"] == 0
    assert figures["verdict_accuracy"] == {"correct": 1, "of": 1}


def test_f1_is_the_harmonic_mean() -> None:
    got = rates({"stated": 10, "right": 6, "wrong": 1, "missed": 3, "asserted_on_null": 2})
    p, r = 6 / 9, 6 / 10
    assert got == {"precision": p, "recall": r, "f1": pytest.approx(2 * p * r / (p + r))}
    nothing = dict.fromkeys(("stated", "right", "wrong", "missed", "asserted_on_null"), 0)
    assert rates(nothing) == {"precision": None, "recall": None, "f1": None}


# --- AUROC over papers --------------------------------------------------------------------------

POSITIONAL = {"positional": "alibi"}


def test_grouped_pooled_and_naive_by_hand() -> None:
    a = Case("a", truth=POSITIONAL), found({}, {"positional": [("alibi", 5.0), ("rope", 1.0)]})
    b = (
        Case("b", truth={"positional": "rope", "norm": "layernorm"}),
        found(
            {},
            {
                "positional": [("rope", 3.0), ("sinusoidal", 3.0), ("learned", 4.0, "rejected")],
                "norm": [("layernorm", 2.0)],  # one class only: no AUROC of its own
            },
        ),
    )
    figures = run(a, b).to_json()
    # Of a 1; of b rope ties one and loses to one: 0.25.
    assert figures["auroc"]["grouped"] == pytest.approx((1 + 0.25) / 2)
    # Naive believes rope: wrong in a, right in b.
    assert figures["auroc"]["naive_grouped"] == pytest.approx((0 + 1) / 2)
    # True 5, 3, 2 against false 1, 3, 4: 3 + 1.5 + 1 of 9.
    assert figures["auroc"]["pooled"] == pytest.approx(5.5 / 9)
    # Without the vetoed 4: 2 + 1.5 + 1 of 6.
    assert figures["auroc_detail"]["pooled_post_veto"] == pytest.approx(4.5 / 6)
    assert figures["auroc"]["grouped_ci"] == pytest.approx((0.25, 1.0))
    assert run(a, b).to_json() == figures


def test_values_the_baseline_does_not_know_come_last() -> None:
    mentions = {"positional": [("relative", 1.0), ("learned", 0.0)]}
    report = run((Case("a", truth={"positional": "learned"}), found({}, mentions)))
    assert report.to_json()["auroc"]["naive_grouped"] == 1.0
    assert report.to_json()["auroc"]["grouped"] == 0.0


def test_where_abstaining_is_right_every_candidate_is_false() -> None:
    case = Case("a", truth={"norm": None}, alternatives={})
    report = run((case, found({}, {"norm": [("rmsnorm", 1.0)]})))
    assert [c.true for c in report.candidates] == [False]
    assert report.to_json()["auroc"]["grouped"] is None


# --- Templates and leave-one-out ----------------------------------------------------------------


def test_a_template_counts_as_one_paper() -> None:
    truth, right, wrong = {"d_model": 64}, found({"d_model": 64}), found({"d_model": 1})
    report = run(
        (Case("z1", truth=truth, template="z"), right),
        (Case("z2", truth=truth, template="z"), wrong),
        (Case("z3", truth=truth, template="z"), right),
        (Case("b", truth=truth), wrong),
    )
    figures = report.to_json()
    assert figures["numbers"]["stated"] == 4
    assert figures["by_template"]["numbers"] == pytest.approx(
        {"stated": 2, "right": 2 / 3, "wrong": 4 / 3, "missed": 0, "asserted_on_null": 0,
         "precision": 1 / 3, "recall": 1 / 3, "f1": 1 / 3}
    )  # fmt: skip
    left = figures["leave_one_out"]["numbers"]
    assert left == {"min": 0, "max": 2 / 3, "f1_without": {"z": 0, "b": 2 / 3}}
    weights = template_weights(report.groups)
    assert weights == pytest.approx({"z1": 1 / 3, "z2": 1 / 3, "z3": 1 / 3, "b": 1})


def test_grouped_auroc_by_template() -> None:
    good = found({}, {"positional": [("alibi", 5.0), ("rope", 1.0)]})
    bad = found({}, {"positional": [("alibi", 1.0), ("rope", 5.0)]})
    figures = run(
        *((Case(f"z{i}", truth=POSITIONAL, template="z"), good) for i in range(3)),
        (Case("b", truth=POSITIONAL), bad),
    ).to_json()
    assert figures["auroc"]["grouped"] == pytest.approx(0.75)
    assert figures["auroc_detail"]["by_template"] == pytest.approx(0.5)
    assert figures["auroc_detail"]["by_template_ci"] == pytest.approx((0, 1))


# --- The verdict --------------------------------------------------------------------------------

WRONG = Case("a", truth={"d_model": 64}), found({"d_model": 65})


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (run((Case("a", truth={"d_model": 64}), found({"d_model": 64}))), None),
        (run(WRONG), "a d_model: wrong, and not in KNOWN_WRONG"),
        (run(WRONG, known_wrong={("a", "d_model"): "a typo of theirs"}), None),
        (
            run((WRONG[0], found({"d_model": 64})), known_wrong={("a", "d_model"): "a typo"}),
            "a d_model: in KNOWN_WRONG but wrong no longer; delete the entry",
        ),
        (
            run((WRONG[0], found()), known_wrong={("elsewhere", "d_model"): "not read here"}),
            None,
        ),
        (
            run((Case("a", truth={"d_model": None}), found({"d_model": value(8, quote="")}))),
            "a d_model: asserted where abstaining is right, without a quote",
        ),
        (
            run((Case("a", truth={"positional": "rope"}),
                 found({}, {"positional": [("rope", 0.0), ("alibi", 1.0)]}))),
            "grouped AUROC 0.000 is below naive first-match, 1.000",
        ),
        (run(), "no paper could be read"),
    ],
)  # fmt: skip
def test_verdict(report: Report, reason: str | None) -> None:
    assert verdict(report) == ((1, [reason]) if reason else (0, []))


def test_known_wrong_is_listed_with_its_diagnosis() -> None:
    report = run(WRONG, known_wrong={("a", "d_model"): "why", ("a", "d_ff"): "stale"})
    assert report.to_json()["known_wrong"] == [
        {"paper": "a", "field": "d_model", "diagnosis": "why", "stale": False},
        {"paper": "a", "field": "d_ff", "diagnosis": "stale", "stale": True},
    ]


# --- Quotes, refusals, text ---------------------------------------------------------------------


def test_quotes_are_looked_up_where_they_are_said_to_be() -> None:
    good = evidence("RoPE")
    false = [
        replace(good, quote="ropE"),
        replace(good, start=good.start + 1),
        replace(good, end=10**9),
        replace(good, start=-1),
        replace(good, line=good.line + 1),
        replace(good, file="other.tex"),
        replace(good, quote="", end=good.start),
    ]
    architecture = found(
        {"d_model": Value(64, "used", (good, *false), runner_up=Mention(1, 0.0, false[0]))},
        {"positional": [("rope", 1.0)]},
    )
    report = run((Case("a", truth={"d_model": 64}), architecture), sources=files)
    assert report.quotes_checked == len(false) + 3
    assert len(report.false_quotes) == len(false) + 1
    assert verdict(report) == (1, ["8 of 10 quotes are not verbatim at their place"])


def test_a_refused_paper_fails_and_one_without_source_is_skipped() -> None:
    cases = [Case(name, truth={"d_model": 64}) for name in ("bad", "gone")]

    def sources(case: Case) -> dict[str, SourceFile]:
        if case.id == "gone":
            raise PaperkilnError("withdrawn")
        return files(case)

    def extract(case: Case) -> Architecture:
        raise PaperkilnError("no documentclass")

    report = score(cases, extract, sources)
    assert report.skipped == {"gone": "withdrawn"}
    assert report.failed == {"bad": "no documentclass"}
    assert report.to_json()["numbers"]["missed"] == 1
    assert verdict(report) == (1, ["bad: no documentclass"])


def test_lines_show_every_figure_and_no_control_characters() -> None:
    hostile = value(65, quote="\x1b[31mred\nnew line " + "long " * 100)
    report = run(
        (Case("a", truth={"d_model": 64, "n_heads": 1}), found({"d_model": hostile})),
        (Case("b", truth=POSITIONAL), found({}, {"positional": [("alibi", 1.0), ("rope", 0.0)]})),
        known_wrong={("a", "d_model"): "a trap"},
    )
    text = report.lines()
    assert all(line.isprintable() for line in text)
    assert max(map(len, text)) < 160
    (wrong,) = (line for line in text if "got 65" in line)
    assert wrong.startswith("  a d_model: got 65, truth 64, quote [31mred new line long")
    assert any(" ".join(line.split()) == "d_model 1 0 1 0 0 0.000 0.000 0.000" for line in text)
    assert "AUROC grouped 1.000 [1.000, 1.000], naive first-match 0.000" in text
    assert "  a d_model: diagnosis a trap, stale False" in text


def test_nothing_read_still_has_a_report() -> None:
    assert json.loads(json.dumps(run().to_json()))["numbers"]["stated"] == 0
    assert run().lines()


def test_saying_nothing_misses_what_the_shipped_table_states() -> None:
    counts = score(load_arxiv_table(), lambda case: found()).to_json()
    assert counts["flavors"]["missed"] == 86
    assert counts["verdict_accuracy"] == {"correct": 6, "of": 92}
