"""Wrong input, each through the real command line: one line, exit code 2, and nothing lost."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kill_run import difference

from paperkiln.train.events import EventLog, read_events

Cli = Callable[..., tuple[int, str, str]]
Refused = Callable[..., str]
Spec = Callable[..., Path]


# --- data -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (None, "no such file"),
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"PK\x03\x04\x00\x00", "binary"),
        (b"caf\xe9 " * 500, "not UTF-8 at byte 3"),
        (b"short", "the training text has 4 tokens, but one window needs context_length + 1 = 33"),
        (b"x", "the training text has 0 tokens"),
    ],
)
@pytest.mark.parametrize("tokenizer", ["byte", "bpe", "word"])
def test_a_corpus_that_will_not_do(
    spec: Spec, refused: Refused, tmp_path: Path, text: bytes | None, part: str, tokenizer: str
) -> None:
    path = tmp_path / "c.txt"
    if text is not None:
        path.write_bytes(text)
    data = {"corpus": str(path), "tokenizer": tokenizer}
    if tokenizer != "byte":
        part = part.replace("has 4 tokens", "has ")
    for verb in ("run", "data prepare"):
        line = refused(*verb.split(), spec(data=data))
        assert part.split(", but")[0] in line or "has 1 tokens" in line, line
    assert not (tmp_path / "r" / "checkpoint.safetensors").exists()


def test_a_context_longer_than_the_data(spec: Spec, refused: Refused) -> None:
    line = refused("run", spec(arch={"context_length": 10**6}))
    assert "context_length + 1 = 1,000,001" in line
    assert "shorten arch.context_length" in line


def test_a_validation_text_of_one_token(spec: Spec, refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("x")
    assert "at least 2" in refused("run", spec(data={"validation": str(tmp_path / "v.txt")}))


def test_unicode_and_crlf_text_trains(spec: Spec, cli: Cli, tmp_path: Path) -> None:
    text = "Zażółć gęślą jaźń 🦙 日本語\r\nनमस्ते \x0b\u2028 end\r\n" * 200
    (tmp_path / "c.txt").write_bytes(b"\xef\xbb\xbf" + text.encode())
    code, _, err = cli("run", spec(data={"corpus": str(tmp_path / "c.txt"), "tokenizer": "bpe"}))
    assert code == 0, err
    ids = json.loads((tmp_path / "r" / "tokenizer.json").read_text(encoding="utf-8"))
    assert "č" not in json.dumps(ids["model"]["merges"][:50], ensure_ascii=False), (
        "no carriage return"
    )


# --- spec -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "part"),
    [
        ("train.learn_rate=1", "train.learn_rate: unknown name"),
        ("trian.lr=1", "did you mean train?"),
        ("train.lr", "write section.field=value"),
        ("train.lr.x=1", "'lr' is a value"),
        ("arch.n_heads=3", "d_model 16 is not divisible by n_heads 3"),
        ("train.device=gpu", 'train.device = "gpu"'),
        ("train.steps=0", "train.steps = 0"),
    ],
)
@pytest.mark.parametrize("verb", ["plan", "run", "data prepare"])
def test_a_wrong_override(
    spec: Spec, refused: Refused, tmp_path: Path, verb: str, override: str, part: str
) -> None:
    assert part in refused(*verb.split(), spec(train={"lr": 0.1}), "--set", override)
    assert not (tmp_path / "r").exists(), "nothing was begun"


def test_an_unknown_device(spec: Spec, refused: Refused, tiny_run: Path) -> None:
    assert 'train.device = "tpu"' in refused("run", spec(), "--device", "tpu")
    line = refused("evaluate", tiny_run, "--device", "tpu")
    assert "device 'tpu': known are cpu" in line


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_that_is_not_here(
    spec: Spec, refused: Refused, tmp_path: Path, device: str
) -> None:
    from paperkiln.engine.device import unavailable

    if unavailable(device) is None:
        pytest.skip(f"{device} is here")
    assert f"device {device}: torch " in refused("run", spec(), "--device", device)


def test_a_missing_spec(refused: Refused, tmp_path: Path) -> None:
    for verb in ("plan", "run", "demo"):
        assert "no such spec file" in refused(verb, tmp_path / "none.json")
    (tmp_path / "empty").mkdir()
    assert "spec.json: no such spec file" in refused("run", tmp_path / "empty", "--resume")


def test_demo_needs_small_talk(spec: Spec, refused: Refused) -> None:
    assert "must train on tinychat" in refused("demo", spec())


# --- the place to write to --------------------------------------------------------------------


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/nothing", "/dev/null/x", "x" * 300])
def test_a_folder_that_cannot_be_written(
    spec: Spec, refused: Refused, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("mine")
    line = refused("run", spec(out_dir=str(tmp_path / place)))
    assert "cannot be written" in line
    assert "choose another out_dir" in line
    assert (tmp_path / "file").read_text() == "mine"


def test_data_and_exports_that_cannot_be_written(
    refused: Refused, tiny_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file" / "x", Path("/proc/nothing")):
        line = refused("data", "tinychat", "--dialogues", 3, "--out", place)
        assert "could not be written" in line
        for form in ("gguf", "safetensors", "hf"):
            line = refused("export", tiny_run, "--format", form, "--out", place)
            assert "written" in line or "write" in line
        assert (f"{place.parent} is no folder" in line) == (place.parent.is_file())
    assert (tmp_path / "file").read_text() == "mine"


class FullFile:
    """A file on a disk that takes no more."""

    def __init__(self, file: Any) -> None:
        self.close = file.close

    def write(self, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def run_until_the_disk_is_full(
    monkeypatch: pytest.MonkeyPatch, refused: Refused, spec: Path, n: int, where: str
) -> str:
    """Run with ENOSPC at the n-th fsync, or halfway through the n-th event."""
    left = n

    def full() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    with monkeypatch.context() as patch:
        if where == "file":
            fsync = os.fsync

            def failing(descriptor: int) -> None:
                if full():
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                fsync(descriptor)

            patch.setattr(os, "fsync", failing)
        else:
            append = EventLog.append

            def failing_append(log: EventLog, event: Any) -> None:
                if full():
                    log._file.write(b'{"event":"st')
                    log._file = FullFile(log._file)
                append(log, event)

            patch.setattr(EventLog, "append", failing_append)
        return refused("run", spec, "--resume")


@pytest.mark.parametrize(
    ("where", "n"), [*(("file", n) for n in range(0, 9, 2)), *(("log", n) for n in (0, 3, 12, 28))]
)
def test_a_full_disk_loses_nothing(
    spec: Spec, refused: Refused, cli: Cli, monkeypatch: pytest.MonkeyPatch,
    tiny_run: Path, tmp_path: Path, where: str, n: int,
) -> None:  # fmt: skip
    line = run_until_the_disk_is_full(monkeypatch, refused, spec(), n, where)
    assert "No space left on device" in line
    assert str(tmp_path / "r") in line
    code, _, err = cli("run", tmp_path / "s.json", "--resume")
    assert code == 0, err
    assert difference(tmp_path / "r", tiny_run) is None


@pytest.mark.skipif(sys.platform == "win32", reason="needs a file size limit")
def test_the_kernel_refuses_a_file(spec: Spec, tmp_path: Path) -> None:
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000));"
        "from paperkiln.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", script, "run", str(spec())]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    last = done.stderr.splitlines()[-1]
    assert "checkpoint.safetensors could not be written (File too large)" in last
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "r").glob(".*.partial")), "no half of a file is left"
    assert [e.step for e in read_events(tmp_path / "r" / "events.jsonl") if e.event == "eval"] == [
        5
    ]


def test_a_second_process_in_the_same_folder(spec: Spec, refused: Refused, tmp_path: Path) -> None:
    import filelock

    (tmp_path / "r").mkdir()
    holder = (
        "import filelock, sys; lock = filelock.FileLock(sys.argv[1]); lock.acquire();"
        "print('held', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", holder, str(tmp_path / "r" / ".lock")]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout.readline() == "held\n"
        before = sorted(os.listdir(tmp_path / "r"))
        for flag in ([], ["--resume"], ["--overwrite"]):
            assert "another process is training here" in refused("run", spec(), *flag)
        assert sorted(os.listdir(tmp_path / "r")) == before
        process.communicate("")
    with filelock.FileLock(tmp_path / "r" / ".lock", timeout=0):
        pass
