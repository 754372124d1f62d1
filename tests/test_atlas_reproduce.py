"""Reproduction: the plan and its cost, the verdict, and one experiment that is really run again."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_findings import finding
from made_study import (
    DATE,
    PULL,
    SWEEP,
    commit,
    draft,
    git,
    hypothesis,
    pledged_atlas,
    run_made,
)

from paperkiln.atlas import execute
from paperkiln.atlas import reproduce as reproduction
from paperkiln.atlas.estimate import Estimate
from paperkiln.atlas.execute import run_sweep
from paperkiln.atlas.findings import find, read_findings
from paperkiln.atlas.preregister import preregister, study_sweep
from paperkiln.atlas.register import amend, register, retract
from paperkiln.atlas.reproduce import judge, make_plan, reproduce
from paperkiln.atlas.rows import write_rows
from paperkiln.atlas.sweep import SweepSpec
from paperkiln.atlas.table import findings_table
from paperkiln.atlas.verify import verify
from paperkiln.errors import PaperkilnError


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a registered study."""
    atlas = pledged_atlas(tmp_path_factory.mktemp("template") / "repository")
    run_made(atlas)
    commit(atlas, "run")
    register("trio", atlas, DATE)
    commit(atlas, "register")
    return atlas.parent


@pytest.fixture
def atlas(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registered study; where it is run again, made-up records stand in for training."""
    shutil.copytree(template, tmp_path / "repository")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reproduction, "check_corpora", lambda study: None)
    return tmp_path / "repository" / "atlas"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the made-up runs of a replication show."""
    shows: dict[str, Any] = {"pull": PULL, "noise": 0.01}

    def run(sweep: SweepSpec, study: Path, scratch: Path, **options: Any) -> dict[str, Any]:
        study.mkdir(parents=True)
        (study / "sweep.json").write_text(json.dumps(sweep.model_dump(mode="json")))
        run_made(study.parent.parent, study.name, **shows)
        return {"left": 0, "total": 24, "broken": {}}

    monkeypatch.setattr(execute, "run_sweep", run)
    return shows


# --- the plan -----------------------------------------------------------------------------------


def test_the_plan_says_what_would_run_and_what_it_costs(atlas: Path) -> None:
    plan = make_plan("F-muon", atlas, jobs=2)
    assert (plan.runs, plan.seconds) == (24, 24.0), "24 runs of 2 s, two at a time"
    text = "\n".join(plan.lines())
    for part in ("F-muon comes out lower.", "24 of trio", "24 s with 2 jobs", "the same seeds 1",
                 "tests the software, not the claim", "runs/reproduce/F-muon-1"):  # fmt: skip
        assert part in text, text
    assert not plan.folder.exists(), "a plan runs nothing"


def test_new_seeds_are_new_and_change_the_cost(atlas: Path) -> None:
    plan = make_plan("F-muon", atlas, jobs=1, seeds=[4, 5, 6, 7, 8, 9])
    assert (plan.runs, plan.seconds, plan.new_seeds) == (48, 96.0, True)
    assert "new seeds 4, 5, 6, 7, 8, 9: tests the claim" in "\n".join(plan.lines())
    with pytest.raises(PaperkilnError, match="seed 3 is of the original study"):
        make_plan("F-muon", atlas, seeds=[3, 4])


def test_a_folder_that_exists_is_not_written_to(atlas: Path) -> None:
    Path("runs/reproduce/F-muon-1").mkdir(parents=True)
    assert make_plan("F-muon", atlas).folder == Path("runs/reproduce/F-muon-2")
    with pytest.raises(PaperkilnError, match="inside the atlas"):
        make_plan("F-muon", atlas, out=atlas / "studies" / "x")
    with pytest.raises(PaperkilnError, match="no finding 'F-x'"):
        make_plan("F-x", atlas)


# --- the verdict -------------------------------------------------------------------------------


def found(effect: float, se: float, df: float = 20) -> Estimate:
    from paperkiln.atlas.estimate import half_width, t_test

    t, p = t_test(effect, se, df)
    half = half_width(se, df)
    return Estimate("optimizer", "best_val", effect, se, df, t, p, None,
                    (effect - half, effect + half), None, 24, 3, "", "")  # fmt: skip


LOWER = {"effect": -0.3, "se": 0.02}
NONE = {"effect": 0.001, "se": 0.004, "outcome": "equivalent"}
VERDICTS = [
    (LOWER, -0.31, 0.02, "REPLICATED"),
    (LOWER, -0.26, 0.02, "REPLICATED"),
    (LOWER, -0.10, 0.02, "DID NOT REPLICATE"),  # the same direction, another magnitude
    (LOWER, -0.60, 0.02, "DID NOT REPLICATE"),
    (LOWER, +0.30, 0.02, "DID NOT REPLICATE"),  # the sign is the other one
    (LOWER, +0.001, 0.004, "DID NOT REPLICATE"),  # equivalent to zero
    (LOWER, -0.05, 0.05, "DID NOT REPLICATE"),  # unresolved, but far from the claim
    (LOWER, -0.20, 0.20, "UNDERPOWERED"),
    (LOWER, +0.05, 0.20, "UNDERPOWERED"),
    (NONE, -0.002, 0.004, "REPLICATED"),
    (NONE, -0.012, 0.004, "REPLICATED"),  # different from zero, and within the margin
    (NONE, 0.001, 0.05, "UNDERPOWERED"),
    (NONE, 0.10, 0.01, "DID NOT REPLICATE"),
]


@pytest.mark.parametrize(("then", "effect", "se", "verdict"), VERDICTS)
def test_the_verdict_is_of_effect_and_interval(
    then: dict[str, Any], effect: float, se: float, verdict: str
) -> None:
    assert judge(finding(**then), found(effect, se))[0] == verdict
    if "outcome" not in then:  # and the mirror image
        other = then | {"effect": -then["effect"], "outcome": "higher"}
        assert judge(finding(**other), found(-effect, se))[0] == verdict


# --- running it --------------------------------------------------------------------------------


def test_the_same_claim_comes_out_of_new_seeds_and_is_recorded(
    atlas: Path, world: dict[str, Any]
) -> None:
    plan = make_plan("F-muon", atlas, seeds=[11, 12, 13])
    result = reproduce(plan, atlas, record=True, date="2026-03-01")
    assert (result.verdict, result.exit_code) == ("REPLICATED", 0)
    assert "REPLICATED: lower again" in result.lines()[0]
    after = find(read_findings(atlas), "F-muon")
    receipt = "studies/trio-replication-1/records.jsonl"
    assert (after.status, after.replicated_by) == ("replicated", (receipt,))
    assert (after.history[-1].verdict, after.history[-1].receipt) == ("REPLICATED", receipt)
    assert "new seeds 11, 12, 13" in after.history[-1].note
    assert study_sweep(atlas / "studies" / "trio-replication-1").seeds == [11, 12, 13]
    commit(atlas, "replicate")
    assert verify(atlas, strict=True).problems == []
    assert make_plan("F-muon", atlas).sweep.name == "trio-replication-2"


def test_the_same_seeds_confirm_the_software_only(atlas: Path, world: dict[str, Any]) -> None:
    result = reproduce(make_plan("F-muon", atlas), atlas, record=True, date=DATE)
    assert result.verdict == "REPLICATED"
    after = find(read_findings(atlas), "F-muon")
    assert (after.status, after.replicated_by) == ("supported", ())
    assert "tests the software, not the claim" in after.history[-1].note


@pytest.mark.parametrize(
    ("pull", "noise", "verdict"),
    [
        ({"optimizer": 0.3}, 0.01, "DID NOT REPLICATE"),
        ({"optimizer": 0.0}, 0.01, "DID NOT REPLICATE"),
        ({"optimizer": -0.3}, 1.5, "UNDERPOWERED"),
    ],
)
def test_a_failed_replication_is_recorded_too(
    atlas: Path, world: dict[str, Any], pull: dict[str, float], noise: float, verdict: str
) -> None:
    world.update(pull=pull, noise=noise)
    plan = make_plan("F-muon", atlas, seeds=[21, 22, 23])
    result = reproduce(plan, atlas, record=True, date=DATE)
    assert (result.verdict, result.exit_code) == (verdict, 1)
    after = find(read_findings(atlas), "F-muon")
    assert (after.status, after.history[-1].verdict) == ("supported", verdict)
    assert f"{verdict} on {DATE}" in findings_table([after]), "who reads the claim reads this too"
    commit(atlas, "replicate")
    assert verify(atlas, strict=True).problems == []


def test_nothing_is_recorded_without_being_asked(atlas: Path, world: dict[str, Any]) -> None:
    before = (atlas / "findings.jsonl").read_bytes()
    reproduce(make_plan("F-batch", atlas), atlas)
    assert (atlas / "findings.jsonl").read_bytes() == before
    assert not (atlas / "studies" / "trio-replication-1").exists()


def test_a_verdict_that_was_edited_is_found(atlas: Path, world: dict[str, Any]) -> None:
    world["pull"] = {"optimizer": 0.3}
    reproduce(make_plan("F-muon", atlas, seeds=[21, 22, 23]), atlas, record=True, date=DATE)
    path = atlas / "findings.jsonl"
    path.write_text(path.read_text().replace("DID NOT REPLICATE", "REPLICATED"))
    assert "REPLICATED, but trio-replication-1 says DID NOT" in " ".join(verify(atlas).problems)


def test_another_experiment_is_no_replication(atlas: Path, world: dict[str, Any]) -> None:
    reproduce(make_plan("F-muon", atlas, seeds=[4, 5, 6]), atlas, record=True, date=DATE)
    path = atlas / "studies" / "trio-replication-1" / "sweep.json"
    path.write_text(path.read_text().replace('"steps": 20', '"steps": 15'))
    assert "is another experiment than trio" in " ".join(verify(atlas).problems)


def claim_replicated(atlas: Path, by: str) -> None:
    """Append by hand what `atlas reproduce` would not."""
    found = find(read_findings(atlas), "F-muon")
    event = {"status": "replicated", "note": "It was confirmed."}
    amend(atlas, found, event, DATE, replicated_by=(by,))


def test_a_status_that_the_replication_does_not_bear_is_found(
    atlas: Path, world: dict[str, Any]
) -> None:
    reproduce(make_plan("F-muon", atlas), atlas, record=True, date=DATE)
    assert verify(atlas).problems == []
    claim_replicated(atlas, "studies/trio-replication-1/records.jsonl")
    assert "records.jsonl did not replicate it" in " ".join(verify(atlas).problems), "same seeds"


def test_a_replication_without_all_its_runs_is_found(atlas: Path, world: dict[str, Any]) -> None:
    reproduce(make_plan("F-muon", atlas, seeds=[4, 5, 6]), atlas, record=True, date=DATE)
    study = atlas / "studies" / "trio-replication-1"
    for path in (study / "records.jsonl", atlas / "ledger.jsonl"):  # the last run did not please
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    write_rows(study)
    said = " ".join(verify(atlas).problems)
    assert "trio-replication-1 cannot be judged again: 1 of 24 runs of trio-replication-1" in said


@pytest.mark.parametrize(("pull", "holds"), [(-0.3, True), (0.3, False)])
def test_a_finding_that_asks_again_confirms_only_with_the_same_answer(
    atlas: Path, tmp_path: Path, pull: float, holds: bool
) -> None:
    again = hypothesis("F-again", {"kind": "effect", "metric": "best_val", "term": "optimizer"})
    sweep = SWEEP | {"name": "duo", "seeds": [4, 5, 6]}
    second = draft(tmp_path, sweep, id="duo", hypotheses=[again | {"replicates": "F-muon"}])
    preregister(second, atlas, DATE)
    commit(atlas, "pre-register again")
    run_made(atlas, "duo", pull={"optimizer": pull})
    register("duo", atlas, DATE)
    claim_replicated(atlas, "F-again")
    assert ("F-again did not replicate it" in " ".join(verify(atlas).problems)) is not holds


def test_what_cannot_be_replicated_is_refused(atlas: Path, world: dict[str, Any]) -> None:
    with pytest.raises(PaperkilnError, match="F-pair is unresolved: there is no claim"):
        reproduce(make_plan("F-pair", atlas), atlas)
    retract("F-muon", "A slip.", atlas, DATE)
    plan = make_plan("F-muon", atlas)
    assert "note: F-muon is retracted: A slip." in "\n".join(plan.lines())
    with pytest.raises(PaperkilnError, match="F-muon is retracted: nothing to record"):
        reproduce(plan, atlas, record=True)


def test_runs_that_are_left_say_how_to_go_on(atlas: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"left": 2, "total": 24, "broken": {"cell-01-seed-1": "no space left"}}
    monkeypatch.setattr(execute, "run_sweep", lambda *words, **options: broken)
    with pytest.raises(PaperkilnError, match=r"2 of 24 runs are left \(cell-01-seed-1: no space"):
        reproduce(make_plan("F-muon", atlas), atlas)


def test_a_small_experiment_is_really_run_again(corpus: Path, tmp_path: Path) -> None:
    own = tmp_path / "corpus.txt"
    own.write_bytes(corpus.read_bytes())
    base = SWEEP["base"] | {"data": {"tokenizer": "byte", "corpus": str(own)}}
    pair = SWEEP | {
        "base": base, "seeds": [1, 2],
        "factors": {"lr": {"path": "train.lr", "levels": [0.0001, 0.03]}},
    }  # fmt: skip
    fast = hypothesis("F-lr", {"kind": "effect", "metric": "best_val", "term": "lr"})
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text(".lock\n")
    atlas = folder / "atlas"
    preregister(draft(folder, pair, hypotheses=[fast], alpha=0.2), atlas, DATE)
    commit(folder, "pre-register")
    run_sweep(study_sweep(atlas / "studies/trio"), atlas / "studies/trio", tmp_path / "scratch")
    commit(folder, "run")
    assert register("trio", atlas, DATE)[0].outcome == "lower"
    commit(folder, "register")
    assert verify(atlas, strict=True).problems == []
    plan = make_plan("F-lr", atlas, out=tmp_path / "again")
    result = reproduce(plan, atlas)
    assert result.verdict == "REPLICATED"
    assert result.estimate.effect == plan.finding.effect, "same seeds, same machine, same number"
    again = replace(plan, folder=tmp_path / "third")
    own.write_text(own.read_text() + "one more line\n")
    with pytest.raises(PaperkilnError, match="is not the text that trio was trained on"):
        reproduce(again, atlas)
    own.unlink()
    with pytest.raises(PaperkilnError, match="trained on is not here"):
        reproduce(again, atlas)
