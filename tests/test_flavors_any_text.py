"""Flavours of any text: read in bounded time, every quote verbatim."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperkiln.papers.document import SourceFile
from paperkiln.papers.flavors.flavors import read_flavors
from paperkiln.papers.latex.reader import read_latex
from paperkiln.papers.scope import Scope

_WORDS = st.sampled_from(
    ["RMSNorm", "LayerNorm", "GELU", "SwiGLU", "RoPE", "learned position embeddings", "we use",
     "instead of", "no", "replaced by", "is used", "(", ")", ",", ".", ";", "which", "GPT-2",
     "compared to", "\\cite{a}", "rather than", "the vision encoder", "&", "\\\\", "$", "{", "}",
     "\\section{Related Work}"]
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(_WORDS, max_size=40))
def test_any_text_is_read_and_quoted(words):
    source = "\\documentclass{article}\\begin{document}" + " ".join(words) + "\\end{document}"
    document = read_latex({"m.tex": SourceFile("m.tex", source)}, "m.tex")
    for reading in read_flavors(document, Scope(document, frozenset())).values():
        assert (reading.value is None) == bool(reading.reason)
        for mention in reading.mentions:
            quote = mention.evidence
            assert source[quote.start : quote.end] == quote.quote


@pytest.mark.parametrize(
    "bait",
    ["We use RMSNorm instead of LayerNorm, ", "the SwiGLU of a ", "RMSNorm\n\n",
     "learned position ",
     "causal ", "a-a-a-a-", "replace ", "GPT-2 ", "RMSNorm & ", "RMSNorm " + "-a" * 120],
)  # fmt: skip
def test_time_is_bounded(bait):
    document = read_latex({"m.tex": SourceFile("m.tex", bait * (200_000 // len(bait)))}, "m.tex")
    began = time.process_time()
    read_flavors(document, Scope(document, frozenset()))
    assert time.process_time() - began < 60


def test_a_table_of_labels_is_read_in_linear_time():
    rows = "Norm &" * 30_000 + "\\\\" + "RMSNorm &" * 30_000
    table = f"\\begin{{tabular}}{{c}}{rows}\\end{{tabular}}"
    document = read_latex({"m.tex": SourceFile("m.tex", table)}, "m.tex")
    began = time.process_time()
    read_flavors(document, Scope(document, frozenset()))
    assert time.process_time() - began < 30
