"""The check of every hand-derived backward: complete, passing, and able to fail."""

import itertools
import json

import numpy as np
import pytest

from paperkiln.engine import gradcheck, ops
from paperkiln.engine.gradcases import CASES
from paperkiln.engine.tape import record
from paperkiln.errors import PaperkilnError
from paperkiln.models.config import PRESETS

DIFFERENTIABLE = [name for name in ops.__all__ if name not in gradcheck.NOT_DIFFERENTIATED]


def test_every_op_has_a_case():
    assert set(CASES) == set(DIFFERENTIABLE)
    assert set(ops.__all__) >= gradcheck.NOT_DIFFERENTIATED
    assert len(ops.__all__) == len(set(ops.__all__))


def test_an_op_without_a_case_fails(monkeypatch):
    monkeypatch.setattr(ops, "__all__", [*ops.__all__, "brand_new"])
    with pytest.raises(PaperkilnError, match="'brand_new' has no gradcheck case"):
        gradcheck.gradcheck(["brand_new"])


@pytest.mark.parametrize("op", DIFFERENTIABLE)
def test_op(op):
    (result,) = gradcheck.gradcheck([op])
    assert result.max_rel_error <= 1e-6, result
    assert result.ok
    assert (result.op, result.dtype) == (op, "float64")


@pytest.mark.parametrize("name", gradcheck.MODELS)
def test_model(name):
    (result,) = gradcheck.gradcheck([name])
    assert result.max_rel_error <= 1e-6, result


def test_every_preset_is_a_model_row():
    assert [m.removeprefix("model ") for m in gradcheck.MODELS] == [*PRESETS, "flavours"]


def test_two_choices_of_the_family_always_meet():
    dumps = [c.model_dump() for c in gradcheck.flavours()]
    has = lambda dump, choice: all(dump[k] == v for k, v in choice.items())  # noqa: E731
    for one, other in itertools.combinations(gradcheck._CHOICES, 2):
        for a, b in itertools.product(one, other):
            assert any(has(d, a) and has(d, b) for d in dumps), (a, b)


def _off_by(fn, factor):
    """Return the op with every gradient it passes on scaled by `factor`."""

    def wrong(*args, **kwargs):
        out = fn(*args, **kwargs)
        if (backward := out._backward) is not None and out._parents:
            out._backward = lambda dout: backward(dout * factor)
        return out

    return wrong


@pytest.mark.parametrize("op", DIFFERENTIABLE)
def test_a_backward_off_by_a_hundred_thousandth_is_caught(op, monkeypatch):
    monkeypatch.setattr(ops, op, _off_by(getattr(ops, op), 1 + 1e-5))
    (result,) = gradcheck.gradcheck([op])
    assert not result.ok
    assert "FAILS" in gradcheck.table([result])


def _tanh_without_its_square(x):
    t = np.tanh(x.data)
    return record(t, (x,), lambda dout: (dout * (1 - t),))


def _embedding_where_the_last_use_wins(ids, w):
    def backward(dout):
        dw = np.zeros(w.shape)
        dw[ids] = dout
        return (dw,)

    return record(w.data[ids], (w,), backward)


def _rope_that_turns_on(x, theta=10000.0, interleaved=False, factors=None, *, rope=ops.rope):
    forward = rope(x, theta, interleaved, factors)
    with ops.no_grad():
        turn = lambda dout: rope(ops.tensor(dout), theta, interleaved, factors).data  # noqa: E731
    return record(forward.data, (x,), lambda dout: (turn(dout),))


def _norm_that_forgets_the_mean(x, w, b, eps):
    centred = x.data - x.data.mean(axis=-1, keepdims=True)
    r = 1 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)
    hat = centred * r

    def backward(dout):
        g = dout * w.data
        dx = r * (g - hat * (g * hat).mean(axis=-1, keepdims=True))
        dw = (dout * hat).reshape(-1, w.shape[0]).sum(axis=0)
        return (dx, dw) if b is None else (dx, dw, dout.reshape(-1, w.shape[0]).sum(axis=0))

    out = hat * w.data + (0.0 if b is None else b.data)
    return record(out, (x, w) if b is None else (x, w, b), backward)


@pytest.mark.parametrize(
    ("op", "wrong", "model"),
    [
        ("tanh", _tanh_without_its_square, None),
        ("embedding", _embedding_where_the_last_use_wins, "model minilm"),
        ("rope", _rope_that_turns_on, "model llama-tiny"),
        ("layer_norm", _norm_that_forgets_the_mean, "model gpt2-nano"),
    ],
)
def test_a_likely_mistake_is_caught(op, wrong, model, monkeypatch):
    monkeypatch.setattr(ops, op, wrong)
    for result in gradcheck.gradcheck([op] + ([model] if model else [])):
        assert result.max_rel_error > 1e-3, result


def test_a_missing_gradient_and_a_nan_are_failures(monkeypatch):
    monkeypatch.setattr(ops, "exp", lambda x: record(np.exp(x.data), (x,), lambda dout: (None,)))
    assert not gradcheck.gradcheck(["exp"])[0].ok
    nan = lambda x: record(np.exp(x.data), (x,), lambda dout: (dout * np.nan,))  # noqa: E731
    monkeypatch.setattr(ops, "exp", nan)
    assert gradcheck.gradcheck(["exp"])[0].max_rel_error == np.inf


def test_central_difference_of_a_cubic_and_the_input_is_restored():
    x = np.random.default_rng(0).normal(size=(3, 4)).T
    before = x.copy()
    direction = np.ones(x.shape)
    slope = gradcheck.central_difference(lambda: float((x**3).sum()), x, direction)
    np.testing.assert_allclose(slope, 3 * (x**2).sum(), rtol=1e-9)
    np.testing.assert_array_equal(x, before)


def test_the_strided_cases_are_strided():
    for cases in CASES.values():
        assert cases[-1].label.endswith("strided")
        for x in cases[-1].inputs(np.random.default_rng(0)):
            if x.size > 1:
                assert not x.flags.c_contiguous


def test_json_has_one_object_per_op(capsys):
    assert gradcheck.main(as_json=True, only=["tanh", "add"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["op"] for row in rows] == ["tanh", "add"]
    assert all({"op", "max_rel_error", "dtype"} <= set(row) for row in rows)


def test_a_failure_is_exit_code_1(monkeypatch, capsys):
    monkeypatch.setattr(ops, "tanh", _tanh_without_its_square)
    assert gradcheck.main(only=["tanh"]) == 1
    assert "1 FAIL" in capsys.readouterr().out


def test_an_unknown_name_is_one_clear_line():
    with pytest.raises(PaperkilnError, match="gradcheck knows no 'tahn'; it knows: add") as error:
        gradcheck.gradcheck(["tahn"])
    assert "\n" not in str(error.value)
