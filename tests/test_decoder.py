"""The decoder family: what each configuration computes, and what it must never do."""

import itertools

import numpy as np
import pytest
from scipy.special import erf

from paperkiln.engine import ops as F
from paperkiln.engine.attention import Block, alibi_slopes, causal_bias
from paperkiln.engine.gradcheck import flavours
from paperkiln.engine.tape import Tensor
from paperkiln.models.config import PRESETS, ModelConfig, count_parameters, parameter_shapes
from paperkiln.models.decoder import Decoder
from paperkiln.models.init import init_parameters

TINY = {"d_model": 16, "n_layers": 2, "n_heads": 4, "d_ff": 20, "vocab_size": 17}
SMALL_PRESETS = [ModelConfig.from_preset(name, **TINY, context_length=16) for name in PRESETS]
FAMILY = SMALL_PRESETS + flavours()


def label(config):
    c = config
    return c.preset or (
        f"{c.norm}-{c.norm_placement}-{c.activation}-{c.positional}-{c.attention}{c.window}"
        f"-{c.n_heads}.{c.n_kv_heads}-{c.bias:d}{c.tied_embeddings:d}{c.scale_embeddings:d}"
    )


def lively(config, seed=0, dtype=np.float64):
    """Parameters of a size at which attention is not uniform and gains and biases matter."""
    rng = np.random.default_rng(seed)
    parameters = init_parameters(config, seed, np.float64)
    return {n: (p + rng.normal(0, 0.3, p.shape)).astype(dtype) for n, p in parameters.items()}


def random_ids(config, B, T, seed=0):
    return np.random.default_rng(seed).integers(0, config.vocab_size, (B, T))


def logits(config, parameters, ids):
    return Decoder(config, parameters, F).logits(ids).data


# --- the forward pass, against one written plainly from its description --------------------


def plain_logits(c, p, ids):
    """One sequence, (T,) -> (T, V), in loops: query by query, key by key, pair by pair."""
    T, D, E = len(ids), c.d_model, c.head_dim
    group = c.n_heads // c.n_kv_heads

    def affine(name, x):
        return x @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0.0)

    def norm(name, x):
        if c.norm == "layernorm":
            x = x - x.mean(-1, keepdims=True)
        scaled = x / np.sqrt((x**2).mean(-1, keepdims=True) + c.norm_eps)
        return scaled * p[f"{name}.weight"] + p.get(f"{name}.bias", 0.0)

    def rotate(vector, position):
        out = vector.copy()
        for m in range(E // 2):
            angle = position * c.rope_theta ** (-2 * m / E)
            a, b = (m, m + E // 2) if c.rope_layout == "half" else (2 * m, 2 * m + 1)
            out[a] = vector[a] * np.cos(angle) - vector[b] * np.sin(angle)
            out[b] = vector[b] * np.cos(angle) + vector[a] * np.sin(angle)
        return out

    def attend(name, x):
        rows = affine(f"{name}.qkv", x)
        out = np.zeros((T, c.n_heads * E))
        for h in range(c.n_heads):
            at_q, at_k = h * E, (c.n_heads + h // group) * E
            at_v = at_k + c.n_kv_heads * E
            q, k = rows[:, at_q : at_q + E], rows[:, at_k : at_k + E]
            if c.positional == "rope":
                q = np.array([rotate(r, t) for t, r in enumerate(q)])
                k = np.array([rotate(r, t) for t, r in enumerate(k)])
            for i in range(T):
                seen = [
                    j
                    for j in range(i + 1)
                    if c.attention == "exact" or i - j < c.window or j < c.sinks
                ]
                scores = np.array([q[i] @ k[j] / np.sqrt(E) for j in seen])
                if c.positional == "alibi":
                    scores -= alibi_slopes(c.n_heads)[h] * np.array([i - j for j in seen])
                weights = np.exp(scores) / np.exp(scores).sum()
                out[i, at_q : at_q + E] = sum(
                    w * rows[j, at_v : at_v + E] for w, j in zip(weights, seen, strict=True)
                )
        return affine(f"{name}.out", out)

    plain = {
        "relu": lambda z: np.maximum(z, 0),
        "squared_relu": lambda z: np.maximum(z, 0) ** 2,
        "silu": lambda z: z / (1 + np.exp(-z)),
        "gelu": lambda z: z * (1 + erf(z / np.sqrt(2))) / 2,
        "gelu_tanh": lambda z: z / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3))),
    }
    gates = {"swiglu": plain["silu"], "geglu": plain["gelu"], "reglu": plain["relu"]}

    def feed_forward(name, x):
        inner = affine(f"{name}.in", x)
        if c.activation in gates:
            inner = gates[c.activation](inner[:, : c.d_ff]) * inner[:, c.d_ff :]
        else:
            inner = plain[c.activation](inner)
        return affine(f"{name}.out", inner)

    x = p["embed.weight"][ids] * (np.sqrt(D) if c.scale_embeddings else 1.0)
    if c.positional == "learned":
        x = x + p["pos.weight"][:T]
    if c.positional == "sinusoidal":
        rates = [10000 ** -(2 * (i // 2) / D) for i in range(D)]
        x = x + np.array(
            [[(np.cos if i % 2 else np.sin)(t * r) for i, r in enumerate(rates)] for t in range(T)]
        )
    for n in range(c.n_layers):
        b = f"blocks.{n}"
        if c.norm_placement == "pre":
            x = x + attend(f"{b}.attn", norm(f"{b}.norm1", x))
            x = x + feed_forward(f"{b}.ffn", norm(f"{b}.norm2", x))
        else:
            x = norm(f"{b}.norm1", x + attend(f"{b}.attn", x))
            x = norm(f"{b}.norm2", x + feed_forward(f"{b}.ffn", x))
    if c.norm_placement == "pre":
        x = norm("norm", x)
    return x @ p["embed.weight" if c.tied_embeddings else "head.weight"].T


@pytest.mark.parametrize("config", FAMILY, ids=label)
def test_logits_equal_a_plain_reading_of_the_description(config):
    parameters = lively(config)
    ids = random_ids(config, 2, 6)
    expected = np.array([plain_logits(config, parameters, row) for row in ids])
    np.testing.assert_allclose(logits(config, parameters, ids), expected, rtol=0, atol=1e-11)


# --- laws ----------------------------------------------------------------------------------


@pytest.mark.parametrize("config", FAMILY, ids=label)
def test_future_tokens_never_change_past_logits(config):
    parameters = lively(config, dtype=np.float32)
    T = 7
    ids = random_ids(config, 1, T)
    decoder = Decoder(config, parameters, F)
    before = decoder.logits(ids).data
    for t in range(1, T):
        changed = ids.copy()
        changed[0, t:] = (changed[0, t:] + 1 + np.arange(T - t)) % config.vocab_size
        after = decoder.logits(changed).data
        assert np.abs(after[:, :t] - before[:, :t]).max() == 0.0
        assert np.abs(after[:, t] - before[:, t]).max() > 0.0


@pytest.mark.parametrize("config", FAMILY, ids=label)
def test_past_tokens_do_change_later_logits(config):
    parameters = lively(config)
    ids = random_ids(config, 1, 3)
    changed = ids.copy()
    changed[0, 0] = (changed[0, 0] + 1) % config.vocab_size
    difference = logits(config, parameters, ids) - logits(config, parameters, changed)
    assert np.abs(difference[:, 1]).max() > 1e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_batch_equals_its_sequences_alone(dtype):
    worst = 0.0
    full_size = ModelConfig.from_preset("gpt2-nano", vocab_size=300)
    for config, T in [*((c, 7) for c in FAMILY), (full_size, 128)]:
        parameters = lively(config, dtype=dtype)
        ids = random_ids(config, 5, T)
        together = logits(config, parameters, ids)
        alone = np.concatenate([logits(config, parameters, row[None]) for row in ids])
        worst = max(worst, float(np.abs(together - alone).max() / np.abs(alone).max()))
    print(f"batch against alone, {np.dtype(dtype).name}: {worst:.1e} of the largest logit")
    # BLAS may sum in another order for another number of rows: a few units in the last place.
    assert worst <= 30 * np.finfo(dtype).eps


def test_loss_and_gradients_of_a_batch_are_the_mean_over_its_sequences():
    config = SMALL_PRESETS[2]
    ids = random_ids(config, 4, 8)

    def gradients(rows):
        parameters = {n: Tensor(p, requires_grad=True) for n, p in lively(config).items()}
        loss = Decoder(config, parameters, F).loss(rows[:, :-1], rows[:, 1:])
        value = loss.item()
        loss.backward()
        return value, {n: p.grad for n, p in parameters.items()}

    loss, together = gradients(ids)
    losses, alone = zip(*(gradients(row[None]) for row in ids), strict=True)
    np.testing.assert_allclose(loss, np.mean(losses), rtol=1e-13)
    for name, grad in together.items():
        mean = np.mean([g[name] for g in alone], axis=0)
        np.testing.assert_allclose(grad, mean, rtol=1e-10, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("window", [9, 10, 100])
@pytest.mark.parametrize("positional", ["learned", "rope", "alibi"])
def test_a_window_past_the_end_equals_exact_attention_bitwise(window, positional, dtype):
    T = 9
    results = []
    for fields in ({"attention": "exact"}, {"attention": "swa", "window": window, "sinks": 0}):
        config = ModelConfig(**TINY, n_kv_heads=2, positional=positional, **fields)
        values = lively(config, dtype=dtype)
        parameters = {n: Tensor(p, requires_grad=True) for n, p in values.items()}
        ids = random_ids(config, 3, T + 1)
        decoder = Decoder(config, parameters, F)
        loss = decoder.loss(ids[:, :-1], ids[:, 1:])
        out = [decoder.logits(ids[:, :-1]).data, loss.data]
        loss.backward()
        results.append(out + [p.grad for p in parameters.values()])
    for exact, windowed in zip(*results, strict=True):
        np.testing.assert_array_equal(exact, windowed)


def test_a_window_short_of_the_end_is_not_exact_attention():
    T = 9
    exact = ModelConfig(**TINY)
    windowed = ModelConfig(**TINY, attention="swa", window=T - 1)
    ids, parameters = random_ids(exact, 1, T), lively(exact)
    a, b = (logits(c, parameters, ids) for c in (exact, windowed))
    assert np.abs(a - b)[:, :-1].max() == 0.0
    assert np.abs(a - b)[:, -1].max() > 1e-9


@pytest.mark.parametrize(("window", "sinks"), [(1, 0), (2, 0), (3, 1), (2, 4), (6, 0)])
def test_who_sees_whom(window, sinks):
    T = 6
    seen = causal_bias(Block(0, T, 0), window, sinks, np.dtype(np.float32)) == 0
    for i, j in itertools.product(range(T), repeat=2):
        assert seen[i, j] == (j <= i and (i - j < window or j < sinks))


def test_dropout_is_a_function_of_its_seed_and_off_without_one():
    config = ModelConfig(**TINY, dropout=0.3)
    decoder = Decoder(config, lively(config), F)
    ids = random_ids(config, 2, 8)
    run = lambda seed: decoder.hidden(ids, seed).data  # noqa: E731
    np.testing.assert_array_equal(run((1, 2)), run((1, 2)))
    assert np.abs(run((1, 2)) - run((1, 3))).max() > 0
    plain = Decoder(config.model_copy(update={"dropout": 0.0}), lively(config), F)
    np.testing.assert_array_equal(run(None), plain.hidden(ids).data)


def test_dropout_keeps_the_mean_and_the_share():
    x = F.tensor(np.ones((400, 500)))
    out = F.dropout(x, 0.2, (0,)).data
    assert set(np.unique(out)) == {0.0, 1 / (1 - 0.2)}
    assert abs((out == 0).mean() - 0.2) < 0.005
    assert abs(out.mean() - 1) < 0.01


def test_a_sequence_longer_than_the_context_is_refused():
    config = ModelConfig(**TINY, context_length=8)
    decoder = Decoder(config, init_parameters(config, 0), F)
    with pytest.raises(ValueError, match="9 tokens exceed context_length 8"):
        decoder.logits(random_ids(config, 1, 9))


def test_targets_that_are_not_scored_leave_loss_and_gradients_alone():
    config = ModelConfig(**TINY)
    ids = random_ids(config, 1, 9)
    targets = ids[:, 1:].copy()
    targets[0, 4:] = -1
    decoder = Decoder(config, lively(config), F)
    whole = decoder.loss(ids[:, :-1], targets).item()
    part = decoder.loss(ids[:, :4], ids[:, 1:5]).item()
    np.testing.assert_allclose(whole, part, rtol=1e-13)
    parameters = {n: Tensor(p, requires_grad=True) for n, p in lively(config).items()}
    nothing = Decoder(config, parameters, F).loss(ids[:, :-1], np.full_like(targets, -1))
    assert nothing.item() == 0.0
    nothing.backward()
    assert all(np.abs(p.grad).max() == 0.0 for p in parameters.values())


# --- norm placement ------------------------------------------------------------------------


def _block_output_rows(config):
    parameters = init_parameters(config, 0, np.float64)  # gains 1, biases 0
    decoder = Decoder(config, parameters, F)
    x = F.tensor(np.random.default_rng(0).normal(3.0, 5.0, (2, 7, config.d_model)))
    return decoder._block(1, x, None).data.reshape(-1, config.d_model)


def test_post_norm_blocks_hand_on_normalised_rows():
    config = ModelConfig(**TINY, norm="layernorm", norm_placement="post", bias=True)
    rows = _block_output_rows(config)
    np.testing.assert_allclose(rows.mean(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(rows.std(axis=1), 1.0, atol=1e-3)
    rms = _block_output_rows(ModelConfig(**TINY, norm="rmsnorm", norm_placement="post"))
    np.testing.assert_allclose((rms**2).mean(axis=1), 1.0, atol=1e-3)


def test_pre_norm_blocks_add_to_an_unnormalised_stream():
    rows = _block_output_rows(ModelConfig(**TINY, norm="layernorm", bias=True))
    assert abs(rows.mean() - 3.0) < 1.0
    assert abs(rows.std() - 5.0) < 1.0


def test_attention_is_all_you_need_is_post_norm_and_has_no_final_norm():
    config = ModelConfig.from_preset("attention-is-all-you-need", vocab_size=50)
    c = config
    assert (c.d_model, c.n_layers, c.n_heads, c.d_ff) == (512, 6, 8, 2048)
    assert (c.norm, c.norm_placement, c.activation) == ("layernorm", "post", "relu")
    assert (c.positional, c.scale_embeddings) == ("sinusoidal", True)
    assert "norm.weight" not in parameter_shapes(config)
    pre = config.model_copy(update={"norm_placement": "pre"})
    assert count_parameters(pre) - count_parameters(config) == 2 * 512


# --- parameters ---------------------------------------------------------------------------


@pytest.mark.parametrize("config", FAMILY, ids=label)
def test_shapes_and_count_are_those_of_the_model(config):
    shapes, parameters = parameter_shapes(config), init_parameters(config, 0)
    assert {n: p.shape for n, p in parameters.items()} == shapes
    assert count_parameters(config) == sum(p.size for p in parameters.values())
    assert all(p.dtype == np.float32 for p in parameters.values())
    # Every one of them is used: it gets a gradient.
    leaves = {n: Tensor(p, requires_grad=True) for n, p in lively(config).items()}
    ids = random_ids(config, 2, 7)
    Decoder(config, leaves, F).loss(ids[:, :-1], ids[:, 1:]).backward()
    for name, p in leaves.items():
        assert p.grad is not None, name
        assert np.abs(p.grad).max() > 0, name


@pytest.mark.parametrize("tied", [True, False])
def test_a_tied_head_is_the_embedding_itself(tied):
    config = ModelConfig(**TINY, tied_embeddings=tied)
    parameters = {n: Tensor(p, requires_grad=True) for n, p in lively(config).items()}
    decoder = Decoder(config, parameters, F)
    assert ("head.weight" in parameters) != tied
    assert (decoder._head() is decoder.parameters["embed.weight"]) == tied
    ids = np.array([[0, 1, 2]])
    decoder.loss(ids, ids).backward()
    unread = np.abs(parameters["embed.weight"].grad[3:]).max()
    assert (unread > 0) == tied  # through the head only


def test_an_odd_head_is_fine_without_rope():
    config = ModelConfig(**TINY | {"d_model": 15, "n_heads": 5}, positional="alibi")
    assert logits(config, init_parameters(config, 0), random_ids(config, 1, 4)).shape == (1, 4, 17)
