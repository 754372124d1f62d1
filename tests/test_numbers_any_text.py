"""Numbers of any text: read in bounded time that grows with its length, every quote verbatim."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mini_paper import numbers, paper

HANG = 60  # seconds of the processor: a search that backtracks takes hours, a slow machine not

_WORDS = st.sampled_from(
    ["we use", "the model has", "layers", "heads", "hidden size of", "d_model =", "$d_{ff}$",
     "4 \\cdot d_{model}", "12", "8", "K", "512", "1.5", "$2^{15}$", "99^{64}", "1e99", "0^{-3}",
     "12K", "3M", "%", "experts", "top-2 of", "per token", "a vocabulary", "context window of",
     "base", "large", "BERT", "(ours)", ",", ".", ";", ":", "(", ")", "/", "×", "&", "\\\\", "–",
     "\\section{Ablation}", "\\item", "respectively", "and", "or", "the number of", "dimension",
     "the teacher", "each", "\\multirow{3}{*}{Layers}", "\\multicolumn{2}{c}{Heads}", "\n\n"]
)  # fmt: skip
_TEXT = st.lists(_WORDS | st.text(max_size=4), max_size=40).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(_TEXT, st.booleans(), st.text(max_size=20))
def test_any_text_is_read_and_quoted(body, tabular, title):
    if tabular:
        body = f"\\begin{{tabular}}{{lll}}{body}\\end{{tabular}}"
    source = f"\\section{{Model}} {body}"
    document = paper(source, title)
    for value in numbers(source, title).values.values():
        for quote in value.evidence:
            text = document.files[quote.file].text
            assert text[quote.start : quote.end] == quote.quote


@pytest.mark.parametrize(
    "bait",
    ["number of ", "hidden transformer decoder ", "12 large deep dense ", "12 ", "1,", "1,234,567,",
     "1", "A", "A-A", "Aa", "d = ", "d = d_k/h ", "layers and heads ", "token byte word ", "-", "(",
     "our a ", "vision encoder ", "We call A A A ", "hidden    ", "12 layers and ",
     "a b c is the ", "The hidden size is 512, we use 8 heads and 12 layers. ",
     "\\section{A vision}\nWe use 12 layers.\n\n"],
)  # fmt: skip
def test_time_is_bounded(bait):
    body = bait * (300_000 // len(bait))
    paper(body)
    began = time.process_time()
    numbers(body)
    assert time.process_time() - began < HANG


@pytest.mark.parametrize(
    "rows",
    ["Layers & 12 \\\\\n" * 20_000,
     ("\\#" * 30 + " & 12 \\\\\n") * 3_000,
     "number of total number of n n n & 12 \\\\\n" * 5_000,
     "&".join(["Layers", "Heads"] * 32) + "\\\\\n" + ("&".join(["12"] * 64) + "\\\\\n") * 300,
     "\\multirow{100000}{*}{Layers} & \\multicolumn{64}{c}{12} \\\\\n" * 3_000],
)  # fmt: skip
def test_time_of_tables_is_bounded(rows):
    began = time.process_time()
    numbers(f"\\begin{{tabular}}{{ll}}{rows}\\end{{tabular}}")
    assert time.process_time() - began < HANG
