"""The verbs of the atlas, as a user types them: from a design to a finding and its replication."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_study import commit, git, hypothesis

from paperkiln.cli import main

SWEEP: dict[str, Any] = {
    "version": 1, "name": "pair", "question": "Does Muon learn faster in twelve steps?",
    "base": {
        "arch": {"d_model": 16, "n_layers": 1, "n_heads": 2, "context_length": 16},
        "data": {"tokenizer": "byte"},
        "train": {
            "steps": 12, "batch": 4, "shards": 1, "eval_every": 4, "warmup_steps": 1, "lr": 1e-3,
            "checkpoint_every": 12, "muon_lr": 0.05,
        },
    },
    "factors": {"optimizer": {"path": "train.optimizer", "levels": ["adamw", "muon"]}},
    "design": {"kind": "factorial"},
    "seeds": [1, 2, 3],
}  # fmt: skip
DRAFT = {
    "id": "pair", "sweep": "pair.json", "why": "To see.", "exclusions": "None.",
    "hypotheses": [
        hypothesis("muon-loss", {"kind": "effect", "metric": "best_val", "term": "optimizer"}),
        hypothesis("muon-turn", {"kind": "change", "term": "optimizer", "from": 4, "to": 12}, None),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    """A repository with a sweep, its pre-registration, its runs and its findings."""
    folder = tmp_path_factory.mktemp("atlas")
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text("runs/\n.lock\n")
    sweep = json.loads(json.dumps(SWEEP))
    sweep["base"]["data"]["corpus"] = "corpus.txt"
    (folder / "corpus.txt").write_bytes(corpus.read_bytes())
    (folder / "pair.json").write_text(json.dumps(sweep))
    (folder / "draft.json").write_text(json.dumps(DRAFT))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["atlas", "preregister", "draft.json"]) == 0
        commit(folder, "pre-register")
        assert main(["atlas", "run", "pair.json", "--jobs", "2"]) == 0
        commit(folder, "records")
        assert main(["atlas", "register", "pair"]) == 0
        commit(folder, "findings")
    return folder


@pytest.fixture
def atlas(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return `atlas(words...)`, which runs a verb there and returns (exit code, out, err)."""
    monkeypatch.chdir(place)

    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["atlas", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_a_design_is_shown_with_its_aliases_and_an_impossible_one_with_what_exists(atlas):
    code, out, _ = atlas("design", "7", "--runs", "8", "--sd", "0.02")
    assert code == 0
    assert "resolution III" in out
    assert "A + B:D + C:E + F:G" in out
    code, _, err = atlas("design", "7", "--runs", "10")
    assert code == 2
    assert "8 (III), 12 (III)" in err


def test_a_plan_names_cells_aliases_power_and_cost(atlas):
    code, out, _ = atlas("plan", "pair.json", "--sd", "0.02")
    assert code == 0
    for part in ("adamw", "6 (2 cells x 3 seeds)", "min of this machine", "power:"):
        assert part in out
    code, out, _ = atlas("plan", "pair.json", "--no-calibration", "--json")
    assert json.loads(out)["minutes"] is None


def test_what_was_run_is_not_run_again(atlas):
    code, out, _ = atlas("run", "pair.json", "--json")
    assert code == 0
    assert json.loads(out)["done"] == 6
    assert "6 of 6 runs done" in atlas("status", "pair")[1]


def test_a_study_is_analysed_by_its_name_or_from_a_file(atlas):
    code, by_name, _ = atlas("analyze", "pair", "--json")
    assert code == 0
    _, by_file, _ = atlas("analyze", "atlas/studies/pair/rows.jsonl", "--json")
    assert json.loads(by_name) == json.loads(by_file)
    assert json.loads(by_name)[0]["term"] == "optimizer"
    assert "high" in atlas("analyze", "pair", "--metric", "val@8")[1]
    code, _, err = atlas("analyze", "nobody")
    assert (code, err) == (2, "paperkiln: atlas/studies/nobody: no rows there; studies: pair\n")


def test_the_lottery_and_the_crossing_take_every_budget_by_default(atlas):
    code, out, _ = atlas("lottery", "pair", "--json")
    assert code == 0
    assert [row["budget"] for row in json.loads(out)["rows"]] == [4, 8, 12]
    code, out, _ = atlas("crossing", "pair")
    assert code == 0
    assert "12" in out
    assert "--factor shape: choose one of optimizer" in atlas(
        "lottery", "pair", "--factor", "shape"
    )[2]  # fmt: skip


def test_findings_are_listed_filtered_and_cited(atlas):
    code, out, _ = atlas("findings", "--json")
    assert code == 0
    assert [f["id"] for f in json.loads(out)] == ["muon-loss", "muon-turn"]
    assert "| `muon-loss` |" in atlas("findings", "--md", "--factor", "optimizer")[1]
    assert atlas("findings", "--status", "nice")[0] == 2
    code, out, _ = atlas("advise", "Is", "this", "good", "for", "translation?")
    assert code == 1
    assert "NO EVIDENCE" in out


def test_everything_published_is_recomputed(atlas):
    code, out, _ = atlas("verify", "--strict")
    assert (code, "PROBLEM" in out) == (0, False), out


def test_a_replication_says_its_cost_first_and_then_its_verdict(atlas, tmp_path):
    code, out, err = atlas("reproduce", "muon-loss", "--seeds", "11", "12", "13")
    assert code == 0
    assert "6 of pair" in out
    assert "add --run" in err
    code, out, _ = atlas(
        "reproduce", "muon-loss", "--run", "--out", str(tmp_path / "again")
    )  # the same seeds on the same machine: the same numbers
    assert code == 0
    assert "REPLICATED" in out


def test_a_run_before_the_commit_is_warned_of(place, tmp_path, monkeypatch, capsys):
    copy = tmp_path / "copy"
    git(tmp_path, "clone", "-q", str(place), str(copy))
    monkeypatch.chdir(copy)
    path = copy / "atlas/preregistrations/pair.json"
    path.write_text(path.read_text().replace("To see.", "To know."))
    assert main(["atlas", "run", "pair.json"]) == 0
    assert "was changed after commit" in capsys.readouterr().err


def test_a_retraction_stays_visible(place, tmp_path, monkeypatch, capsys):
    copy = tmp_path / "copy"
    git(tmp_path, "clone", "-q", str(place), str(copy))
    monkeypatch.chdir(copy)
    assert main(["atlas", "retract", "muon-loss", "--note", "twelve steps are no training"]) == 0
    capsys.readouterr()
    assert main(["atlas", "findings"]) == 0
    assert "retracted: twelve steps are no training" in capsys.readouterr().out
    assert main(["atlas", "verify"]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan"], "atlas plan needs a sweep file"),
        (["preregister"], "needs a draft"),
        (["run", "pair.json", "--address", "tcp://x:1"], "--backend dask"),
        (["register", "nobody"], "nobody"),
        (["reproduce", "nobody"], "nobody"),
        (["verify", "--atlas", "nowhere"], "no atlas here"),
        (["findings", "--atlas", "nowhere"], "no atlas here"),
        (["advise", "--atlas", "nowhere", "muon"], "no atlas here"),
        (["reproduce", "--atlas", "nowhere", "muon"], "no atlas here"),
        (["lottery", "pair", "--given", "lr"], "write FACTOR=LEVEL"),
        (["analyze", "pair", "--half-normal", "e.svg"], "half-normal"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(atlas, words, said):
    code, _, err = atlas(*words)
    assert code == 2
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("jobs", ["0", "-2", "two"])
def test_jobs_are_at_least_one(atlas, capsys, jobs):
    with pytest.raises(SystemExit, match="2"):
        main(["atlas", "reproduce", "muon-loss", "--jobs", jobs])
    assert "no number of runs at once" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["plan", "preregister", "findings"])
def test_schemas_are_printed(atlas, verb):
    code, out, _ = atlas(verb, "--schema")
    assert code == 0
    assert json.loads(out)["type"] == "object"
