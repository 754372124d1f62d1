"""ModelConfig, its presets, the initial weights and the position tables."""

import zlib

import numpy as np
import pytest
from pydantic import ValidationError

from paperkiln.engine.attention import alibi_slopes
from paperkiln.models.config import PRESETS, ModelConfig, count_parameters, parameter_shapes
from paperkiln.models.decoder import sinusoidal_table
from paperkiln.models.init import init_parameters

TINY = {"d_model": 16, "n_layers": 2, "n_heads": 4, "d_ff": 20, "vocab_size": 17}


def test_minilm_has_the_published_count():
    config = ModelConfig.from_preset("minilm", vocab_size=256)
    assert count_parameters(config) == 2_444_736
    shapes = parameter_shapes(config)
    assert shapes["blocks.3.attn.qkv.weight"] == (576, 192)
    assert shapes["blocks.3.ffn.in.weight"] == (1536, 192)
    assert init_parameters(config, 0)["pos.weight"].std() == pytest.approx(0.02, rel=0.05)


# --- initial weights -----------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_one_seed_one_model(name):
    config = ModelConfig.from_preset(name, **TINY)
    one, again, other = (init_parameters(config, seed) for seed in (3, 3, 4))
    for key, values in one.items():
        np.testing.assert_array_equal(values, again[key])
        if values.ndim > 1:
            assert np.abs(values - other[key]).max() > 0, key


def test_configurations_share_the_tensors_they_have_in_common():
    base = ModelConfig(**TINY, bias=False)
    variants = (
        {"norm": "layernorm"}, {"norm_placement": "post"}, {"positional": "learned"},
        {"tied_embeddings": False}, {"bias": True}, {"attention": "swa", "window": 2},
        {"n_layers": 3}, {"activation": "silu"}, {"n_kv_heads": 2},
    )  # fmt: skip
    reference = init_parameters(base, 0)
    for fields in variants:
        other = init_parameters(ModelConfig(**{**TINY, "bias": False} | fields), 0)
        common = [n for n in reference if n in other and reference[n].shape == other[n].shape]
        assert len(common) >= 9
        for name in common:
            np.testing.assert_array_equal(reference[name], other[name], err_msg=f"{fields} {name}")


def test_no_two_tensors_start_alike():
    config = ModelConfig(**{**TINY, "n_layers": 40}, tied_embeddings=False)
    names = [n for n, s in parameter_shapes(config).items() if len(s) > 1]
    assert len({zlib.crc32(n.encode()) for n in names}) == len(names)
    firsts = [init_parameters(config, 0)[n].flat[0] for n in names[:6]]
    assert len(set(firsts)) == len(firsts)


@pytest.mark.parametrize("residual_init", ["plain", "depth-scaled"])
def test_the_spread_of_initial_weights(residual_init):
    config = ModelConfig(
        d_model=128, n_layers=8, vocab_size=500, bias=True, norm="layernorm",
        positional="learned", init_std=0.03, residual_init=residual_init,
    )  # fmt: skip
    for name, values in init_parameters(config, 0).items():
        if values.ndim == 1:
            assert np.all(values == (1 if "norm" in name and name.endswith("weight") else 0)), name
            continue
        scaled = residual_init == "depth-scaled" and ".out." in name
        expected = 0.03 / np.sqrt(2 * 8) if scaled else 0.03
        assert values.std() == pytest.approx(expected, rel=0.03), name
        assert abs(values.mean()) < 4 * expected / np.sqrt(values.size), name


def test_float64_weights_are_the_float32_ones_before_rounding():
    config = ModelConfig(**TINY)
    for name, exact in init_parameters(config, 0, np.float64).items():
        np.testing.assert_array_equal(exact.astype(np.float32), init_parameters(config, 0)[name])


# --- tables --------------------------------------------------------------------------------


def test_alibi_slopes_are_the_published_ones():
    # Press et al. 2021, section 3: for 8 heads 1/2 ... 1/256.
    np.testing.assert_allclose(alibi_slopes(8), [1 / 2**n for n in range(1, 9)], rtol=1e-15)
    # 12 heads by the released code: those of 8, then every second one of 16.
    extra = [0.7071067811865476, 0.35355339059327384, 0.17677669529663692, 0.08838834764831849]
    np.testing.assert_allclose(alibi_slopes(12), [*alibi_slopes(8), *extra], rtol=1e-14)
    np.testing.assert_allclose(
        alibi_slopes(16), [2 ** (-0.5 * n) for n in range(1, 17)], rtol=1e-14
    )
    assert alibi_slopes(1).tolist() == [2.0**-8]
    assert all(len(alibi_slopes(n)) == n for n in range(1, 40))


@pytest.mark.parametrize(
    ("position", "column", "value"),
    [
        (0, 0, 0.0), (0, 1, 1.0), (0, 510, 0.0), (0, 511, 1.0),
        (1, 0, 0.8414709848078965), (1, 1, 0.5403023058681398),
        # angle 100 / 10000^(256/512) = 1; 50 / 10000^(510/512) = 0.00518316464
        (100, 256, 0.8414709848078965), (100, 257, 0.5403023058681398),
        (50, 510, 0.00518314143), (50, 511, 0.99998656743),
        (3, 0, 0.1411200080598672), (3, 1, -0.9899924966004454),
    ],
)  # fmt: skip
def test_sinusoidal_table_spot_values(position, column, value):
    assert sinusoidal_table(128, 512)[position, column] == pytest.approx(value, abs=1e-9)


# --- configuration -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"d_model": 100, "n_heads": 3}, "d_model 100 is not divisible by n_heads 3; change one"),
        ({"preset": "gpt5"}, "unknown preset 'gpt5'; known: gpt2-nano, gpt2-small"),
        ({"d_model": 15, "n_heads": 5}, "rope rotates pairs: head_dim 3 must be even"),
        ({"n_heads": 4, "n_kv_heads": 3}, "n_heads 4 is not divisible by n_kv_heads 3"),
        ({"activation": "swish"}, "'relu', 'gelu'"),
        ({"d_modle": 128}, "Extra inputs are not permitted"),
        ({"dropout": 1.0}, "less than 1"),
        ({"window": 0}, "greater than or equal to 1"),
    ],
)
def test_a_wrong_configuration_says_what_is_wrong(fields, message):
    with pytest.raises(ValidationError) as error:
        ModelConfig(**fields)
    assert message in str(error.value)


def test_shapes_need_a_vocabulary():
    with pytest.raises(ValueError, match="vocab_size is unset"):
        parameter_shapes(ModelConfig())


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_a_starting_point(name):
    config = ModelConfig.from_preset(name, n_layers=5)
    assert config.n_layers == 5
    assert {k: getattr(config, k) for k in PRESETS[name] if k != "n_layers"} == {
        k: v for k, v in PRESETS[name].items() if k != "n_layers"
    }
    assert ModelConfig(**config.model_dump()) == config  # a dump is a full description
