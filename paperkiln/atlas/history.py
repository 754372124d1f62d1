"""What git remembers of the files of an atlas: which commit came first, and what it held."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from paperkiln.errors import PaperkilnError

_SECONDS = 120  # git answers at once; a lock left behind must not hang us


def depth(atlas: Path) -> str:
    """Return how much history there is: "full", "shallow" or "none"."""
    try:
        answer = _git(atlas, "rev-parse", "--is-shallow-repository").decode().strip()
        _git(atlas, "rev-parse", "--verify", "HEAD")
    except PaperkilnError:
        return "none"
    return "full" if answer == "false" else "shallow"


def commits_of(atlas: Path, path: str) -> list[str]:
    """Return the commits that touched a file of the atlas, oldest first."""
    answer = _git(atlas, "log", "--format=%H", "--full-history", "--", path)
    return answer.decode().split()[::-1]


def ever_added(atlas: Path, folder: str) -> list[str]:
    """Return every file that some commit put in a folder of the atlas.

    Also one that was moved there, that a merge added, or that came and went on a branch.
    """
    words = ("log", "--format=", "--name-only", "--diff-filter=A", "--no-renames", "-m",
             "--full-history", "--relative", "--", folder)  # fmt: skip
    return sorted(set(_git(atlas, *words).decode().split("\n")) - {""})


def content_at(atlas: Path, commit: str, path: str) -> bytes:
    """Return what a file of the atlas held after a commit; nothing where it was deleted."""
    if not _git(atlas, "ls-tree", commit, "--", path):
        return b""
    return _git(atlas, "show", f"{commit}:./{path}")


def is_older(atlas: Path, first: str, second: str) -> bool:
    """Return whether the first commit is a true ancestor of the second."""
    if first == second:
        return False
    command = _command(atlas, "merge-base", "--is-ancestor", first, second)
    done = subprocess.run(command, capture_output=True, env=_env(), timeout=_SECONDS, check=False)
    return done.returncode == 0


def _git(atlas: Path, *words: str) -> bytes:
    try:
        done = subprocess.run(
            _command(atlas, *words), capture_output=True, env=_env(), timeout=_SECONDS, check=False
        )
    except (FileNotFoundError, NotADirectoryError):
        raise PaperkilnError("git is not installed; the history of an atlas is in git") from None
    except subprocess.TimeoutExpired:
        raise PaperkilnError(f"{atlas}: git {words[0]} does not answer; is it locked?") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise PaperkilnError(f"{atlas}: git {words[0]} failed ({said})")
    return done.stdout


def _command(atlas: Path, *words: str) -> list[str]:
    return ["git", "-C", str(atlas), "-c", "core.quotePath=false", *words]


def _env() -> dict[str, str]:
    """Return the environment without what, inside a git hook, names another repository."""
    local = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
    return {k: v for k, v in os.environ.items() if k not in local} | {"LC_ALL": "C"}
