"""A run folder that is taken over by a new run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

Refused = Callable[..., str]


@pytest.mark.parametrize(
    "wrong", ["data.corpus=nowhere.txt", "train.device=mps", "arch.context_length=70000"]
)
def test_overwrite_deletes_nothing_before_the_new_run_can_start(
    wrong: str, refused: Refused, tiny_run: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(tiny_run, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    refused("run", folder, "--overwrite", "--set", wrong)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_resume_and_overwrite_together_are_refused(refused: Refused, tiny_run: Path) -> None:
    assert "choose one" in refused("run", tiny_run, "--resume", "--overwrite")


def test_a_new_run_leaves_no_export_of_the_old_one(
    cli: Callable[..., tuple[int, str, str]], tiny_run: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(tiny_run, folder)
    (folder / "notes.txt").write_text("mine")
    assert cli("export", folder, "--format", "gguf", "--dtype", "q8_0")[0] == 0
    assert (folder / "model-q8_0.gguf").exists()
    assert cli("run", folder, "--overwrite", "--set", "export.gguf=null")[0] == 0
    assert not list(folder.glob("*.gguf"))
    assert (folder / "notes.txt").read_text() == "mine"
    assert "gguf" not in (folder / "card.md").read_text()
