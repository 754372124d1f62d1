"""The values of a paper against each other, with textbook configurations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperkiln.papers.architecture import FLAVORS, NUMBERS, Check, Scalar
from paperkiln.papers.consistency import check, tolerance, trust

VASWANI: dict[str, Scalar] = {
    "d_model": 512, "n_layers": 6, "n_heads": 8, "d_ff": 2048, "vocab_size": 37000,
    "norm": "layernorm", "norm_placement": "post", "activation": "relu",
    "positional": "sinusoidal",
}  # fmt: skip
GPT2: dict[str, Scalar] = {
    "d_model": 768, "n_layers": 12, "n_heads": 12, "d_ff": 3072, "vocab_size": 50257,
    "context_length": 1024, "norm": "layernorm", "activation": "gelu", "positional": "learned",
    "tied_embeddings": True, "bias": True,
}  # fmt: skip
LLAMA: dict[str, Scalar] = {
    "d_model": 4096, "n_layers": 32, "n_heads": 32, "d_ff": 11008, "vocab_size": 32000,
    "norm": "rmsnorm", "activation": "swiglu", "positional": "rope", "tied_embeddings": False,
    "bias": False,
}  # fmt: skip
MISTRAL: dict[str, Scalar] = {
    **LLAMA, "n_kv_heads": 8, "head_dim": 128, "d_ff": 14336, "window": 4096,
    "context_length": 8192,
}  # fmt: skip
MIXTRAL: dict[str, Scalar] = {
    **LLAMA, "n_kv_heads": 8, "head_dim": 128, "d_ff": 14336, "n_experts": 8,
    "n_experts_active": 2,
}  # fmt: skip


def named(checks: list[Check], name: str) -> Check | None:
    return next((made for made in checks if made.name == name), None)


def parameters(values: dict[str, Scalar], stated: float) -> Check:
    made = named(check({**values, "n_parameters": stated}), "parameters")
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("values", "stated", "counted", "reading"),
    [
        (VASWANI, 65e6, "63.1M", "encoder and decoder, tied"),
        (GPT2, 124_439_808, "124M", "tied"),
        (GPT2, 85e6, "85.1M", "without embeddings"),
        (LLAMA, 6.7e9, "6.74B", "untied"),
        (LLAMA, 7e9, "6.74B", "untied"),
        (MISTRAL, 7.2e9, "7.24B", "untied"),
        (MIXTRAL, 46.7e9, "46.7B", "untied"),
        (MIXTRAL, 12.9e9, "12.9B", "active for a token"),
    ],
)
def test_textbook_models_count_as_stated(
    values: dict[str, Scalar], stated: float, counted: str, reading: str
) -> None:
    made = parameters(values, stated)
    assert made.ok, made.message
    assert counted in made.message
    assert f"({reading})" in made.message


def test_the_exact_count_of_gpt2() -> None:
    assert "(+0.0 %)" in parameters(GPT2, 124_439_808).message


def test_a_mismatch_names_both_counts_and_the_difference() -> None:
    made = parameters({**LLAMA, "d_ff": 16384}, 6.7e9)
    assert made.ok is False
    assert made.message == "the values make 8.85B (untied), but the paper states 6.7B (+32.1 %)"
    assert trust([made])["d_ff"] < 1


@pytest.mark.parametrize("wrong", [{"n_layers": 24}, {"d_model": 5120}, {"activation": "gelu"}])
def test_one_wrong_value_is_noticed(wrong: dict[str, Scalar]) -> None:
    assert parameters({**LLAMA, **wrong}, 6.7e9).ok is False


def test_what_is_not_known_is_tried_both_ways() -> None:
    open_ends = {k: v for k, v in LLAMA.items() if k not in ("activation", "tied_embeddings")}
    assert "(gated, untied)" in parameters(open_ends, 6.74e9).message
    open_ends["d_ff"] = 16384
    assert "(untied)" in parameters(open_ends, 6.71e9).message


@pytest.mark.parametrize("missing", ["d_model", "n_layers", "d_ff"])
def test_a_missing_field_is_named(missing: str) -> None:
    made = parameters({k: v for k, v in LLAMA.items() if k != missing}, 6.7e9)
    assert made.ok is None
    assert missing in made.message


def test_a_missing_vocabulary_is_worked_out() -> None:
    made = parameters({k: v for k, v in GPT2.items() if k != "vocab_size"}, 124_439_808)
    assert made.ok is None
    assert "vocab_size unknown, 51,281 rows" in made.message  # 50,257 tokens, 1,024 positions
    too_many = parameters({k: v for k, v in GPT2.items() if k != "vocab_size"}, 7e9)
    assert too_many.ok is False
    too_few = parameters({k: v for k, v in LLAMA.items() if k != "vocab_size"}, 1e9)
    assert too_few.ok is False


def test_attention_of_another_kind_is_not_counted() -> None:
    made = parameters({**LLAMA, "attention": "mla"}, 6.7e9)
    assert made.ok is None
    assert "mla" in made.message


def test_a_count_just_below_a_unit_is_written_in_it() -> None:
    made = named(check({"n_parameters": 999_700_000, "attention": "mla"}), "parameters")
    assert made is not None
    assert made.message.startswith("the paper states 1B; ")


def test_no_stated_count_no_check() -> None:
    assert named(check(LLAMA), "parameters") is None


@pytest.mark.parametrize(
    ("stated", "margin"),
    [(65e6, 0.5e6 + 3.25e6), (6.7e9, 0.05e9 + 0.335e9), (124_439_808, 0.5 + 6_221_990.4)],
)
def test_tolerance_follows_how_the_count_is_written(stated: float, margin: float) -> None:
    assert tolerance(stated) == pytest.approx(margin)


@pytest.mark.parametrize(
    ("name", "values", "ok", "message"),
    [
        ("heads", {"d_model": 512, "n_heads": 8}, True, "512 / 8 heads = 64 each"),
        ("heads", {"d_model": 100, "n_heads": 12}, False,
         "d_model 100 is not a multiple of n_heads 12"),
        ("heads", {"d_model": 4096, "n_heads": 32, "head_dim": 128}, True,
         "32 heads × 128 = 4096 = d_model"),
        ("heads", {"d_model": 2560, "n_heads": 32, "head_dim": 128}, True,
         "32 heads × 128 = 4096 differs from d_model 2560 (legal: heads need not fill the model)"),
        ("key-value heads", {"n_heads": 32, "n_kv_heads": 8}, True,
         "32 heads / 8 key-value heads = 4 to each"),
        ("key-value heads", {"n_heads": 12, "n_kv_heads": 8}, False,
         "12 heads / 8 key-value heads leaves a remainder"),
        ("key-value heads", {"n_heads": 8, "n_kv_heads": 16}, False,
         "8 heads / 16 key-value heads leaves a remainder"),
        ("feed-forward", {"d_model": 512, "d_ff": 2048}, True, "d_ff 2048 / d_model 512 = 4.00"),
        ("feed-forward", {"d_model": 512, "d_ff": 256}, False,
         "d_ff 256 / d_model 512 = 0.50, outside 1 to 12"),
        ("feed-forward", {"d_model": 512, "d_ff": 8192}, False,
         "d_ff 8192 / d_model 512 = 16.00, outside 1 to 12"),
        ("window", {"window": 4096, "context_length": 8192}, True,
         "window 4096 ≤ context_length 8192"),
        ("window", {"window": 4096, "context_length": 1024}, False,
         "window 4096 > context_length 1024"),
        ("vocabulary", {"vocab_size": 65}, True, "vocab_size 65 is within 32 to 1,100,000"),
        ("vocabulary", {"vocab_size": 3}, False, "vocab_size 3 is outside 32 to 1,100,000"),
        ("experts", {"n_experts": 8, "n_experts_active": 2}, True, "2 of 8 experts serve a token"),
        ("experts", {"n_experts": 2, "n_experts_active": 8}, False,
         "8 of 2 experts serve a token"),
    ],
)  # fmt: skip
def test_values_against_each_other(
    name: str, values: dict[str, Scalar], ok: bool, message: str
) -> None:
    made = named(check(values), name)
    assert made == Check(name, ok, message)
    assert bool(trust([made])) is not ok


def test_a_derived_head_size_that_does_not_fit_is_doubted() -> None:
    values: dict[str, Scalar] = {"d_model": 2560, "n_heads": 32, "head_dim": 128}
    made = check(values, derived=["head_dim"])
    assert made[0].ok is False
    assert trust(made) == {"n_heads": 0.6, "head_dim": 0.5}


def test_an_expert_may_be_narrow() -> None:
    narrow: dict[str, Scalar] = {"d_model": 7168, "d_ff": 2048, "n_experts": 256}
    assert named(check(narrow), "feed-forward") is None


def test_doubts_multiply() -> None:
    failed = [Check("parameters", False, ""), Check("feed-forward", False, "")]
    assert trust(failed)["d_ff"] == pytest.approx(0.7 * 0.5)
    assert trust([Check("parameters", None, ""), Check("heads", True, "")]) == {}


VALUES = st.one_of(
    st.integers(-5, 10**12), st.floats(), st.booleans(), st.text(max_size=8),
    st.sampled_from(["swiglu", "mla", "rmsnorm", "learned"]),
)  # fmt: skip


@given(st.dictionaries(st.sampled_from([*NUMBERS, *FLAVORS]), VALUES))
def test_no_values_are_too_odd(values: dict[str, Scalar]) -> None:
    for made in check(values):
        assert made.message
        assert "\n" not in made.message
