"""A paper's model scaled down: its size, shape, flavours and training."""

from __future__ import annotations

import pytest
from made_papers import LLAMA, VASWANI, notes_of, paper, spec_of

from paperkiln.errors import PaperkilnError
from paperkiln.models import config as models
from paperkiln.papers.architecture import Scalar
from paperkiln.papers.emit import to_spec
from paperkiln.papers.emit.choices import choose
from paperkiln.papers.emit.fit import count, fit, parse_size, shape_of


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("cpu", 1_250_000), ("CPU", 1_250_000), ("500k", 500_000), ("3M", 3_000_000),
        ("1.5m", 1_500_000), ("2_000_000", 2_000_000), ("2,000,000", 2_000_000),
        ("1e6", 1_000_000), ("0.1B", 100_000_000),
    ],
)  # fmt: skip
def test_sizes_to_fit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "big", "3MM", "-3M", "nan", "1", "9e99", "1e30", "٣M" * 99])
def test_no_size_to_fit(text: str) -> None:
    with pytest.raises(PaperkilnError, match="--fit"):
        to_spec(paper(), text)


@pytest.mark.parametrize("size", ["500k", "cpu", "3M", "30M"])
@pytest.mark.parametrize("values", [VASWANI, LLAMA], ids=["vaswani", "llama"])
def test_a_fit_keeps_shape_and_flavours(values: dict[str, Scalar], size: str) -> None:
    at_paper_size, spec = spec_of(paper(**values)), spec_of(paper(**values), size)
    big, small = at_paper_size.arch, spec.arch
    whole = small.model_copy(update={"vocab_size": spec.data.vocab_size})
    assert models.count_parameters(whole) == pytest.approx(parse_size(size), rel=0.2)
    for name in ("norm", "norm_placement", "activation", "positional", "bias", "dropout"):
        assert getattr(small, name) == getattr(big, name), name
    assert small.d_ff / small.d_model == pytest.approx(big.d_ff / big.d_model, rel=0.05)
    assert small.n_heads * small.head_dim == small.d_model
    assert small.n_layers >= 2
    assert (small.n_kv_heads < small.n_heads) == (big.n_kv_heads < big.n_heads)
    aspect = (small.n_layers / small.d_model) / (big.n_layers / big.d_model)
    assert 0.5 < aspect <= 2 or small.n_layers == 2
    notes = notes_of(paper(**values), size)
    for name in ("d_model", "n_layers", "n_heads", "d_ff", "context_length"):
        before, after = getattr(big, name), getattr(small, name)
        assert (f"{name} {before} -> {after} (fit)" in notes) == (before != after), name


def test_cpu_is_a_million_parameters_short_texts_and_few_words() -> None:
    architecture = paper(training={"lr": 1e-4, "steps": 10**6}, **LLAMA)
    spec = spec_of(architecture, "cpu")
    chosen = fit(choose(architecture), parse_size("cpu"))
    counted = count(shape_of(chosen.model), chosen.model)
    assert 0.5e6 < counted.total - counted.embedding < 1.5e6
    assert spec.arch.context_length <= 256
    assert spec.data.vocab_size <= 4096
    assert spec.train.steps * spec.train.batch * spec.arch.context_length < 4_000_000
    assert "lr 0.0001 -> 0.003 (fit)" in notes_of(architecture, "cpu")


def test_a_model_that_fits_is_left_as_it_is() -> None:
    small = {"d_model": 128, "n_layers": 2, "n_heads": 4, "d_ff": 352, "vocab_size": 1024,
             "context_length": 128, "activation": "swiglu"}  # fmt: skip
    architecture = paper(training={"steps": 2600, "batch_sequences": 16, "lr": 3e-3}, **small)
    plain, fitted = spec_of(architecture), spec_of(architecture, "cpu")
    assert fitted.arch == plain.arch
    assert (fitted.train.steps, fitted.train.lr) == (2600, 3e-3)
    assert "(fit)" not in notes_of(architecture, "cpu")


def test_a_fitted_window_keeps_its_part_of_the_context() -> None:
    architecture = paper(attention="swa", window=4096, **LLAMA)
    spec = spec_of(architecture, "cpu")
    assert spec.arch.window * 2 == spec.arch.context_length
