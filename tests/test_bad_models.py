"""Models, prompts and pipes that are not as they should be: one line, exit code 2, nothing lost."""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paperkiln.formats.gguf_reader import read_header
from paperkiln.formats.hf import export_hf
from paperkiln.formats.safetensors_io import load_tensors, save_tensors
from paperkiln.infer.load import load_run

Cli = Callable[..., tuple[int, str, str]]
Refused = Callable[..., str]
Spec = Callable[..., Path]


@pytest.fixture
def copy(tiny_run: Path, tmp_path: Path) -> Path:
    """A copy of the finished run that a test may damage."""
    return shutil.copytree(tiny_run, tmp_path / "r")


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# --- models -----------------------------------------------------------------------------------

READERS = ["info", "evaluate", "sample", "export --format gguf", "chat"]


def refuse_everywhere(refused: Refused, path: Path, part: str = "", verbs: list = READERS) -> None:
    before = snapshot(path.parent)
    for verb in verbs:
        name, *options = verb.split()
        line = refused(name, path, *options)
        assert path.name in line, line
        assert part in line, line
    assert snapshot(path.parent) == before


@pytest.mark.parametrize("kept", [0, 3, 4, 11, 30, 2000, 9000, -1])
@pytest.mark.parametrize("name", ["model.gguf", "model.safetensors"])
def test_a_file_that_was_cut_off(
    refused: Refused, tiny_run: Path, tmp_path: Path, name: str, kept: int
) -> None:
    path = tmp_path / name
    path.write_bytes((tiny_run / name).read_bytes()[:kept])
    refuse_everywhere(refused, path)


@pytest.mark.parametrize("kept", [0, 7, 2000, -1])
def test_a_run_folder_whose_weights_were_cut_off(refused: Refused, copy: Path, kept: int) -> None:
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept])
    for verb in READERS:
        name, *options = verb.split()
        assert "model.safetensors" in refused(name, copy, *options)


def test_files_of_another_kind(refused: Refused, tmp_path: Path, tiny_run: Path) -> None:
    odd = {
        "a.gguf": b"ggml old format", "b.gguf": b"GGUF" + bytes(60), "c.gguf": b"\xff" * 100,
        "d.gguf": b"GGUF\x03\x00\x00\x00" + b"\xff" * 16, "e.txt": b"some text",
        "f.pt": b"PK\x03\x04",
        "g.safetensors": (1 << 40).to_bytes(8, "little") + b"{", "h.json": b"{}",
        "i.safetensors": b"\x02\0\0\0\0\0\0\0[]", "j.safetensors": b"\x09\0\0\0\0\0\0\0{\"a\": 1}",
    }  # fmt: skip
    for name, data in odd.items():
        (tmp_path / "d" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "d" / name).write_bytes(data)
        refuse_everywhere(refused, tmp_path / "d" / name)


def test_names_that_would_command_a_terminal(
    cli: Cli, refused: Refused, tiny_run: Path, tmp_path: Path
) -> None:
    path = tmp_path / "evil.gguf"
    name = b"output_norm.weight"
    hostile = b"\x1b]0;x\x07\n\x1b[31mevil"
    data = (tiny_run / "model.gguf").read_bytes()
    path.write_bytes(data.replace(name, hostile.ljust(len(name), b"x")))
    code, out, _ = cli("info", path)
    assert code == 0
    assert "evil" in out
    for said in (out, refused("sample", path), refused("chat", path)):
        assert not set(said) & set("\x1b\x07")
    assert len(out.splitlines()) == len(cli("info", tiny_run / "model.gguf")[1].splitlines())


@pytest.mark.parametrize("bad", [np.nan, np.inf, 3e38])
def test_weights_that_are_no_numbers(
    bad: float, refused: Refused, tiny_run: Path, tmp_path: Path
) -> None:
    path = tmp_path / "bad.gguf"
    data = bytearray((tiny_run / "model.gguf").read_bytes())
    for name in ("output_norm.weight", "blk.0.ffn_norm.weight", "blk.0.attn_q.weight"):
        info = read_header(bytes(data)).tensors[name]
        values = np.full(info.shape, bad, np.float32)
        data[info.offset : info.offset + info.n_bytes] = values.tobytes()
    path.write_bytes(data)
    assert "its weights are damaged" in refused("sample", path)


def test_an_architecture_of_many_letters(refused: Refused, tiny_run: Path, tmp_path: Path) -> None:
    path = tmp_path / "long.gguf"
    data = (tiny_run / "model.gguf").read_bytes()
    long = struct.pack("<Q", 9000) + b"z" * 9000
    path.write_bytes(data.replace(struct.pack("<Q", 5) + b"llama", long, 1))
    assert len(refused("sample", path)) < 400


def test_weights_that_are_not_the_model_s(refused: Refused, copy: Path) -> None:
    verbs = [verb for verb in READERS if verb != "info"]
    save_tensors(copy / "model.safetensors", {"strange": np.zeros((2, 2), np.float32)})
    for verb in verbs:
        name, *options = verb.split()
        assert "11 tensors are missing" in refused(name, copy, *options)
    (copy / "tokenizer.json").write_text('{"model": {"type": "Unigram"}}')
    for verb in verbs:
        name, *options = verb.split()
        assert "tokenizer.json: a Unigram model" in refused(name, copy, *options)


def test_missing_models(refused: Refused, tmp_path: Path) -> None:
    refuse_everywhere(refused, tmp_path / "none", "no such")
    (tmp_path / "d" / "empty").mkdir(parents=True)
    refuse_everywhere(refused, tmp_path / "d" / "empty")


def test_a_run_that_has_not_finished(refused: Refused, copy: Path) -> None:
    for name in ("model.safetensors", "model.gguf", "record.json", "best.safetensors"):
        (copy / name).unlink()
    for verb in READERS:
        name, *options = verb.split()
        assert "--resume" in refused(name, copy, *options)


def test_a_run_of_another_version(refused: Refused, copy: Path) -> None:
    values = json.loads((copy / "spec.json").read_text())
    (copy / "spec.json").write_text(json.dumps(values | {"version": 2, "serve": {}}))
    before = snapshot(copy)
    for verb in ("evaluate", "sample", "export --format gguf", "chat", "run --resume", "plan"):
        name, *options = verb.split()
        line = refused(name, copy, *options)
        assert "version 2" in line
        assert "this paperkiln reads 1" in line
    assert snapshot(copy) == before


def test_a_spec_in_the_run_folder_that_was_never_resolved(refused: Refused, copy: Path) -> None:
    values = json.loads((copy / "spec.json").read_text())
    values["arch"]["vocab_size"] = None
    (copy / "spec.json").write_text(json.dumps(values))
    for verb in ("evaluate", "sample", "export --format gguf", "chat"):
        name, *options = verb.split()
        assert "vocab_size" in refused(name, copy, *options)


def test_evaluating_a_text_that_will_not_do(
    refused: Refused, tiny_run: Path, tmp_path: Path
) -> None:
    for text, part in (
        (None, "no such file"),
        (b"", "empty"),
        (b"\0", "binary"),
        (b"x", "at least 2"),
    ):
        if text is not None:
            (tmp_path / "t.txt").write_bytes(text)
        assert part in refused("evaluate", tiny_run, "--text", tmp_path / "t.txt")
    assert "give --text" in refused("evaluate", tiny_run / "model.gguf")


def test_the_corpus_of_a_run_that_is_gone_or_changed(
    spec: Spec, refused: Refused, cli: Cli, corpus: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copy(corpus, tmp_path / "c.txt"))
    assert cli("run", spec(data={"corpus": str(path)}))[0] == 0
    assert cli("evaluate", tmp_path / "r")[0] == 0
    path.write_bytes(path.read_bytes()[:-100])
    assert "changed" in refused("evaluate", tmp_path / "r")
    path.unlink()
    assert "no such file" in refused("evaluate", tmp_path / "r")
    assert cli("sample", tmp_path / "r", "--tokens", 2)[0] == 0, "the folder is self-sufficient"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ("--temperature -1", "temperature"), ("--temperature nan", "temperature"),
        ("--top-k -1", "top_k"), ("--top-p 0", "top_p"), ("--top-p 1.5", "top_p"),
        ("--min-p -0.1", "min_p"), ("--repetition-penalty 0", "repetition_penalty"),
        ("--tokens 0", "--tokens"), ("--tokens -5", "--tokens"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["sample", "chat"])
def test_sampling_options_out_of_range(
    refused: Refused, tiny_run: Path, verb: str, options: str, part: str
) -> None:
    assert part in refused(verb, tiny_run, *options.split())


def test_an_empty_stop_string(refused: Refused, tiny_run: Path) -> None:
    assert "stop" in refused("sample", tiny_run, "--stop", "", "--json")


def test_exports_that_would_do_harm(refused: Refused, cli: Cli, copy: Path) -> None:
    assert cli("export", copy, "--format", "gguf", "--dtype", "q8_0")[0] == 0
    before = snapshot(copy)
    quantised = copy / "model-q8_0.gguf"
    for form in ("gguf", "safetensors"):  # by default it would replace the exact weights
        assert "--out" in refused("export", quantised, "--format", form)
    assert "the model itself" in refused(
        "export", quantised, "--format", "gguf", "--out", quantised
    )
    assert "f32" in refused("export", copy, "--format", "hf", "--dtype", "q8_0")
    assert "the model itself" in refused("export", copy, "--format", "hf", "--out", copy)
    (copy / "other").mkdir()
    (copy / "other" / "mine").write_text("")
    line = refused("export", copy, "--format", "hf", "--out", copy / "other")
    assert "choose a new or empty folder" in line
    (copy / "other" / "mine").unlink()
    assert snapshot(copy) == before


@pytest.fixture
def hf_folder(tiny_run: Path, tmp_path: Path) -> Path:
    """A Hugging Face folder, as a user may have downloaded one."""
    model = load_run(tiny_run)
    export_hf(tmp_path / "theirs", model.config, model.params, model.tokenizer)
    return tmp_path / "theirs"


def shard(folder: Path) -> None:
    """Cut a folder's weights in two files and an index."""
    tensors = load_tensors(folder / "model.safetensors").tensors
    where = {name: f"model-{i % 2}.safetensors" for i, name in enumerate(tensors)}
    for file in set(where.values()):
        save_tensors(folder / file, {n: tensors[n] for n, f in where.items() if f == file})
    index = {"metadata": {}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model.safetensors").unlink()


@pytest.mark.parametrize("sharded", [False, True])
def test_a_default_target_never_replaces_what_it_did_not_write(
    refused: Refused, cli: Cli, hf_folder: Path, sharded: bool
) -> None:
    if sharded:
        shard(hf_folder)
    (hf_folder / "model.gguf").write_text("theirs")
    (hf_folder / "hf").mkdir()
    (hf_folder / "hf" / "config.json").write_text("theirs")
    before = snapshot(hf_folder)
    for form in ("safetensors", "gguf", "hf"):
        assert "--out" in refused("export", hf_folder, "--format", form)
    named = ["--out", hf_folder / "model.safetensors"]
    assert "the model itself" in refused("export", hf_folder, "--format", "safetensors", *named)
    assert snapshot(hf_folder) == before
    assert cli("export", hf_folder, "--format", "gguf", "--dtype", "f16")[0] == 0, "a new file"
    assert "there already" in refused("export", hf_folder, "--format", "gguf", "--dtype", "f16")


def test_a_run_s_own_artefacts_are_kept_and_its_exports_renewed(
    refused: Refused, cli: Cli, copy: Path
) -> None:
    before = snapshot(copy)
    assert "--out" in refused("export", copy, "--format", "gguf")
    assert "--out" in refused("export", copy, "--format", "safetensors")
    assert snapshot(copy) == before
    for _ in range(2):
        assert cli("export", copy, "--format", "gguf", "--dtype", "q8_0")[0] == 0
        assert cli("export", copy, "--format", "hf")[0] == 0


def test_info_on_shards_and_on_folders_that_are_no_run(
    refused: Refused, cli: Cli, hf_folder: Path, tmp_path: Path
) -> None:
    whole = json.loads(cli("info", hf_folder, "--json")[1])
    shard(hf_folder)
    code, out, err = cli("info", hf_folder, "--json")
    assert (code, err) == (0, "")
    described = json.loads(out)
    assert described["format"] == "safetensors in 2 shards"
    assert described["parameters"] == whole["parameters"] == 8032
    by_name = lambda d: sorted(d["tensors"], key=lambda t: t["name"])  # noqa: E731
    assert by_name(described) == by_name(whole)
    assert "8,032 parameters in 11 tensors" in cli("info", hf_folder)[1]
    (hf_folder / "model-1.safetensors").unlink()
    assert "model-1.safetensors" in refused("info", hf_folder)
    (tmp_path / "empty").mkdir()
    line = refused("info", tmp_path / "empty")
    assert "--resume" not in line
    (tmp_path / "empty" / "spec.json").write_text("{}")
    assert "--resume" in refused("info", tmp_path / "empty")


@pytest.mark.parametrize(
    "content",
    ["[]", "{", "{}", "\xff", "[" * 100_000, '{"spec": {}, "metrics": {}, "corpus": []}',
     '{"spec": {}, "metrics": {}, "corpus": {}}', '{"seed": ' + "9" * 5000 + "}"],
)  # fmt: skip
def test_a_record_that_is_none(refused: Refused, copy: Path, content: str) -> None:
    (copy / "record.json").write_text(content, encoding="latin-1")
    for verb in ("info", "evaluate"):
        line = refused(verb, copy)
        assert "record.json: " in line
        assert "move it away" in line
    (copy / "record.json").unlink()


def test_what_was_converted_on_the_way_is_told(
    cli: Cli, hf_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = hf_folder / "model.safetensors"
    tensors = load_tensors(weights).tensors
    save_tensors(weights, {name: a.astype(np.float16) for name, a in tensors.items()})
    (tmp_path / "t.txt").write_text("Hello there!")
    monkeypatch.setattr(sys, "stdin", io.StringIO("/quit\n" * 9))
    said = "note: 11 float16 tensors were widened to float32"
    for words in (
        ["sample", hf_folder, "--tokens", 2], ["sample", hf_folder, "--tokens", 2, "--json"],
        ["chat", hf_folder], ["evaluate", hf_folder, "--text", tmp_path / "t.txt"],
        ["evaluate", hf_folder, "--probe", "--json"],
        ["export", hf_folder, "--format", "gguf", "--json"],
    ):  # fmt: skip
        code, out, err = cli(*words)
        assert code == 0, err
        assert err.splitlines().count(said) == 1, words
        if words[0] in ("evaluate", "export") and "--json" in words:
            assert json.loads(out)["notes"] == [said.removeprefix("note: ")]


# --- prompts and pipes ------------------------------------------------------------------------


def python(*words: object, **options: Any) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "paperkiln", *map(str, words)]
    return subprocess.run(command, capture_output=True, check=False, **options)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_bytes_that_are_no_utf8_in_prompts_and_messages(tiny_run: Path, encoding: str) -> None:
    environment = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    for words, sent in (
        (["sample", tiny_run, "--tokens", 3, "--prompt", "caf\udce9 🦙"], b""),
        (["sample", tiny_run, "--tokens", 3, "--json", "--prompt", "caf\udce9 🦙"], b""),
        (["chat", tiny_run, "--tokens", 3], b"caf\xe9 \xf0\x9f\xa6\x99\n\n/quit\n"),
        (["info", tiny_run], b""),
    ):
        done = python(*words, input=sent, env=environment)
        assert done.returncode == 0, done.stderr
        assert b"Traceback" not in done.stderr
        if "--json" in words:
            assert len(json.loads(done.stdout.decode(encoding))["ids"]) <= 3


def test_an_empty_prompt_starts_a_new_text(cli: Cli, tiny_run: Path) -> None:
    code, out, _ = cli("sample", tiny_run, "--prompt", "", "--tokens", 4, "--json", "--seed", 1)
    assert code == 0
    assert json.loads(out)["n_prompt_tokens"] == 1


def test_a_prompt_longer_than_the_context_is_cut_with_a_note(cli: Cli, tiny_run: Path) -> None:
    code, out, err = cli("sample", tiny_run, "--prompt", "x" * 50, "--tokens", 4)
    assert code == 0
    assert out.startswith("x" * 50)
    assert "the first 18 tokens were cut" in err


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
@pytest.mark.parametrize(
    "words", ["info RUN", "info RUN --json", "plan RUN --json", "sample RUN --tokens 4000"]
)
def test_a_reader_that_has_seen_enough(tiny_run: Path, words: str) -> None:
    command = f'"{sys.executable}" -m paperkiln {words.replace("RUN", str(tiny_run))}'
    # The pipe's end is closed before a byte is written: the worst that head can do.
    script = f"{{ sleep 0.2; {command}; echo $? > code; }} | true; cat code"
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, check=False, cwd=tiny_run.parent,
        timeout=60,
    )  # fmt: skip
    (tiny_run.parent / "code").unlink()
    assert done.stdout == "0\n", done.stderr
    assert done.stderr == ""
