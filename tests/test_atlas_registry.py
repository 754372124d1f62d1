"""Pre-registering, registering, retracting and superseding, in a real git repository."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from made_study import (
    DATE,
    HYPOTHESES,
    PULL,
    SWEEP,
    commit,
    draft,
    git,
    hypothesis,
    pledged_atlas,
    run_made,
    texts,
)

from paperkiln.atlas.findings import read_findings, read_lines, read_preregistration
from paperkiln.atlas.preregister import preregister, study_sweep
from paperkiln.atlas.register import register, retract, supersede
from paperkiln.errors import PaperkilnError


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a pre-registered study and all its records."""
    atlas = pledged_atlas(tmp_path_factory.mktemp("template") / "repository")
    run_made(atlas)
    return atlas.parent


@pytest.fixture
def atlas(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "repository")
    return tmp_path / "repository" / "atlas"


def refusal(do: Any, *words: Any) -> str:
    with pytest.raises(PaperkilnError) as error:
        do(*words)
    assert "\n" not in str(error.value)
    return str(error.value)


# --- before the data ---------------------------------------------------------------------------


def test_a_preregistration_fixes_the_rule_and_the_sweep(tmp_path: Path) -> None:
    path = preregister(draft(tmp_path), tmp_path / "atlas", DATE)
    prereg = read_preregistration(tmp_path / "atlas", "trio")
    sweep = study_sweep(tmp_path / "atlas" / "studies" / "trio")
    assert path == tmp_path / "atlas" / "preregistrations" / "trio.json"
    assert prereg.sweep_sha256 == sweep.sha256
    assert (prereg.study, prereg.date, prereg.alpha) == ("trio", DATE, 0.05)
    values = json.loads(path.read_text())
    assert values["hypotheses"][2]["margin"] is None
    assert values["hypotheses"][4]["analysis"]["from"] == 5


def test_a_preregistration_is_final_and_its_hypotheses_have_ids_of_their_own(
    tmp_path: Path,
) -> None:
    atlas = tmp_path / "atlas"
    preregister(draft(tmp_path), atlas, DATE)
    assert "a pre-registration is final" in refusal(preregister, draft(tmp_path), atlas)
    fresh = SWEEP | {"name": "duo", "seeds": [4, 5]}
    again = draft(tmp_path, fresh, id="again")
    assert "F-muon is in trio.json already" in refusal(preregister, again, atlas)
    more = [hypothesis("F-lr", {"kind": "effect", "metric": "best_val", "term": "lr"})]
    (atlas / "studies" / "duo").mkdir()
    (atlas / "studies" / "duo" / "sweep.json").write_text(json.dumps(SWEEP | {"name": "duo"}))
    other = draft(tmp_path, fresh, id="other", hypotheses=more)
    assert "is another sweep of this name" in refusal(preregister, other, atlas)


def test_a_family_of_hypotheses_is_not_split_to_escape_its_correction(tmp_path: Path) -> None:
    atlas = tmp_path / "atlas"
    preregister(draft(tmp_path), atlas, DATE)
    more = [hypothesis("F-lr", {"kind": "effect", "metric": "best_val", "term": "lr"})]
    second = draft(tmp_path, id="more", hypotheses=more)
    assert "is about trio already: the hypotheses of a study are" in refusal(
        preregister, second, atlas
    )


def test_rules_made_after_the_data_are_refused(atlas: Path, tmp_path: Path) -> None:
    late = [hypothesis("F-late", {"kind": "effect", "metric": "best_val", "term": "lr"})]
    said = refusal(preregister, draft(tmp_path, id="late", hypotheses=late), atlas)
    assert "made after the data decides nothing" in said
    assert not (atlas / "preregistrations" / "late.json").exists()


SCREEN = SWEEP | {
    "design": {"kind": "plackett-burman", "runs": 12},
    "factors": SWEEP["factors"]
    | {
        name: {"path": f"train.{name}", "levels": levels}
        for name, levels in {"clip": [1.0, 2.0], "beta1": [0.8, 0.9], "beta2": [0.9, 0.95]}.items()
    },
}
CANNOT: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (SWEEP, {"kind": "effect", "metric": "best_val", "term": "colour"}, "'colour' is no factor"),
    (SWEEP, {"kind": "effect", "metric": "vibes", "term": "lr"}, "vibes"),
    (SWEEP, {"kind": "effect", "metric": "best_val", "term": "lr:lr"}, "lr"),
    (SWEEP, {"kind": "change", "term": "lr", "from": 5, "to": 21}, "validated from step 5 to 20"),
    (SWEEP, {"kind": "change", "term": "lr", "from": 4, "to": 20}, "validated from step 5 to 20"),
    (SWEEP, {"kind": "change", "term": "lr", "from": 20, "to": 5}, "to"),
    (SWEEP, {"kind": "effect", "metric": "val@3", "term": "lr"}, "validated from step 5"),
    (SCREEN, {"kind": "effect", "metric": "best_val", "term": "lr:optimizer"}, "aliased"),
    (
        SWEEP,
        {"kind": "simple", "metric": "best_val", "term": "lr", "given": {"optimizer": "sgd"}},
        "no level 'sgd'",
    ),
]


@pytest.mark.parametrize(("sweep", "analysis", "part"), CANNOT, ids=lambda v: str(v)[-60:])
def test_what_the_design_cannot_answer_is_refused(
    tmp_path: Path, sweep: dict[str, Any], analysis: dict[str, Any], part: str
) -> None:
    path = draft(tmp_path, sweep, hypotheses=[hypothesis("F-x", analysis)])
    said = refusal(preregister, path, tmp_path / "atlas")
    assert said.startswith("F-x: ")
    assert part in said
    assert not (tmp_path / "atlas").exists(), "nothing is written"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{}", '"sweep"'),
        ("[]", "JSON object"),
        ('{"sweep": "no.json"}', "no.json"),
        ("{", "not JSON"),
        ('{"sweep": "trio.sweep.json"}', "id: Field required"),
    ],
)
def test_what_is_no_draft(tmp_path: Path, text: str, part: str) -> None:
    path = draft(tmp_path)
    path.write_text(text)
    assert part in refusal(preregister, path, tmp_path / "atlas")


# --- after the data ------------------------------------------------------------------------------


def test_the_claim_is_the_one_that_was_written_for_the_outcome(atlas: Path) -> None:
    findings = {f.id: f for f in register("trio", atlas, DATE)}
    assert {name: f.outcome for name, f in findings.items()} == {
        "F-muon": "lower", "F-batch": "equivalent", "F-pair": "unresolved",
        "F-lr-muon": "lower", "F-turn": "lower",
    }  # fmt: skip
    assert all(f.claim == f"{name} comes out {f.outcome}." for name, f in findings.items())
    muon = findings["F-muon"]
    assert muon.effect == pytest.approx(PULL["optimizer"], abs=0.05)
    assert muon.ci[0] < muon.effect < muon.ci[1] < 0
    assert muon.p < muon.p_holm < 1e-6
    assert (muon.runs, muon.seeds, muon.ledger) == (24, 3, (1, 24))
    assert muon.design == (
        "full factorial of 3 factors; 8 cells x 3 seeds; muon - adamw; paired by seed"
    )
    assert muon.receipts[0] == "studies/trio/records.jsonl"
    assert findings["F-pair"].status == "pending"
    assert findings["F-lr-muon"].factors == ("lr", "optimizer")
    assert findings["F-turn"].metric == "val@20 - val@5"


def test_registering_is_deterministic_and_is_done_once(atlas: Path, tmp_path: Path) -> None:
    register("trio", atlas, DATE)
    text = (atlas / "findings.jsonl").read_bytes()
    assert "F-muon is registered already" in refusal(register, "trio", atlas)
    assert (atlas / "findings.jsonl").read_bytes() == text
    git(tmp_path, "clone", "-q", str(atlas.parent), "again")
    again = tmp_path / "again" / "atlas"
    run_made(again)
    register("trio", again, DATE)
    assert (again / "findings.jsonl").read_bytes() == text


def test_a_preregistration_must_be_committed_and_untouched(tmp_path: Path) -> None:
    plain = tmp_path / "plain" / "atlas"
    plain.parent.mkdir()
    preregister(draft(plain.parent), plain, DATE)
    run_made(plain)
    assert "in no git repository" in refusal(register, "trio", plain)
    git(plain.parent, "init", "-q")
    git(plain.parent, "commit", "-q", "--allow-empty", "-m", "empty")
    assert "is not committed" in refusal(register, "trio", plain)


@pytest.mark.parametrize("committed", [False, True])
def test_a_preregistration_that_was_changed_is_refused(atlas: Path, committed: bool) -> None:
    path = atlas / "preregistrations" / "trio.json"
    path.write_text(path.read_text().replace("comes out lower", "is a triumph"))
    if committed:
        commit(atlas)
    assert "was changed after commit" in refusal(register, "trio", atlas)


def test_records_that_are_not_younger_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    atlas = folder / "atlas"
    preregister(draft(folder), atlas, DATE)
    run_made(atlas)
    commit(folder, "rule and data at once")
    assert "are not younger than the pre-registration" in refusal(register, "trio", atlas)


def test_a_shallow_clone_cannot_register(atlas: Path, tmp_path: Path) -> None:
    commit(atlas)
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{atlas.parent}", "shallow")
    said = refusal(register, "trio", tmp_path / "shallow" / "atlas")
    assert "git fetch --unshallow" in said


def test_every_run_needs_its_record(tmp_path: Path) -> None:
    atlas = pledged_atlas(tmp_path / "none")
    assert "24 of 24 runs of trio have no record" in refusal(register, "trio", atlas)


def test_runs_that_diverged_are_said_and_left_out(tmp_path: Path) -> None:
    atlas = pledged_atlas(tmp_path / "failed")
    run_made(atlas, failed=1)
    findings = register("trio", atlas, DATE)
    assert findings[0].runs == 16, "its whole seed goes: a block is compared as a whole"
    assert "1 of 24 runs failed and are left out" in findings[0].design


@pytest.mark.parametrize("name", ["rows.jsonl", "records.jsonl", "sweep.json"])
def test_files_that_do_not_belong_together_are_refused(atlas: Path, name: str) -> None:
    path = atlas / "studies" / "trio" / name
    old, new = ('"steps": 20', '"steps": 30') if name == "sweep.json" else ("muon", "moun")
    path.write_text(path.read_text().replace(old, new, 1))
    refusal(register, "trio", atlas)
    assert read_lines(atlas) == []


def test_an_unknown_id_is_refused(atlas: Path) -> None:
    assert "known: trio" in refusal(register, "../trio", atlas)


# --- corrections -----------------------------------------------------------------------------


def test_corrections_are_lines_and_nothing_is_deleted(atlas: Path) -> None:
    register("trio", atlas, DATE)
    before = (atlas / "findings.jsonl").read_bytes()
    retract("F-batch", "It was a slip.", atlas, "2026-02-01")
    supersede("F-lr-muon", "F-muon", "The whole effect says more.", atlas, "2026-02-02")
    after = (atlas / "findings.jsonl").read_bytes()
    assert after.startswith(before)
    assert len(texts(atlas)) == len(HYPOTHESES) + 2
    state = {f.id: f for f in read_findings(atlas)}
    assert (state["F-batch"].status, state["F-batch"].note) == ("retracted", "It was a slip.")
    assert state["F-lr-muon"].superseded_by == "F-muon"
    steps = [(e.date, e.status) for e in state["F-lr-muon"].history]
    assert steps == [(DATE, "supported"), ("2026-02-02", "superseded")]


def test_corrections_that_make_no_sense_are_refused(atlas: Path) -> None:
    register("trio", atlas, DATE)
    elsewhere = refusal(supersede, "F-muon", "F-batch", "x", atlas)
    assert "F-batch is about batch, not what F-muon is" in elsewhere
    retract("F-batch", "A slip.", atlas)
    assert "say why" in refusal(retract, "F-muon", " ", atlas)
    assert "retracted already: A slip." in refusal(retract, "F-batch", "again", atlas)
    assert "did you mean F-muon" in refusal(retract, "F-moun", "x", atlas)
    assert "cannot supersede itself" in refusal(supersede, "F-muon", "F-muon", "x", atlas)
    assert "it cannot stand in" in refusal(supersede, "F-muon", "F-batch", "x", atlas)
    assert "F-batch is retracted already" in refusal(supersede, "F-batch", "F-muon", "x", atlas)
    assert "printable" in refusal(retract, "F-muon", "two\nlines", atlas)


def test_a_torn_registry_is_not_written_to(atlas: Path) -> None:
    register("trio", atlas, DATE)
    path = atlas / "findings.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    assert "its last line has no end" in refusal(retract, "F-batch", "x", atlas)
