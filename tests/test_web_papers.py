"""The paper page's Python: bytes in; the evidence page and all that is made from it out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from paperkiln.errors import PaperkilnError
from paperkiln.spec import parse_spec
from paperkiln.web.papers import emit, link, read

NOTE = (Path(__file__).parents[1] / "specs" / "tinychat-quick.tex").read_bytes()
SIZES = rb"""\documentclass{article}\begin{document}\title{Sizes}\maketitle
\section{Model} We train two models.
\begin{tabular}{lrr} Model & $d_{model}$ & layers \\ \hline
Ours-S & 256 & 4 \\ Ours-L & 512 & 8 \\ \end{tabular}
Our main model Ours-L has 8 layers, a width of 512 and 8 attention heads.
\end{document}"""


def test_a_source_becomes_a_page_and_three_forms() -> None:
    paper = read(NOTE, "note.tex")
    json.dumps(paper)
    assert "TinyChat-Quick" in paper["title"]
    assert paper["html"].startswith("<!DOCTYPE html>")
    assert parse_spec(paper["spec"]).arch.d_ff == 352
    assert json.loads(paper["hf"])["model_type"] == "llama"
    compile(paper["python"], "model.py", "exec")


def test_an_id_in_the_files_name_is_taken_up() -> None:
    assert read(gzip.compress(NOTE), "arXiv-2401.00001v2.tar.gz")["id"] == "2401.00001v2"
    assert read(NOTE, "2401.00001.tex")["id"] == "2401.00001"
    assert read(NOTE, "my paper.tex")["id"] == ""


def test_another_size_is_fitted() -> None:
    own, small = emit(NOTE, "n.tex"), emit(NOTE, "n.tex", fit="300k")
    assert small["spec"]["arch"]["d_model"] < own["spec"]["arch"]["d_model"]
    with pytest.raises(PaperkilnError):
        emit(NOTE, "n.tex", fit="lots")


def test_one_of_several_models_is_chosen() -> None:
    paper = read(SIZES, "sizes.tex")
    for name in paper["models"]:
        assert read(SIZES, "sizes.tex", size=name)["size"] == name
    with pytest.raises(PaperkilnError):
        read(SIZES, "sizes.tex", size="no such model")


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7 x", b"\x1f\x8b\x08broken", b"PK\x03\x04"])
def test_what_is_no_source_is_refused_in_a_sentence(data: bytes) -> None:
    with pytest.raises(PaperkilnError, match=r"file\.bin"):
        read(data, "file.bin")


def test_an_id_becomes_links() -> None:
    assert link(" arXiv:1706.03762v7 ") == {
        "id": "1706.03762v7",
        "page": "https://arxiv.org/abs/1706.03762v7",
        "source": "https://arxiv.org/src/1706.03762v7",
    }
    assert link("hep-th/9901001")["source"] == "https://arxiv.org/src/hep-th/9901001"
    with pytest.raises(PaperkilnError, match="arXiv id"):
        link("https://example.com/1706.03762")
