"""The command line: every verb's help, what it prints, and what importing it does not load."""

from __future__ import annotations

import argparse
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paperkiln
from paperkiln import cli as verbs_of_cli
from paperkiln.arguments import build_parser
from paperkiln.formats.gguf_reader import read_header
from paperkiln.formats.safetensors_io import load_tensors
from paperkiln.infer.load import load_run
from paperkiln.train.events import Step, read_events

Cli = Callable[..., tuple[int, str, str]]


def verbs(parser: argparse.ArgumentParser, *names: str) -> Iterator[tuple[str, ...]]:
    """Yield every verb, as the words that call it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield from verbs(child, *names, name)
            return
    yield names


VERBS = list(verbs(build_parser(verbs_of_cli)))


def test_the_verbs() -> None:
    assert {words[0] for words in VERBS} >= {
        "plan", "run", "demo", "chat", "sample", "evaluate", "export", "info", "data", "bench",
        "gradcheck", "doctor",
    }  # fmt: skip


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_every_help_has_an_example_that_parses(cli: Cli, words: tuple[str, ...]) -> None:
    code, out, _ = cli(*words, "--help")
    assert code == 0
    examples = [line.strip() for line in out.splitlines() if "python -m paperkiln " in line]
    assert examples
    for example in examples:
        arguments = shlex.split(example.removeprefix("python -m paperkiln "))
        assert tuple(arguments[: len(words)]) == words
        build_parser(verbs_of_cli).parse_args(arguments)
    options = out.partition("options:")[2].partition("examples:")[0]
    assert "--help" in options


def test_the_top_help_names_every_verb_and_the_version(cli: Cli) -> None:
    code, out, _ = cli("--help")
    assert code == 0
    for words in VERBS:
        assert f"\n    {words[0]}" in out
    assert cli("--version") == (0, paperkiln.__version__ + "\n", "")


@pytest.mark.parametrize("words", [[], ["trian"], ["data"], ["sample"], ["export", "x"]])
def test_wrong_words_end_with_two(cli: Cli, words: list[str]) -> None:
    code, out, err = cli(*words)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("paperkiln")


# --- what is not imported -----------------------------------------------------------------------


def python(script: str, *words: str) -> str:
    """Run a script in a fresh interpreter and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "script",
    [
        "import paperkiln",
        "import paperkiln.cli",
        "from paperkiln.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass",
        "from paperkiln.cli import main\nassert main(['plan', '--schema']) == 0",
        "from paperkiln.cli import main\nassert main(['run', 'none.json', '--set', 'x=1']) == 2",
        "from paperkiln.cli import main\nassert main(['plan', 'none.json']) == 2",
    ],
)
def test_help_and_mistakes_answer_before_numpy_is_loaded(script: str) -> None:
    script += "\nimport sys\nheavy = {'numpy', 'torch', 'scipy', 'tokenizers'}\n"
    loaded = python(script + "print('loaded:', sorted(heavy & set(sys.modules)))").splitlines()[-1]
    assert loaded == "loaded: []"


BROWSER_SAFE = [
    "paperkiln.spec", "paperkiln.models.config", "paperkiln.train.tokenizers",
    "paperkiln.train.tinychat", "paperkiln.formats.gguf_reader", "paperkiln.infer.sampling",
    "paperkiln.infer.chat_template",
]  # fmt: skip

BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"numpy", "torch", "scipy", "tokenizers", "gguf", "rich"}:
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Blocker())
"""


@pytest.mark.parametrize("module", BROWSER_SAFE)
def test_the_core_imports_without_numpy_and_torch(module: str) -> None:
    python(BLOCKED + f"import {module}")


def test_the_blocker_blocks() -> None:
    with pytest.raises(AssertionError, match="numpy is blocked"):
        python(BLOCKED + "import paperkiln.train.data")


def test_the_core_works_without_numpy_and_torch(tiny_run: Path) -> None:
    script = """
from random import Random
from paperkiln.formats.gguf_reader import read_header
from paperkiln.infer.chat_template import encode_chat
from paperkiln.infer.sampling import Sampling, choose
from paperkiln.spec import parse_spec
from paperkiln.train.tokenizers import Tokenizer
folder = sys.argv[1]
t = Tokenizer.load(folder + "/tokenizer.json")
ids = encode_chat(t, [("user", "hi")], add_generation_prompt=True)
assert t.decode(ids, keep_specials=True) == "<|user|>hi<|assistant|>"
assert parse_spec({"arch": {"preset": "minilm"}}).arch.n_layers == 4
assert choose([0.0, 9.0], Sampling(temperature=0), Random(0)) == 1
print(len(read_header(folder + "/model.gguf").tensors))
"""
    assert python(BLOCKED + script, str(tiny_run)) == "11\n"


# --- the verbs at work --------------------------------------------------------------------------


@pytest.fixture
def spec(tiny: Callable[..., dict[str, Any]], tmp_path: Path) -> Path:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(tiny(tmp_path / "r")))
    return path


def test_plan(cli: Cli, spec: Path, tiny_run: Path) -> None:
    code, out, err = cli("plan", spec, "--json", "--set", "train.steps=7", "--device", "cpu")
    assert (code, err) == (0, "")
    plan = json.loads(out)
    assert plan["spec"]["train"]["steps"] == 7
    assert plan["tokens"] == 7 * plan["tokens_per_step"] == 7 * 4 * 32
    assert plan["parameters"] == 8032
    assert plan["folder"] == str(spec.parent / "r")
    assert not (spec.parent / "r").exists(), "it plans and does nothing"
    code, out, _ = cli("plan", spec)
    assert code == 0
    assert "parameters   8,032" in out
    assert "run folder" in out
    assert re.search(r"^time  +\d+ s at 100 GFLOP/s, measured on two cores$", out, re.MULTILINE)
    code, out, _ = cli("plan", tiny_run, "--json")
    assert json.loads(out)["spec"]["arch"]["vocab_size"] == 259


def test_plan_says_beforehand_what_llama_cpp_will_not_open(cli: Cli, spec: Path) -> None:
    _, out, _ = cli("plan", spec, "--json", "--set", "arch.positional=alibi")
    (note,) = json.loads(out)["notes"]
    assert "llama.cpp" in note
    assert "alibi" in note.lower()


def test_run(cli: Cli, spec: Path, tiny_run: Path) -> None:
    code, out, err = cli("run", spec, "--set", "train.steps=10")
    folder = spec.parent / "r"
    assert (code, out) == (0, f"{folder}\n")
    assert "model: 8,032 parameters" in err
    assert "step 10: validation loss" in err
    assert "done: best validation loss" in err
    expected = {
        "spec.json", "events.jsonl", "tokenizer.json", "model.safetensors", "model.gguf",
        "record.json", "card.md",
    }  # fmt: skip
    assert expected <= {path.name for path in folder.iterdir()}
    assert max(e.step for e in read_events(folder / "events.jsonl") if isinstance(e, Step)) == 10
    assert cli("run", spec)[0] == 2
    assert cli("run", folder, "--resume")[0] == 0
    assert cli("run", spec, "--overwrite", "--set", "train.steps=3")[0] == 0


def test_sample_is_seeded_and_needs_no_cache(cli: Cli, tiny_run: Path) -> None:
    def text(*options: object) -> str:
        code, out, err = cli("sample", tiny_run, "--prompt", "Hello", "--tokens", 60, *options)
        assert code == 0
        assert "tokens/s" in err
        return out

    assert text("--seed", 5) == text("--seed", 5)
    assert text("--seed", 5) != text("--seed", 6)
    assert text("--seed", 5) == text("--seed", 5, "--no-cache"), "also past the context of 32"
    assert text("--temperature", 0) == text("--temperature", 0)
    assert text("--seed", 5).startswith("Hello")
    code, out, err = cli(
        "sample", tiny_run, "--prompt", "Hello", "--tokens", 60, "--seed", 5, "--json"
    )
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["text"] in text("--seed", 5) or "\\u" in out
    assert result["stop_reason"] in ("length", "eos")
    assert len(result["ids"]) <= 60
    letter = next(c for c in result["text"] if c.isascii() and c.isprintable())
    words = ["sample", tiny_run, "--prompt", "Hello", "--tokens", 60, "--seed", 5, "--json"]
    _, out, _ = cli(*words, "--stop", letter)
    assert json.loads(out)["text"] == result["text"].partition(letter)[0]
    assert json.loads(out)["stop_reason"] == "stop"


def test_evaluate(cli: Cli, tiny_run: Path, tmp_path: Path) -> None:
    code, out, err = cli("evaluate", tiny_run, "--json")
    assert (code, err) == (0, "")
    own = json.loads(out)
    assert own["n_targets"] > 1000
    assert own["perplexity"] == pytest.approx(np.exp(own["loss"]))
    (tmp_path / "t.txt").write_text("Hello there, little friend! " * 9)
    code, out, _ = cli("evaluate", tiny_run, "--text", tmp_path / "t.txt", "--json")
    other = json.loads(out)
    assert other["n_targets"] == 9 * 28 - 1 == other["n_bytes"]
    assert other["bits_per_byte"] == pytest.approx(other["loss"] / np.log(2)), "a byte a token"
    code, out, _ = cli("evaluate", tiny_run, "--text", tmp_path / "t.txt")
    assert f"loss          {other['loss']:.4f} nats per token" in out
    code, out, _ = cli("evaluate", tiny_run / "model.gguf", "--text", tmp_path / "t.txt", "--json")
    assert json.loads(out)["loss"] == pytest.approx(other["loss"], rel=1e-6)


def test_evaluate_the_probe(cli: Cli, tiny_run: Path) -> None:
    code, out, _ = cli("evaluate", tiny_run, "--probe", "--json")
    assert code == 0
    score = json.loads(out)
    assert score["questions"] >= 100
    assert 0 <= score["overall"] <= 1
    assert "held-out questions" in cli("evaluate", tiny_run, "--probe")[1]


@pytest.mark.parametrize(
    ("form", "dtype"), [("gguf", "f32"), ("gguf", "f16"), ("gguf", "q8_0"), ("hf", "f32"),
                        ("safetensors", "f32")],
)  # fmt: skip
def test_export_and_open_again(
    cli: Cli, tiny_run: Path, tmp_path: Path, form: str, dtype: str
) -> None:
    target = tmp_path / "deep" / ("m.gguf" if form == "gguf" else "m")
    words = ["export", tiny_run, "--format", form, "--out", target]
    code, out, _ = cli(*words, *(["--dtype", dtype] if form == "gguf" else []), "--json")
    assert code == 0
    assert json.loads(out)["path"] == str(target)
    exact = load_run(tiny_run).params
    if form == "safetensors":
        saved = load_tensors(target).tensors
        assert sum(a.size for a in saved.values()) == sum(a.size for a in exact.values())
    else:
        opened = load_run(target).params
        assert opened.keys() == exact.keys()
        for name, array in exact.items():
            tolerance = {"f32": 0, "f16": 1e-3, "q8_0": 1e-2}[dtype]
            np.testing.assert_allclose(opened[name], array, tolerance, tolerance * abs(array).max())
    code, out, err = cli("info", target, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["parameters"] == 8032


def test_info(cli: Cli, tiny_run: Path) -> None:
    for path in (tiny_run, tiny_run / "model.gguf", tiny_run / "model.safetensors"):
        code, out, err = cli("info", path, "--json")
        assert (code, err) == (0, "")
        described = json.loads(out)
        assert described["parameters"] == 8032
        shapes = [tuple(t["shape"]) for t in described["tensors"]]
        assert shapes.count((259, 16)) == 1, "in numpy's order"
        code, out, _ = cli("info", path)
        assert code == 0
        assert "8,032 parameters in 11 tensors" in out
        assert "259 × 16" in out
        assert max(map(len, out.splitlines())) < 250, "long values are cut"
    _, out, _ = cli("info", tiny_run, "--json")
    assert json.loads(out)["record"]["metrics"]["final_step"] == 20
    header = read_header(tiny_run / "model.gguf")
    assert header.metadata["general.architecture"] == "llama"


def test_doctor(cli: Cli) -> None:
    code, out, err = cli("doctor", "--json")
    assert err == ""
    report = json.loads(out)
    assert code == (0 if report["ok"] else 1)
    assert report["devices"]["cpu"] == "ready"
    assert set(report["devices"]) == {"cpu", "cpu-fast", "torch-cpu", "cuda", "mps"}
    assert report["required"]["numpy"] == np.__version__
    code, out, _ = cli("doctor")
    assert "BLAS" in out
    assert f"paperkiln {paperkiln.__version__}" in out


def test_doctor_fails_when_something_required_is_missing(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    from paperkiln.lab import doctor

    monkeypatch.setattr(doctor, "_REQUIRED", ("numpy", "no-such-package"))
    code, out, _ = cli("doctor")
    assert code == 1
    assert "MISSING: pip install no-such-package" in out


def test_data(cli: Cli, spec: Path, tmp_path: Path) -> None:
    code, out, _ = cli(
        "data", "tinychat", "--out", tmp_path / "t.txt", "--dialogues", 30, "--seed", 4
    )
    assert code == 0
    assert json.loads(out)["dialogues"] == 30
    assert (tmp_path / "t.txt").read_text().count("<|user|>") >= 30
    code, out, _ = cli("data", "prepare", spec, "--set", f"data.corpus={tmp_path / 't.txt'}")
    assert code == 0
    data = json.loads(out)
    assert data["tokenizer"] == "byte"
    assert data["vocab_size"] == 259
    assert 1 <= data["bytes_per_token"] < 3, "a special token stands for many bytes"
    assert data["split"].startswith("last ")


def test_chat(cli: Cli, tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "hello\n\n/speed\nhow are you? 🦙\n/reset\n/nonsense\n/quit\nnever read\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(script))
    code, out, err = cli("chat", tiny_run, "--tokens", 5, "--seed", 1)
    assert code == 0
    assert "/help lists the commands" in err
    assert out.count("you> ") == 7
    assert "tokens/s" in out
    assert "forgotten" in out
    assert "unknown command /nonsense" in out
    monkeypatch.setattr(sys, "stdin", io.StringIO("hello\n"))
    assert cli("chat", tiny_run / "model.gguf", "--tokens", 5)[0] == 0, "Ctrl-D leaves"
    code, _, err = cli("chat", tiny_run, "--system", "Be kind.")
    assert code == 2
    assert "(paperkiln) has no place for a system message; leave it empty" in err


def test_a_model_without_chat_tokens_is_told_apart(
    cli: Cli, tiny_run: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(tiny_run, tmp_path / "r")
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["added_tokens"] = tokenizer["added_tokens"][:1]  # the end of text
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    code, _, err = cli("chat", folder)
    assert code == 2
    assert "no <|user|> token: it cannot chat, only sample" in err
    assert cli("sample", folder, "--tokens", 3)[0] == 0


def test_demo(cli: Cli, tiny: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    values = tiny(tmp_path / "r", data={"corpus": "tinychat", "dialogues": 100})
    (tmp_path / "s.json").write_text(json.dumps(values))
    code, out, _ = cli("demo", tmp_path / "s.json")
    assert code == 0
    assert "before training" in out
    assert "held-out questions answered in kind" in out
    assert f"-m paperkiln chat {tmp_path / 'r'}" in out.replace("\n", "")
    assert cli("demo", tmp_path / "s.json")[0] == 0, "a finished demo is shown again"


def test_a_word_model_answers_what_it_never_saw_and_says_so(
    cli: Cli, tiny: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "c.txt").write_text("so we sing a song\n" * 100)
    data = {"corpus": str(tmp_path / "c.txt"), "tokenizer": "word"}
    values = tiny(tmp_path / "r", data=data, train={"steps": 2}, arch={"vocab_size": 64})
    (tmp_path / "s.json").write_text(json.dumps(values))
    assert cli("run", tmp_path / "s.json")[0] == 0
    code, out, err = cli("sample", tmp_path / "r", "--prompt", "done? 42 🦙 song", "--tokens", 5)
    assert code == 0
    assert out.startswith("done? 42 🦙 song")
    assert "no token for: done ? 42 🦙" in err
    # The rows that pad the vocabulary from 10 tokens to 64 are never chosen, however hot.
    words = ["--temperature", 5, "--top-k", 0, "--top-p", 1, "--tokens", 300, "--seed", 1, "--json"]
    code, out, _ = cli("sample", tmp_path / "r", *words)
    assert code == 0
    assert load_run(tmp_path / "r").config.vocab_size == 64
    assert max(json.loads(out)["ids"]) < load_run(tmp_path / "r").tokenizer.vocab_size < 20


def test_a_run_that_goes_on_answers_with_its_best_weights_so_far(
    cli: Cli, tiny_run: Path, tmp_path: Path
) -> None:
    shutil.copytree(tiny_run, tmp_path / "r")
    words = ("--prompt", "hi", "--tokens", 8, "--temperature", 0)
    finished = cli("sample", tmp_path / "r", *words)
    (tmp_path / "r" / "model.safetensors").unlink()
    code, out, err = cli("sample", tmp_path / "r", *words)
    assert (code, out) == (0, finished[1])
    assert "note:" in err
    assert "has not finished" in err
