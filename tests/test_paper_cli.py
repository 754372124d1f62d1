"""`paperkiln paper` and `paper-bench` as a user calls them, on papers written here."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from paperkiln import cli as cli_module
from paperkiln.lab.demo import spec_from_paper
from paperkiln.spec import parse_spec, read_spec

Cli = Callable[..., tuple[int, str, str]]
Refused = Callable[..., str]

NOTE = Path(__file__).parents[1] / "specs" / "tinychat-quick.tex"
SIZES = r"""\documentclass{article}
\title{Kiln: three sizes of one model}
\begin{document}
\section{Model}
We use RMSNorm before each sub-layer and SwiGLU. Table 1 lists the sizes.
\begin{table}\caption{Model configurations}
\begin{tabular}{lccc}
Model & Layers & $d_{\text{model}}$ & Heads \\ \hline
Kiln Base & 6 & 384 & 6 \\
Kiln Large & 12 & 768 & 12 \\
\end{tabular}\end{table}
\end{document}
"""


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    path = tmp_path / "kiln.tex"
    path.write_text(SIZES)
    return path


def test_the_table(cli: Cli) -> None:
    code, out, _ = cli("paper", NOTE)
    assert code == 0
    assert out.startswith("TinyChat-Quick: a language model")
    rows = {words[0]: words[1:3] for line in out.splitlines() if len(words := line.split()) > 2}
    assert rows["d_model"] == ["128", "used"]
    assert rows["activation"] == ["swiglu", "used"]
    assert "unresolved (reported, not guessed)" in out
    assert "tinychat-quick.tex:" in out


def test_what_is_wrapped_stays_under_its_heading(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    _, out, _ = cli("paper", NOTE)
    lines = out.split("unresolved (reported, not guessed)\n")[1].split("\n\n")[0].splitlines()
    assert len(lines) > 1
    assert all(line.startswith("  ") for line in lines)


def test_json_is_versioned_and_its_quotes_are_the_file_s(cli: Cli) -> None:
    code, out, _ = cli("paper", NOTE, "--json")
    assert code == 0
    read = json.loads(out)
    assert (read["format"], read["version"]) == ("paperkiln-architecture", 1)
    source = NOTE.read_text(encoding="utf-8")
    for value in read["values"].values():
        for e in value["evidence"]:
            assert source[e["start"] : e["end"]] == e["quote"]
            assert source.count("\n", 0, e["start"]) + 1 == e["line"]


def test_everything_is_written_at_once(cli: Cli, tmp_path: Path) -> None:
    names = {"spec": "s.json", "hf": "config.json", "python": "model.py", "html": "page.html"}
    options = [w for kind, name in names.items() for w in (f"--{kind}", tmp_path / name)]
    code, out, _ = cli("paper", NOTE, *options, "--fit", "200k")
    assert code == 0
    assert sorted(out.split()) == sorted(str(tmp_path / name) for name in names.values())
    spec = read_spec(tmp_path / "s.json")
    assert spec.arch.d_model < 128
    assert spec.arch.activation == "swiglu"
    assert any("fit" in note for note in spec.notes)
    assert json.loads((tmp_path / "config.json").read_text())["hidden_act"] == "silu"
    assert "TinyChat-Quick" in (tmp_path / "page.html").read_text()
    done = subprocess.run(
        [sys.executable, "model.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_spec_trains_as_it_is(cli: Cli, corpus: Path, tmp_path: Path) -> None:
    assert cli("paper", NOTE, "--spec", tmp_path / "s.json", "--fit", "50k")[0] == 0
    sets = ["train.steps=2", f"data.corpus={corpus}", f"out_dir={tmp_path / 'run'}"]
    code, _, err = cli("run", tmp_path / "s.json", *(w for s in sets for w in ("--set", s)))
    assert code == 0, err
    assert parse_spec(json.loads((tmp_path / "run" / "spec.json").read_text())).notes


def test_the_paper_of_the_demo_describes_the_quick_model() -> None:
    read = spec_from_paper(str(NOTE), [])
    quick = read_spec(NOTE.with_suffix(".json"))
    assert read.arch.model_dump(exclude={"preset"}) == quick.arch.model_dump(exclude={"preset"})
    assert read.data == quick.data
    assert read.train == quick.train


def test_sizes(cli: Cli, refused: Refused, paper: Path) -> None:
    base = json.loads(cli("paper", paper, "--json")[1])
    assert base["values"]["d_model"]["value"] == 384
    assert [v["name"] for v in base["variants"]] == ["Kiln Large"]
    large = json.loads(cli("paper", paper, "--json", "--size", "large")[1])
    assert large["values"]["d_model"]["value"] == 768
    said = refused("paper", paper, "--size", "huge")
    assert "'huge'" in said
    assert "Kiln Base, Kiln Large" in said


def test_archives_folders_and_stdin(
    cli: Cli, paper: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "kiln.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(paper, "main.tex")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "main.tex").write_text(SIZES)
    wanted = cli("paper", paper, "--json")[1]
    values = json.loads(wanted)["values"].keys()
    for name in (archive, folder):
        assert json.loads(cli("paper", name, "--json")[1])["values"].keys() == values
    piped = io.TextIOWrapper(io.BytesIO(archive.read_bytes()))
    monkeypatch.setattr(sys, "stdin", piped)
    assert json.loads(cli("paper", "-", "--json")[1])["values"].keys() == values


def test_refusals(refused: Refused, paper: Path, tmp_path: Path) -> None:
    assert "arXiv" in refused("paper", "https://example.com/1706.03762")
    assert "no such file" in refused("paper", tmp_path / "missing.tex")
    assert "--offline" in refused("paper", "1706.03762", "--offline")
    assert "other.tex" in refused("paper", paper, "--main", "other.tex")
    assert "--fit" in refused("paper", paper, "--fit", "cpu")
    assert "much" in refused("paper", paper, "--spec", tmp_path / "s.json", "--fit", "much")
    assert not (tmp_path / "s.json").exists()
    empty = tmp_path / "empty.tex"
    empty.write_text("\\documentclass{article}\\begin{document}\\end{document}")
    assert "no text" in refused("paper", empty)
    pdf = tmp_path / "paper.tex"
    pdf.write_bytes(b"%PDF-1.7\n...")
    assert "PDF" in refused("paper", pdf)


def test_a_paper_without_a_model_says_so(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.tex"
    path.write_text("\\documentclass{article}\\begin{document}We study cats.\\end{document}")
    code, out, _ = cli("paper", path)
    assert code == 0
    assert "No architecture of its own is stated" in out


def test_paperfetch_is_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["paperfetch", str(NOTE), "--json"])
    assert cli_module.paperfetch() == 0
    assert json.loads(capsys.readouterr().out)["values"]["d_ff"]["value"] == 352


def test_paper_bench(cli: Cli, refused: Refused, paper: Path, tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    (folder / "kiln").mkdir(parents=True)
    (folder / "kiln" / "main.tex").write_text(SIZES)
    truth = {"d_model": 384, "n_layers": 6, "norm": "rmsnorm", "positional": None}
    line = {"id": "kiln", "title": "Kiln", "files": ["main.tex"], "truth": truth}
    (folder / "manifest.jsonl").write_text(json.dumps(line) + "\n")
    code, out, _ = cli("paper-bench", "--papers", folder, "--json")
    report = json.loads(out)
    assert code == 0
    assert report["numbers"] == {
        "stated": 2, "right": 2, "wrong": 0, "missed": 0, "asserted_on_null": 0,
    }  # fmt: skip
    assert report["quotes_false"] == 0
    line["truth"]["d_model"] = 512
    (folder / "manifest.jsonl").write_text(json.dumps(line) + "\n")
    code, _, err = cli("paper-bench", "--papers", folder)
    assert code == 1
    assert "kiln d_model: wrong" in err
    assert "is no folder" in refused("paper-bench", "--papers", tmp_path / "none")
