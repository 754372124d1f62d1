"""From readings to values: the main model, its sizes, what is derived, contested or left open."""

import pytest
from mini_paper import asserted, numbers, paper, section, table

from paperkiln.errors import PaperkilnError

SIZES = table(
    "The models.",
    "Model & Layers & Width & Heads & Parameters",
    "Tiny & 4 & 384 & 6 & 39M",
    "Base & 6 & 512 & 8 & 74M",
    "Small & 12 & 768 & 12 & 244M",
)
SHAPES = {
    "Tiny": {"n_layers": 4, "d_model": 384, "n_heads": 6, "n_parameters": 39_000_000},
    "Base": {"n_layers": 6, "d_model": 512, "n_heads": 8, "n_parameters": 74_000_000},
    "Small": {"n_layers": 12, "d_model": 768, "n_heads": 12, "n_parameters": 244_000_000},
}


def variants(body, **options):
    return {v.name: v.values for v in numbers(body, **options).variants}


# Sizes


def test_base_is_the_main_model_and_the_others_are_variants():
    found = numbers(SIZES)
    assert found.model == "Base"
    assert asserted(found) == SHAPES["Base"]
    assert variants(SIZES) == {name: SHAPES[name] for name in ("Tiny", "Small")}


@pytest.mark.parametrize("size", ["tiny", "Base", "SMALL"])
def test_a_size_that_is_asked_for(size):
    found = numbers(SIZES, size=size)
    assert asserted(found) == SHAPES[size.capitalize()]


def test_without_a_base_the_first_is_the_main_model():
    body = table("Models.", "Model & Layers & Heads", "Small & 12 & 8", "Medium & 24 & 16")
    assert numbers(body).model == "Small"


@pytest.mark.parametrize("size", ["13B", "13.0B", "13 b"])
def test_a_size_in_parameters(size):
    body = table("Models.", "params & dimension & layers", "6.7B & 4096 & 32", "13.0B & 5120 & 40")
    assert asserted(numbers(body, size=size))["n_layers"] == 40


def test_an_unknown_size_names_those_that_are_there():
    with pytest.raises(PaperkilnError, match="no model of this paper is called 'huge'; it names "):
        numbers(SIZES, size="huge")
    with pytest.raises(PaperkilnError, match="it names no sizes"):
        numbers("The model has 12 layers and 8 heads.", size="huge")


# A text, the main model and its variants.
LISTED = [
    ("We train two models: base (12 layers, 768 hidden) and large (24 layers, 1024 hidden).",
     "base", {"large": {"n_layers": 24, "d_model": 1024}}),
    ("The small model has 6 layers and a hidden size of 512. The base model has 12 layers and a "
     "hidden size of 768.", "base", {"small": {"n_layers": 6, "d_model": 512}}),
    ("There are three sizes: 70M (6 layers, width 512), 160M (12 layers, width 768) and 410M "
     "(24 layers, width 1024).", "70M",
     {"160M": {"n_layers": 12, "d_model": 768}, "410M": {"n_layers": 24, "d_model": 1024}}),
    ("The 125M-parameter model has 12 layers and $d_{model}=768$; the 350M-parameter model has 24 "
     "layers and $d_{model}=1024$.", "125M",
     {"350M": {"n_parameters": 350_000_000, "n_layers": 24, "d_model": 1024}}),
    ("\\begin{itemize}\\item \\textbf{Small}: 6 layers, 512 hidden units\\item \\textbf{Base}: 12 "
     "layers, 768 hidden units\\end{itemize}", "Base", {"Small": {"n_layers": 6, "d_model": 512}}),
]  # fmt: skip


@pytest.mark.parametrize(("body", "model", "others"), LISTED)
def test_sizes_in_prose(body, model, others):
    assert numbers(body).model == model
    assert variants(body) == others


def test_a_value_of_another_size_fills_nothing():
    body = section("Model", SIZES) + section("Training", "The large model has 20 heads.")
    assert asserted(numbers(body)) == SHAPES["Base"]


def test_a_value_for_all_sizes_is_in_each():
    body = table(
        "Models.", "& Small & Base", "Layers & 6 & 12", "Heads & 8 & 12",
        r"Vocabulary & \multicolumn{2}{c}{32{,}000}",
    )  # fmt: skip
    for size in ("Small", "Base"):
        assert asserted(numbers(body, size=size))["vocab_size"] == 32000


# Derived values


def test_a_multiple_is_derived_with_both_quotes():
    value = numbers("We set $d_{ff} = 4 d_{model}$. The model width is 320.").values["d_ff"]
    assert (value.value, value.verdict, value.note) == (1280, "derived", "4 × d_model = 1280")
    assert len(value.evidence) == 2


def test_a_multiple_of_what_is_unknown_stays_open():
    assert "d_ff" not in numbers("We set $d_{ff} = 4 d_{model}$.").values


def test_a_multiple_out_of_reason_stays_open():
    body = "We set $d_{ff} = 16 d_{model}$. The width is 65536 and it has 12 layers."
    assert numbers(body).values["d_ff"].value == 16 * 65536
    assert "d_ff" not in numbers(body.replace("65536", "131072")).values


# Contested values


def test_two_values_for_one_field_are_contested():
    body = section("Model", "The model has 12 layers.") + section(
        "Training", "The model has 16 layers."
    )
    value = numbers(body).values["n_layers"]
    assert (value.value, value.verdict, value.runner_up.value) == (12, "contested", 16)


def test_an_experiment_does_not_contest_the_description():
    body = section("Model", "The model has 12 layers.") + section(
        "Experiments", "Here the model has 16 layers."
    )
    value = numbers(body).values["n_layers"]
    assert (value.value, value.verdict) == (12, "used")


def test_experiments_with_a_model_each_have_no_main_model():
    body = section(
        "Experiments",
        "\\subsection{Games}We use 2 layers with 4 heads and a hidden size of 128.\n"
        "\\subsection{Images}We use 8 layers with 12 heads and a hidden size of 384.\n",
    )
    found = numbers(body)
    assert asserted(found) == {}
    assert found.values["n_layers"].note.startswith("the paper describes several models")


def test_what_is_said_in_passing_is_not_asserted():
    found = numbers("For example, a model with 12 layers needs more memory.")
    assert asserted(found) == {}
    assert found.reasons["n_layers"].startswith("only said in passing: “For example, a model")


def test_a_one_layer_example_is_no_model():
    assert asserted(numbers("A 1-layer transformer cannot do it.")) == {}


# Widths


# A text with two widths, and what they are.
WIDTHS = [
    ("512 embedding dimensions and 2048 hidden dimensions", {"d_model": 512, "d_ff": 2048}),
    ("an embedding size of 128 and a hidden size of 768", {"d_model": 768}),
    ("an embedding size of 128, a hidden size of 512 and an FFN size of 2048",
     {"d_model": 512, "d_ff": 2048}),
    ("a hidden size of 768 and an embedding size of 768", {"d_model": 768}),
]  # fmt: skip


@pytest.mark.parametrize(("words", "widths"), WIDTHS)
def test_widths_are_told_apart(words, widths):
    assert asserted(numbers(f"The model has {words}.")) == widths


def test_hidden_dim_under_dim_is_the_feed_forward():
    body = table("Architecture.", "Parameter & Value", "dim & 4096", r"hidden\_dim & 14336",
                 r"n\_layers & 32")  # fmt: skip
    assert asserted(numbers(body)) == {"d_model": 4096, "d_ff": 14336, "n_layers": 32}


# Evidence


def test_every_quote_is_verbatim_and_where_it_says():
    body = section("Model", "We use $d_{\\text{model}} = 512$ and 8~heads.") + SIZES
    document = paper(body)
    for value in numbers(body).values.values():
        for quote in value.evidence:
            text = document.files[quote.file].text
            assert text[quote.start : quote.end] == quote.quote
            assert text.count("\n", 0, quote.start) + 1 == quote.line


def test_a_cell_reads_with_its_row_and_column():
    quotes = numbers(SIZES).values["d_model"].evidence
    assert [(q.reads, q.quote) for q in quotes] == [
        ("Base | Width: 512", "Base & 6 & 512"), ("Width", "Width"),
    ]  # fmt: skip
    down = table("Architecture.", "Parameter & Value", "Layers & 12", "Heads & 8")
    assert numbers(down).values["n_layers"].evidence[0].reads == "Layers: 12"


def test_a_sentence_is_quoted_before_a_cell():
    body = section("Model", SIZES + "\nThe model has 6 layers.")
    first, second, *_ = numbers(body).values["n_layers"].evidence
    assert first.reads == "The model has 6 layers."
    assert second.reads == "Base | Layers: 6"


def test_what_others_have_is_listed_but_vetoed():
    found = numbers("The teacher has 24 layers. The student has 6 layers.")
    listed = [(m.value, m.vetoed) for m in found.mentions["n_layers"]]
    assert sorted(listed) == [(6, ""), (24, "of teacher")]


def test_values_of_one_sentence_support_each_other():
    alone = numbers("The model has 12 layers.").values["n_layers"]
    together = numbers("The model has 12 layers, 8 heads and a width of 512.").values["n_layers"]
    assert together.score > alone.score


@pytest.mark.parametrize("first", ["2048", "4 times the hidden size"])
@pytest.mark.parametrize("again", ["2048", "4 times the hidden size"])
def test_a_multiple_and_the_number_it_makes_are_the_same(first, again):
    shape = "6 layers, 8 heads, a hidden size of 512"
    body = section("Model", f"We use {shape} and a feed-forward dimension of {first}.")
    body += section("Training", f"Our models have 8 heads and a feed-forward dimension of {again}.")
    value = numbers(body).values["d_ff"]
    assert (value.value, value.runner_up) == (2048, None)
    assert any(again.split()[0] in quote.reads for quote in value.evidence[1:])
