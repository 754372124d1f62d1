"""The tape itself: order, depth, sharing, memory, modes, dtypes, checkpoints."""

import gc
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from paperkiln.engine import ops as F
from paperkiln.engine.gradcases import CASES
from paperkiln.engine.tape import Tensor, reachable, recording
from paperkiln.models.config import PRESETS, ModelConfig
from paperkiln.models.decoder import Decoder
from paperkiln.models.init import init_parameters


def leaf(values, dtype=np.float64):
    return Tensor(np.array(values, dtype), requires_grad=True)


# --- order and depth -----------------------------------------------------------------------


def test_a_tensor_used_twice():
    a = leaf(3.0)
    b = a + a
    c = b + b
    c.backward()
    assert a.grad == 4.0


@pytest.mark.parametrize("swapped", [False, True])
def test_a_diamond_whichever_branch_comes_first(swapped):
    a = leaf(3.0)
    short = a * 2.0
    long = (short * short) * a  # 4 a³, and reads `short` again
    out = short + long if swapped else long + short
    out.backward()
    assert a.grad == 2 + 12 * 9


@pytest.mark.parametrize("swapped", [False, True])
def test_a_diamond_made_in_either_order(swapped):
    a, b = leaf(2.0), leaf(5.0)
    branches = [lambda x: x * x, lambda x: x * b]
    middle = a * b
    first, second = (f(middle) for f in (reversed(branches) if swapped else branches))
    (second * first).backward()  # (ab)² (ab) b = a³ b⁴
    assert a.grad == 3 * 4 * 5**4
    assert b.grad == 4 * 8 * 5**3


@pytest.mark.parametrize("n", [3_000, 100_000])
def test_a_long_chain(n):
    a = leaf(1.0)
    x = a
    for _ in range(n):
        x = x + a
    x.backward()
    assert a.grad == n + 1


def test_a_long_chain_dropped_without_going_back():
    a = leaf(1.0)
    x = a
    for _ in range(100_000):
        x = -x
    del x  # freeing it must not overflow the stack either
    assert a.grad is None


# --- what may be shared --------------------------------------------------------------------


def test_a_gradient_shared_by_two_parents_is_not_corrupted():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    shared = a + b  # hands the same array to both
    F.sum(shared * 10.0 + a * 5.0 + a * 7.0).backward()
    np.testing.assert_array_equal(a.grad, [22.0, 22.0])
    np.testing.assert_array_equal(b.grad, [10.0, 10.0])


def test_a_part_added_to_a_shared_gradient_does_not_leak():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    part = F.sum(a[:1] * 5.0)
    F.sum((a + b) * 10.0).backward()
    part.backward()
    np.testing.assert_array_equal(a.grad, [15.0, 10.0])
    np.testing.assert_array_equal(b.grad, [10.0, 10.0])


@pytest.mark.parametrize("op", sorted(CASES))
def test_backward_writes_into_no_input_and_not_into_dout(op):
    for case in CASES[op]:
        arrays = case.inputs(np.random.default_rng(0))
        before = [x.copy() for x in arrays]
        leaves = [Tensor(x, requires_grad=True) for x in arrays]
        out = case.apply(F, *leaves)
        if out._backward is None:  # dropout with p 0 is its input
            continue
        dout = np.random.default_rng(1).normal(size=out.shape)
        dout.flags.writeable = False  # a write raises
        values = out.data.copy()
        for grad, parent in zip(out._backward(dout), out._parents, strict=True):
            assert grad is None or grad.shape == parent.shape, case.label
        np.testing.assert_array_equal(out.data, values)
        for x, was in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(x, was)


def test_gradients_add_up_over_fresh_graphs():
    w = leaf([[1.0, 2.0]])
    xs = np.random.default_rng(0).normal(size=(3, 4, 2))
    for x in xs:
        F.sum(F.linear(F.tensor(x), w)).backward()
    np.testing.assert_allclose(w.grad, xs.sum(axis=(0, 1))[None], rtol=1e-12)


def test_only_what_requires_a_gradient_gets_one():
    a, b = leaf([1.0]), Tensor(np.array([2.0]))
    h = a * b
    F.sum(h).backward()
    assert (a.grad, b.grad, h.grad) == (2.0, None, None)


# --- refusals ------------------------------------------------------------------------------


def test_going_back_twice_is_refused_and_harmless():
    a = leaf([1.0, 2.0])
    loss = F.sum(a * a)
    loss.backward()
    grad = a.grad.copy()
    with pytest.raises(ValueError, match="already walked: run the forward pass again"):
        loss.backward()
    np.testing.assert_array_equal(a.grad, grad)


def test_a_part_already_walked_is_refused_and_harmless():
    a = leaf([1.0, 2.0])
    shared = a * 2.0
    other = F.sum(shared * shared) + F.sum(a)
    F.sum(shared).backward()
    grad = a.grad.copy()
    with pytest.raises(ValueError, match="already walked"):
        other.backward()
    np.testing.assert_array_equal(a.grad, grad)


@pytest.mark.parametrize("shape", [(2,), (1, 2), (0,)])
def test_only_a_scalar_can_start(shape):
    with pytest.raises(ValueError, match="scalar loss, not from shape"):
        (leaf(np.ones(shape)) * 2.0).backward()


def test_a_loss_of_constants_is_refused():
    with pytest.raises(ValueError, match="no input of this loss requires a gradient"):
        F.sum(Tensor(np.ones(3))).backward()


def test_a_gradient_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"shape \(3,\) for a tensor of shape \(2,\)"):
        leaf([1.0, 2.0]).accumulate(np.ones(3))


# --- modes ---------------------------------------------------------------------------------


def test_no_grad_records_nothing_and_ends_with_its_block():
    a = leaf([1.0])
    with F.no_grad():
        assert not (a * a).requires_grad
        with F.no_grad():
            pass
        assert not recording()
    assert (a * a).requires_grad
    with pytest.raises(RuntimeError, match="inside"), F.no_grad():
        raise RuntimeError("inside")
    assert recording()


def test_recording_is_per_thread():
    inside, seen = threading.Barrier(2), {}
    a = leaf([1.0])

    def quiet():
        with F.no_grad():
            inside.wait(60)
            seen["quiet"] = (a * a).requires_grad
            inside.wait(60)

    thread = threading.Thread(target=quiet)
    thread.start()
    inside.wait(60)
    seen["loud"] = (a * a).requires_grad
    inside.wait(60)
    thread.join()
    assert seen == {"quiet": False, "loud": True}


def test_threads_with_graphs_of_their_own_agree_with_one_thread():
    xs = np.random.default_rng(0).normal(size=(4, 8, 3))
    values = np.random.default_rng(1).normal(size=(3, 3))

    def grad(x, out, n):
        w = leaf(values)
        for _ in range(20):
            w.grad = None
            F.sum(F.tanh(F.linear(F.tensor(x), w))).backward()
        out[n] = w.grad

    alone, together = {}, {}
    for n, x in enumerate(xs):
        grad(x, alone, n)
    threads = [threading.Thread(target=grad, args=(x, together, n)) for n, x in enumerate(xs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for n in alone:
        np.testing.assert_array_equal(alone[n], together[n])


def test_checkpoint_goes_back_inside_no_grad():
    a = leaf([0.5])
    loss = F.sum(F.checkpoint(lambda x: x * x * x, a))
    with F.no_grad():
        loss.backward()
        assert not recording()
    np.testing.assert_allclose(a.grad, 0.75)


# --- dtypes --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", sorted(CASES))
def test_every_op_keeps_the_dtype(op, dtype):
    for case in CASES[op]:
        arrays = [x.astype(dtype) for x in case.inputs(np.random.default_rng(0))]
        leaves = [Tensor(x, requires_grad=True) for x in arrays]
        out = case.apply(F, *leaves)
        assert out.dtype == dtype, case.label
        F.sum(out * out).backward()
        for t in leaves:
            assert t.grad.dtype == dtype, case.label
            assert t.grad.shape == t.shape, case.label


@pytest.mark.parametrize("op", sorted(CASES))
def test_float32_is_float64_rounded(op):
    for case in CASES[op]:
        results = []
        for dtype in (np.float64, np.float32):
            leaves = [leaf(x, dtype) for x in case.inputs(np.random.default_rng(0))]
            out = case.apply(F, *leaves)
            F.sum(out * F.tensor(np.cos(np.arange(out.data.size)).reshape(out.shape))).backward()
            results.append([out.data, *(t.grad for t in leaves)])
        for exact, rounded in zip(*results, strict=True):
            scale = max(np.abs(exact).max(), 0.1)  # q of a single token has gradient 0
            # float32 holds a logit near 300 to 3e-5 only.
            tolerance = 1e-4 if "near 300" in case.label or "far from" in case.label else 5e-6
            assert np.abs(exact - rounded).max() <= tolerance * scale, case.label


def test_numbers_and_arrays_on_either_side():
    a = leaf([2.0, 4.0], np.float32)
    array = np.array([1.0, 3.0])
    for out, expected in (
        (1 + a, [3, 5]), (1 - a, [-1, -3]), (3 * a, [6, 12]), (8 / a, [4, 2]),
        (array + a, [3, 7]), (array - a, [-1, -1]), (array * a, [2, 12]), (array / a, [0.5, 0.75]),
        (np.float64(8) / a, [4, 2]), (a - array, [1, 1]), (-a, [-2, -4]),
    ):  # fmt: skip
        assert isinstance(out, Tensor)
        assert out.dtype == np.float32
        np.testing.assert_array_equal(out.data, np.array(expected, np.float32))


# --- memory --------------------------------------------------------------------------------


def test_memory_falls_while_going_back():
    """What lies above a tensor on the tape is freed before its own backward runs."""
    a = leaf(np.ones(4))
    layers, alive = [], []

    def watch(x):
        out = x * 1.0
        inner = out._backward
        layers.append(weakref.ref(out.data))

        def backward(dout):
            alive.append(sum(ref() is not None for ref in layers))
            return inner(dout)

        out._backward = backward
        return out

    x = a
    for _ in range(10):
        x = watch(x)
    loss = F.sum(x)
    del x
    gc.disable()  # reference counts alone must do it
    try:
        loss.backward()
    finally:
        gc.enable()
    # The walk itself holds the tensor at hand, the loss is ours.
    assert alive == list(range(10, 0, -1))
    assert not any(ref() for ref in layers)
    assert loss._parents == ()


# --- broadcasting --------------------------------------------------------------------------


@given(
    shapes=hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4),
    op=st.sampled_from(["add", "sub", "mul", "div"]),
)
def test_broadcasting_equals_working_on_the_repeated_arrays(shapes, op):
    rng = np.random.default_rng(0)
    a, b = (leaf(rng.uniform(0.5, 2.0, s)) for s in shapes.input_shapes)
    full = [leaf(np.broadcast_to(t.data, shapes.result_shape)) for t in (a, b)]
    weights = rng.normal(size=shapes.result_shape)
    for pair in ((a, b), full):
        F.sum(getattr(F, op)(*pair) * weights).backward()
    for t, big in zip((a, b), full, strict=True):
        assert t.grad.shape == t.shape
        # Sum the repeated gradient back by the rule of broadcasting, spelled otherwise.
        expected = np.zeros(t.shape)
        padded = (1,) * (big.ndim - t.ndim) + t.shape
        for at in np.ndindex(big.shape):
            small = tuple(0 if n == 1 else i for i, n in zip(at, padded, strict=True))
            expected.reshape(padded)[small] += big.grad[at]
        np.testing.assert_allclose(t.grad, expected, rtol=1e-12, atol=1e-12)


# --- checkpoint ----------------------------------------------------------------------------


def _loss_and_gradients(config, checkpoint, dtype):
    parameters = {
        name: Tensor(values, requires_grad=True)
        for name, values in init_parameters(config, seed=1, dtype=dtype).items()
    }
    ids = np.random.default_rng(0).integers(0, config.vocab_size, (3, 12))
    loss = Decoder(config, parameters, F, checkpoint).loss(ids[:, :-1], ids[:, 1:], seed=(5,))
    value, nodes = loss.item(), len(reachable(loss))
    loss.backward()
    return value, {name: p.grad for name, p in parameters.items()}, nodes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("preset", PRESETS)
def test_checkpoint_is_bit_identical_with_far_fewer_live_nodes(preset, dtype):
    config = ModelConfig.from_preset(
        preset, d_model=32, n_layers=6, n_heads=4, d_ff=48, vocab_size=19, dropout=0.1
    )
    plain, plain_grads, plain_nodes = _loss_and_gradients(config, False, dtype)
    again, again_grads, again_nodes = _loss_and_gradients(config, True, dtype)
    print(f"{preset}: {plain_nodes} live nodes, {again_nodes} with checkpoints")
    assert again == plain
    for name, grad in plain_grads.items():
        np.testing.assert_array_equal(grad, again_grads[name], err_msg=name)
    assert again_nodes * 5 < plain_nodes
    assert again_nodes <= config.n_layers + 8
