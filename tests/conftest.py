"""What many tests share: a token cache of their own, a small corpus, and one small finished run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from paperkiln.cli import main
from paperkiln.train import tinychat

# Read when numpy and torch are first loaded, which neither import above does.
for _threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

# A time limit for one example would only measure what else the machine is doing.
settings.register_profile("paperkiln", deadline=None)
settings.load_profile("paperkiln")

# d16, one layer, bytes, 20 steps: about a tenth of a second of training.
TINY: dict[str, Any] = {
    "name": "tiny",
    "arch": {"d_model": 16, "n_layers": 1, "n_heads": 2, "n_kv_heads": 1, "context_length": 32},
    "data": {"tokenizer": "byte"},
    "train": {
        "steps": 20, "batch": 4, "eval_every": 5, "checkpoint_every": 5, "warmup_steps": 2,
        "gradmap_every": 5,
        # make test runs the tests of training a second time on torch-cpu.
        "device": os.environ.get("PAPERKILN_TEST_DEVICE", "cpu"),
    },
}  # fmt: skip


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep every test, and every process a test starts, out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAPERKILN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text file of 200 short dialogues, about 40 kB."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    tinychat.write_corpus(path, 200, seed=3)
    return path


@pytest.fixture(scope="session")
def tiny(corpus: Path) -> Callable[..., dict[str, Any]]:
    """Return `tiny(folder, train={...}, ...)`: a small spec's values with changes merged in."""

    def make(folder: Path, **changes: Any) -> dict[str, Any]:
        values = json.loads(json.dumps(TINY)) | {"out_dir": str(folder)}
        values["data"]["corpus"] = str(corpus)
        for section, change in changes.items():
            if isinstance(change, dict):
                values[section] = values.get(section, {}) | change
            else:
                values[section] = change
        return values

    return make


@pytest.fixture(scope="session")
def tiny_run(tiny: Callable[..., dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished small run; a test that writes to it takes a copy."""
    from paperkiln.spec import parse_spec
    from paperkiln.train.run import run

    return run(parse_spec(tiny(tmp_path_factory.mktemp("run") / "tiny")))


@pytest.fixture
def spec(tiny: Callable[..., dict[str, Any]], tmp_path: Path) -> Callable[..., Path]:
    """Return `spec(**changes)`: the path of a small spec that writes to tmp_path/r."""

    def make(**changes: Any) -> Path:
        path = tmp_path / "s.json"
        path.write_text(json.dumps(tiny(tmp_path / "r", **changes)))
        return path

    return make


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Return `cli(*words)`: run a command here and give (exit code, stdout, stderr)."""

    def call(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as stopped:  # argparse
            code = int(stopped.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def refused(cli: Callable[..., tuple[int, str, str]]) -> Callable[..., str]:
    """Return `refused(*words)`: the one line that a command says before it exits with 2."""

    def call(*words: object) -> str:
        code, out, err = cli(*words)
        lines = [line for line in err.splitlines() if not line.startswith("note: ")]
        assert code == 2, (code, out, err)
        assert out == ""
        assert lines, "nothing was said"
        # A run may have told its progress before it met the trouble: its last line says what.
        assert len(lines) == 1 or words[0] == "run", err
        assert lines[-1].startswith("paperkiln: "), err
        assert "Traceback" not in err
        assert "Warning" not in err
        return lines[-1].removeprefix("paperkiln: ")

    return call
