"""Verification: a whole atlas passes, and every way of touching it is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_study import DATE, commit, git, pledged_atlas, run_made

from paperkiln.atlas.canonical import canonical, digest
from paperkiln.atlas.findings import find, read_findings
from paperkiln.atlas.records import LEDGER, NO_HASH
from paperkiln.atlas.register import amend, register, retract, supersede
from paperkiln.atlas.rows import write_rows
from paperkiln.atlas.verify import verify
from paperkiln.errors import PaperkilnError


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a study that was pre-registered, run, registered and corrected."""
    atlas = pledged_atlas(tmp_path_factory.mktemp("published") / "repository")
    run_made(atlas)
    commit(atlas, "run")
    register("trio", atlas, DATE)
    commit(atlas, "register")
    retract("F-batch", "A slip.", atlas, DATE)
    supersede("F-lr-muon", "F-muon", "The whole effect says more.", atlas, DATE)
    commit(atlas, "correct")
    return atlas.parent


@pytest.fixture
def atlas(published: Path, tmp_path: Path) -> Path:
    shutil.copytree(published, tmp_path / "repository")
    return tmp_path / "repository" / "atlas"


def test_a_whole_atlas_passes_in_a_clean_clone(published: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(published), "clone")
    result = verify(tmp_path / "clone" / "atlas", strict=True)
    assert (result.problems, result.unchecked, result.exit_code) == ([], [], 0)
    assert "24 rows of 1 studies" in " ".join(result.checked)
    assert all(line.startswith("ok: ") for line in result.lines())


def edit_lines(path: Path, change: Callable[[dict[str, Any]], Any], number: int = 0) -> None:
    lines = path.read_text().splitlines()
    values = json.loads(lines[number])
    change(values)
    lines[number] = canonical(values)
    path.write_text("\n".join(lines) + "\n")


def reseal(atlas: Path) -> None:
    """Make ledger and rows fit the records again, as a careful forger would."""
    study = atlas / "studies" / "trio"
    previous, lines = NO_HASH, []
    for seq, line in enumerate((study / "records.jsonl").read_text().splitlines(), 1):
        record = json.loads(line)
        entry = {"seq": seq, "study": "trio", "run": record["run"], "sha256": digest(record),
                 "previous": previous}  # fmt: skip
        previous = digest(entry)
        lines.append(canonical(entry | {"hash": previous}))
    (atlas / LEDGER).write_text("\n".join(lines) + "\n")
    write_rows(study)


def finding_edit(number: int, **changes: Any) -> Callable[[Path], None]:
    return lambda atlas: edit_lines(
        atlas / "findings.jsonl", lambda values: values.update(changes), number
    )


def record_edit(seal: bool) -> Callable[[Path], None]:
    def touch(atlas: Path) -> None:
        def lower(record: dict[str, Any]) -> None:
            record["curve"]["val"][-1][1] -= 0.01

        edit_lines(atlas / "studies" / "trio" / "records.jsonl", lower)
        if seal:
            reseal(atlas)

    return touch


def cut(name: str, keep: slice) -> Callable[[Path], None]:
    def touch(atlas: Path) -> None:
        lines = (atlas / name).read_text().splitlines(keepends=True)
        (atlas / name).write_text("".join(lines[keep]))

    return touch


def replace(name: str, old: str, new: str, most: int = -1) -> Callable[[Path], None]:
    def touch(atlas: Path) -> None:
        text = (atlas / name).read_text()
        assert old in text
        (atlas / name).write_text(text.replace(old, new, most))

    return touch


def resealed(name: str, old: str, new: str) -> Callable[[Path], None]:
    def touch(atlas: Path) -> None:
        replace(name, old, new, 1)(atlas)
        reseal(atlas)

    return touch


def remove(name: str) -> Callable[[Path], None]:
    return lambda atlas: (atlas / name).unlink()


TRIO = "studies/trio"
TOUCHED: list[tuple[str, Callable[[Path], None], str]] = [
    ("a number", finding_edit(0, effect=-0.5), "F-muon: effect is -0.5, records and"),
    ("an interval", finding_edit(0, ci=[-0.4, -0.2]), "F-muon: ci is"),
    ("a p", finding_edit(0, p_holm=0.01), "F-muon: p_holm is 0.01"),
    ("the ninth digit", finding_edit(0, se=0.0043746909), "F-muon: se is"),
    ("a claim", finding_edit(0, claim="Muon always wins."), "claim is Muon always wins."),
    ("a scope", finding_edit(0, scope="All models."), "scope is All models."),
    ("a design", finding_edit(0, design="1000 runs"), "design is 1000 runs"),
    ("a margin", finding_edit(0, check={"outcome": "lower", "alpha": 0.05, "margin": 1}), "check"),
    ("runs", finding_edit(0, runs=240), "runs is 240"),
    ("a ledger line", finding_edit(0, ledger=[1, 2]), "ledger is (1, 2)"),
    ("an id", finding_edit(0, id="F-new"), "trio does not announce it"),
    ("an outcome", finding_edit(2, outcome="lower", status="supported", history=[],
                                check={"outcome": "lower", "alpha": 0.05, "margin": None}),
     "outcome is lower"),
    ("a status", finding_edit(0, status="replicated", replicated_by=["F-nobody"], history=[]),
     "F-muon does not begin as registered"),
    ("a link", finding_edit(6, superseded_by="F-nobody"), "names F-nobody, which is no finding"),
    ("a receipt", finding_edit(0, receipts=["studies/none/records.jsonl"]), "is missing"),
    ("a later line", finding_edit(5, effect=0.0), "a later line of F-batch changes its effect"),
    ("a lost history", finding_edit(5, history=[]), "loses or skips a part of its history"),
    ("a commit", finding_edit(0, preregistration={"path": "preregistrations/trio.json",
                                                  "sha256": "0" * 64, "commit": "0" * 40}),
     "preregistration is"),
    ("a broken line", replace("findings.jsonl", '{"analysis"', '{"analyses"'), "findings.jsonl:1"),
    ("a dropped null", cut("findings.jsonl", slice(0, 4)), "F-turn was not registered"),
    ("a record", record_edit(seal=False), "was edited"),
    ("a record and its hashes", record_edit(seal=True), "records and pre-registration give"),
    ("a dropped record", cut(f"{TRIO}/records.jsonl", slice(1, None)), "is missing"),
    ("a ledger line gone", cut(LEDGER, slice(1, None)), "seq"),
    ("no ledger", remove(LEDGER), "has no ledger line"),
    ("all records", remove(f"{TRIO}/records.jsonl"), "is missing"),
    ("rows", replace(f"{TRIO}/rows.jsonl", '"best_val":2', '"best_val":1'), "not what the records"),
    ("no rows", remove(f"{TRIO}/rows.jsonl"), "not what the records give"),
    ("a run of something else", resealed(f"{TRIO}/records.jsonl", '"lr":0.003', '"lr":0.03'),
     "is of no run of this sweep"),
    ("another text", resealed(f"{TRIO}/records.jsonl", f'"sha256":"{"0" * 64}"',
                              f'"sha256":"{"1" * 64}"'), "was trained on another text"),
    ("a number JSON has not", replace(f"{TRIO}/records.jsonl", '"wall_seconds":2.0',
                                      '"wall_seconds":NaN', 1), "not a JSON object"),
    ("half a character", replace(LEDGER, '"run":"cell', '"run":"\\ud800', 1), "not a JSON object"),
    ("a seed", resealed(f"{TRIO}/records.jsonl", '"seed":1,', '"seed":9,'),
     "is not that of its spec"),
    ("a sweep", replace(f"{TRIO}/sweep.json", '"batch": 4', '"batch": 8'), "is not the sweep"),
    ("no sweep", remove(f"{TRIO}/sweep.json"), "cannot be read"),
    ("a rule", replace("preregistrations/trio.json", "To see.", "To win."), "preregistration is"),
    ("a rule's claim", replace("preregistrations/trio.json", "comes out", "came out"), "claim is"),
    ("a rule's alpha", replace("preregistrations/trio.json", "0.05", "0.4"), "check is"),
    ("no rule", remove("preregistrations/trio.json"), "trio.json is missing"),
    ("a hostile record", replace(f"{TRIO}/records.jsonl", '"curve":{', '"kurve":{'), "lacks what"),
]  # fmt: skip


@pytest.mark.parametrize(("touch", "part"), [t[1:] for t in TOUCHED], ids=[t[0] for t in TOUCHED])
def test_whatever_is_touched_is_named(
    atlas: Path, touch: Callable[[Path], None], part: str
) -> None:
    touch(atlas)
    result = verify(atlas)
    assert result.exit_code == 1
    assert part in "\n".join(result.problems)
    for line in result.problems:
        assert "\n" not in line


def test_a_forgery_that_fits_everywhere_is_found_in_the_history(atlas: Path) -> None:
    record_edit(seal=True)(atlas)
    (atlas / "findings.jsonl").unlink()
    register("trio", atlas, DATE)
    assert verify(atlas).problems == []
    commit(atlas, "nothing to see")
    problems = "\n".join(verify(atlas, strict=True).problems)
    for name in ("findings.jsonl", LEDGER, f"{TRIO}/records.jsonl"):
        assert f"{name}: it does not begin as in commit" in problems


def test_strict_names_what_is_not_committed(atlas: Path) -> None:
    retract("F-muon", "x", atlas, DATE)
    assert verify(atlas).problems == []
    assert verify(atlas, strict=True).problems == [
        "findings.jsonl: what is here is not committed; commit it"
    ]


def test_strict_names_a_study_that_nobody_announced_or_registered(tmp_path: Path) -> None:
    atlas = pledged_atlas(tmp_path / "r")
    assert verify(atlas, strict=True).problems == [], "announced and not yet run is no fault"
    run_made(atlas)
    commit(atlas)
    assert "has no findings; atlas register trio" in verify(atlas, strict=True).problems[0]
    (atlas / "studies" / "stray").mkdir()
    assert "no pre-registration announces it" in verify(atlas, strict=True).problems[0]


def test_strict_names_a_rule_that_disappeared(atlas: Path) -> None:
    shutil.rmtree(atlas)
    atlas.mkdir()
    (atlas / "findings.jsonl").touch()
    commit(atlas, "forget")
    problems = "\n".join(verify(atlas, strict=True).problems)
    assert "preregistrations/trio.json: it was committed once and is gone" in problems
    assert f"{LEDGER}: it was deleted" in problems


@pytest.mark.parametrize("how", ["moved there", "on a branch"])
def test_strict_names_a_rule_that_came_and_went_unseen(atlas: Path, how: str) -> None:
    rule = (atlas / "preregistrations" / "trio.json").read_text()
    if how == "on a branch":
        git(atlas, "checkout", "-q", "-b", "side")
        (atlas / "preregistrations" / "gone.json").write_text(rule)
    else:
        (atlas.parent / "draft.json").write_text(rule)
        commit(atlas, "a draft")
        git(atlas, "mv", "../draft.json", "preregistrations/gone.json")
    commit(atlas, "a rule")
    git(atlas, "rm", "-q", "preregistrations/gone.json")
    commit(atlas, "its answer did not please")
    if how == "on a branch":
        git(atlas, "checkout", "-q", "main")
        commit(atlas, "meanwhile")
        git(atlas, "merge", "-q", "--no-ff", "-m", "merge", "side")
    assert "preregistrations/gone.json: it was committed once and is gone" in "\n".join(
        verify(atlas, strict=True).problems
    )


def test_a_retraction_is_final(atlas: Path) -> None:
    gone = find(read_findings(atlas), "F-batch")
    amend(atlas, gone, {"status": "supported", "note": "On second thought."}, DATE)
    assert "F-batch was retracted, which is final" in "\n".join(verify(atlas).problems)


def test_strict_names_a_family_that_was_split(tmp_path: Path) -> None:
    atlas = pledged_atlas(tmp_path / "r")
    rule = json.loads((atlas / "preregistrations" / "trio.json").read_text())
    second = rule | {"id": "more", "hypotheses": [rule["hypotheses"][0] | {"id": "F-more"}]}
    (atlas / "preregistrations" / "more.json").write_text(json.dumps(second))
    commit(atlas)
    assert verify(atlas, strict=True).problems == [
        "studies/trio: two pre-registrations split what Holm corrects together; keep one"
    ]


def test_strict_misses_a_study_whose_records_were_deleted(tmp_path: Path) -> None:
    atlas = pledged_atlas(tmp_path / "r")
    run_made(atlas)
    git(atlas, "add", f"{TRIO}/records.jsonl")
    git(atlas, "commit", "-q", "-m", "the records without their ledger")
    (atlas / LEDGER).unlink()
    (atlas / TRIO / "records.jsonl").unlink()
    (atlas / TRIO / "rows.jsonl").unlink()
    commit(atlas, "it did not please")
    assert f"{TRIO}/records.jsonl: it was deleted" in "\n".join(verify(atlas, strict=True).problems)


def test_strict_names_rules_that_are_as_young_as_the_data(atlas: Path) -> None:
    shutil.rmtree(atlas.parent / ".git")
    git(atlas.parent, "init", "-q")
    commit(atlas, "all at once")
    assert "are not younger than the pre-registration" in "\n".join(
        verify(atlas, strict=True).problems
    )


@pytest.mark.parametrize("kind", ["archive", "shallow"])
def test_without_history_strict_says_what_it_could_not_check(
    atlas: Path, tmp_path: Path, kind: str
) -> None:
    if kind == "archive":
        shutil.rmtree(atlas.parent / ".git")
    else:
        git(tmp_path, "clone", "-q", "--depth", "1", f"file://{atlas.parent}", "shallow")
        atlas = tmp_path / "shallow" / "atlas"
    assert verify(atlas).exit_code == 0
    result = verify(atlas, strict=True)
    assert result.problems == []
    assert len(result.unchecked) == 2
    assert result.exit_code == 1, "not checked is not passed"
    assert not any("committed before" in line for line in result.checked)
    assert ("--unshallow" if kind == "shallow" else "clone the repository") in result.lines()[-1]


def test_no_atlas_is_refused_and_an_empty_one_passes(tmp_path: Path) -> None:
    with pytest.raises(PaperkilnError, match="--atlas"):
        verify(tmp_path / "nowhere")
    assert verify(tmp_path).exit_code == 0
    assert read_findings(tmp_path) == []
