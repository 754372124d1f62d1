"""The numpy decoder against the training engine's, and the generation loop around it."""

import itertools
import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from paperkiln.engine import ops
from paperkiln.errors import PaperkilnError
from paperkiln.formats.gguf_writer import write_gguf
from paperkiln.formats.hf import export_hf, model_tensors
from paperkiln.formats.safetensors_io import save_tensors
from paperkiln.infer.cache import KVCache, window
from paperkiln.infer.decode import (
    LARGEST_CACHE,
    LONGEST_CONTEXT,
    PREFILL_CHUNK,
    NumpyDecoder,
)  # fmt: skip
from paperkiln.infer.generate import Context, TextStream, complete, generate
from paperkiln.infer.load import load_run
from paperkiln.infer.sampling import GREEDY, Sampling
from paperkiln.models.config import PRESETS, ModelConfig, parameter_shapes
from paperkiln.models.decoder import Decoder
from paperkiln.train.tokenizers import Tokenizer, byte_tokenizer, train_word

BASE = {"d_model": 32, "n_layers": 2, "n_heads": 4, "d_ff": 48, "context_length": 40}
TOLERANCE = 2e-5  # float32, logits up to 5
BYTES = byte_tokenizer()


def random_parameters(config, seed=0, scale=0.15):
    """Large enough weights that norms, biases and every nonlinearity leave their mark."""
    rng = np.random.default_rng(seed)
    params = {}
    for name, shape in parameter_shapes(config).items():
        values = scale * rng.standard_normal(shape)
        is_gain = "norm" in name and name.endswith("weight")
        params[name] = (values + is_gain).astype(np.float32)
    return params


def make(vocab_size=259, seed=0, **fields):
    config = ModelConfig(**(BASE | {"vocab_size": vocab_size} | fields))
    params = random_parameters(config, seed)
    return config, params, NumpyDecoder(config, params)


def test_a_context_that_no_memory_holds():
    """A file may claim 2^24 positions; tables for all of them took 5 GB."""
    _, _, decoder = make(context_length=1 << 24)
    assert decoder.config.context_length == LONGEST_CONTEXT
    assert len(decoder.weights.rotations) == LONGEST_CONTEXT
    assert decoder.prefill([1, 2], decoder.new_cache()).shape == (259,)


def test_a_cache_that_no_memory_holds():
    """Keys and values of a context may take more than the weights: 8.6 GB in Llama 3.2 1B."""
    _, _, decoder = make(d_model=512, n_heads=8, n_layers=8, context_length=1 << 18)
    cache = decoder.new_cache()
    taken = sum(layer.nbytes for layer in cache.layers)
    assert LARGEST_CACHE * 0.99 < taken <= LARGEST_CACHE
    assert cache.context_length == decoder.config.context_length < LONGEST_CONTEXT


def reference_logits(config, params, ids):
    return Decoder(config, params, ops).logits(np.asarray(ids)[None]).data[0]


def check_parity(vocab_size=61, **fields):
    config, params, model = make(vocab_size, **fields)
    ids = np.random.default_rng(1).integers(0, vocab_size, config.context_length)
    expected = reference_logits(config, params, ids)
    cache = model.new_cache()
    whole = model.prefill(ids, cache, all_logits=True)
    assert whole.dtype == np.float32
    assert whole.shape == expected.shape
    np.testing.assert_allclose(whole, expected, rtol=0, atol=TOLERANCE)
    cache.clear()
    first, second = ids[:7], ids[7:12]  # a prefill, one that continues it, then token by token
    stepped = [model.prefill(first, cache), model.prefill(second, cache)]
    stepped += [model.step(int(token), cache) for token in ids[12:]]
    np.testing.assert_allclose(stepped, expected[[6, *range(11, len(ids))]], rtol=0, atol=TOLERANCE)


NORMS = list(itertools.product(["rmsnorm", "layernorm"], ["pre", "post"], [False, True]))
SHAPES = [
    {},
    {"n_kv_heads": 2, "tied_embeddings": False, "positional": "rope"},
    {"n_kv_heads": 1, "attention": "swa", "window": 8, "sinks": 2, "positional": "none"},
    {"n_heads": 6, "head_dim": 8, "positional": "alibi", "attention": "swa", "window": 5},
]
ACTIVATIONS = ["relu", "gelu", "gelu_tanh", "silu", "squared_relu", "swiglu", "geglu", "reglu"]
POSITIONS = [
    {"positional": "learned"}, {"positional": "sinusoidal"}, {"positional": "none"},
    {"positional": "alibi"}, {"positional": "rope", "rope_theta": 500.0},
    {"positional": "rope", "rope_layout": "interleaved"},
]  # fmt: skip


class TestParity:
    @pytest.mark.parametrize(("norm", "placement", "bias"), NORMS)
    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    def test_norms_and_attention(self, norm, placement, bias, shape):
        check_parity(norm=norm, norm_placement=placement, bias=bias, **shape)

    @pytest.mark.parametrize("activation", ACTIVATIONS)
    @pytest.mark.parametrize("bias", [False, True])
    def test_activations(self, activation, bias):
        check_parity(activation=activation, bias=bias)

    @pytest.mark.parametrize("position", POSITIONS, ids=str)
    @pytest.mark.parametrize("norm", ["rmsnorm", "layernorm"])
    @pytest.mark.parametrize("scale_embeddings", [False, True])
    def test_positions(self, position, norm, scale_embeddings):
        check_parity(norm=norm, bias=True, scale_embeddings=scale_embeddings, **position)

    @pytest.mark.parametrize("preset", PRESETS)
    def test_presets(self, preset):
        small = {"d_model": 48, "n_layers": 2, "d_ff": None, "context_length": 24}
        config = ModelConfig(preset=preset, vocab_size=61, **small)
        params = random_parameters(config)
        ids = np.arange(24) * 7 % 61
        logits = NumpyDecoder(config, params).prefill(ids, KVCache(config), all_logits=True)
        expected = reference_logits(config, params, ids)
        np.testing.assert_allclose(logits, expected, rtol=0, atol=TOLERANCE)

    def test_long_prompts_are_read_in_chunks(self):
        check_parity(context_length=PREFILL_CHUNK + 30, d_model=16, n_layers=1, positional="alibi")

    def test_extreme_activations_stay_finite(self):
        config, params, _ = make(activation="swiglu")
        params["blocks.0.ffn.in.weight"] *= 1e4
        params["blocks.0.attn.qkv.weight"] *= 1e3
        with np.errstate(all="raise", under="ignore"):
            logits = NumpyDecoder(config, params).step(5, KVCache(config))
        assert np.isfinite(logits).all()


class TestCache:
    def test_sequences_do_not_share_anything(self):
        _, _, model = make()
        a, b = model.new_cache(), model.new_cache()
        model.prefill([9, 8, 7], b)
        alone = [model.step(t, a) for t in (5, 6, 7)]
        c = model.new_cache()
        mixed = []
        for t in (5, 6, 7):
            mixed.append(model.step(t, c))
            model.step(t + 1, b)
        np.testing.assert_array_equal(alone, mixed)

    def test_params_and_returned_logits_are_never_written_to(self):
        _, params, model = make(positional="learned", norm="layernorm", bias=True)
        before = {name: p.copy() for name, p in params.items()}
        cache = model.new_cache()
        first = model.step(1, cache)
        kept = first.copy()
        model.step(1, cache)
        model.prefill([1, 2], cache)
        np.testing.assert_array_equal(first, kept)
        for name, p in params.items():
            np.testing.assert_array_equal(p, before[name], err_msg=name)

    def test_full_cache_and_empty_prompt_are_refused(self):
        config, _, model = make()
        cache = model.new_cache()
        model.prefill(list(range(config.context_length)), cache)
        with pytest.raises(ValueError, match="context_length"):
            model.step(1, cache)
        assert cache.length == config.context_length
        with pytest.raises(ValueError, match="at least one token"):
            model.prefill([], cache)

    def test_missing_or_misshapen_parameters_are_named(self):
        config, params, _ = make()
        wrong = params | {"norm.weight": np.ones(3, np.float32)}
        with pytest.raises(ValueError, match=r"norm\.weight"):
            NumpyDecoder(config, wrong)
        del params["blocks.1.attn.out.weight"]
        with pytest.raises(ValueError, match=r"blocks\.1\.attn\.out\.weight.*missing"):
            NumpyDecoder(config, params)


class TestWindow:
    @given(st.integers(2, 30), st.integers(1, 100))
    def test_rule(self, context_length, n):
        tokens = list(range(n))
        kept = window(tokens, context_length)
        assert kept == tokens[-len(kept) :]
        assert len(kept) == (n if n <= context_length else context_length // 2)

    def test_refresh_is_rare(self, monkeypatch):
        config, _, model = make()
        calls = []
        prefill = model.prefill
        monkeypatch.setattr(
            model, "prefill", lambda ids, c: calls.append(len(ids)) or prefill(ids, c)
        )
        context = Context(model)
        for token in range(4 * config.context_length):
            context.read([token])
        # 40 tokens, then a refresh with 20 every 21 - 1 + ... tokens: never one a token.
        assert set(calls) == {config.context_length // 2}
        assert len(calls) <= 4 * config.context_length // (config.context_length // 2)


FLAVOURS = [
    {"positional": "rope", "n_kv_heads": 2},
    {"positional": "learned", "norm": "layernorm", "activation": "gelu", "bias": True},
    {"positional": "alibi", "attention": "swa", "window": 6, "sinks": 1, "norm_placement": "post"},
    {"positional": "sinusoidal", "context_length": 3},
]
SAMPLINGS = [Sampling(1.0, 0, seed=3), Sampling(0.9, 20, 0.9, 0.01, 1.2, seed=4)]


class TestGenerate:
    @pytest.mark.parametrize("fields", FLAVOURS, ids=str)
    @pytest.mark.parametrize("sampling", SAMPLINGS, ids=["plain", "everything"])
    def test_cached_text_is_uncached_text_past_the_window(self, fields, sampling):
        config, _, model = make(**fields)
        options = {"max_new_tokens": 130, "sampling": sampling, "end_ids": ()}
        cached = complete(model, BYTES, "Hello", **options)
        uncached = complete(model, BYTES, "Hello", cache=False, **options)
        assert len(cached.ids) == 130 > 3 * config.context_length
        assert cached.ids == uncached.ids
        assert cached.text == uncached.text
        assert len(set(cached.ids)) > 20, "a text of many tokens, or the test proves nothing"

    def test_greedy_equals_the_training_engine_token_by_token(self):
        config, params, model = make(tied_embeddings=False, n_kv_heads=2)
        ids = BYTES.encode("To be")
        result = complete(model, BYTES, "To be", max_new_tokens=30, sampling=GREEDY, end_ids=())
        for token in result.ids:
            assert token == reference_logits(config, params, ids)[-1].argmax()
            ids.append(token)
        assert len(set(result.ids)) > 3

    def test_same_seed_same_text_other_seed_other_text(self):
        _, _, model = make()
        texts = [
            complete(model, BYTES, "a", sampling=Sampling(1.0, seed=s)).text for s in (1, 1, 2)
        ]
        assert texts[0] == texts[1] != texts[2]

    def test_padding_ids_are_never_sampled(self):  # vocabulary padded, temperature 5
        text = "some words are here and more words are there"
        tokenizer = train_word(text, 40)
        padded = tokenizer.vocab_size + 60
        _, _, model = make(padded)
        options = {"sampling": Sampling(5.0, 0, seed=1), "max_new_tokens": 400, "end_ids": ()}
        result = complete(model, tokenizer, text, **options)
        assert max(result.ids) == tokenizer.vocab_size - 1

    def test_long_prompt_is_cut_with_a_count(self):
        config, _, model = make()
        result = complete(model, BYTES, "x" * 100, max_new_tokens=3)
        assert (result.n_prompt_tokens, result.n_prompt_tokens_cut) == (config.context_length, 60)
        assert complete(model, BYTES, "x" * 40, max_new_tokens=3).n_prompt_tokens_cut == 0
        end = complete(model, BYTES, "x" * 60 + "y" * 40, max_new_tokens=20, sampling=GREEDY)
        assert end.ids == complete(model, BYTES, "y" * 40, max_new_tokens=20, sampling=GREEDY).ids

    def test_empty_prompt_starts_from_end_of_text(self):
        _, _, model = make()
        options = {"max_new_tokens": 5, "sampling": GREEDY}
        *_, last = generate(model, BYTES, [BYTES.eos_id], **options)
        assert complete(model, BYTES, "", **options).ids == last.result.ids

    @pytest.mark.parametrize("n", [0, 1, 7])
    def test_length(self, n):
        _, _, model = make()
        result = complete(model, BYTES, "abc", max_new_tokens=n, end_ids=())
        assert len(result.ids) == n
        assert result.stop_reason == "length"
        assert result.tokens_per_second > 0 or n == 0

    def test_small_models_take_one_blas_thread_and_give_it_back(self, monkeypatch):
        def blas_threads():
            return [i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"]

        _, _, model = make()
        before, during, step = blas_threads(), [], model.step
        watch = lambda *args: during.append(blas_threads()) or step(*args)  # noqa: E731
        monkeypatch.setattr(model, "step", watch)
        complete(model, BYTES, "a", max_new_tokens=2, end_ids=())
        assert set(during[0]) == {1}
        assert blas_threads() == before

    def test_broken_weights_are_reported(self):
        config, params, _ = make()
        params["norm.weight"][0] = np.nan
        with pytest.raises(PaperkilnError, match="not finite"):
            complete(NumpyDecoder(config, params), BYTES, "abc")


class Script:
    """A model that says given tokens, whatever it reads."""

    def __init__(self, ids, vocab_size=259):
        self.config = ModelConfig(context_length=512, vocab_size=vocab_size)
        self.n_weights, self._ids, self._at = 0, ids, -1

    def new_cache(self):
        return KVCache(self.config.model_copy(update={"n_layers": 1}))

    def step(self, token, cache):
        self._at += 1
        return np.eye(self.config.vocab_size, dtype=np.float32)[self._ids[self._at]]

    def prefill(self, ids, cache):
        return self.step(ids[-1], cache)


def say(text, stop=(), **options):
    script = Script([*BYTES.encode(text), BYTES.eos_id])
    options = {"max_new_tokens": 300, "sampling": GREEDY, "stop": stop} | options
    pieces = list(generate(script, BYTES, [5], **options))
    assert all(piece.result is None for piece in pieces[:-1])
    assert "".join(piece.text for piece in pieces) == pieces[-1].result.text
    return [piece.text for piece in pieces if piece.text], pieces[-1].result


class TestStream:
    @pytest.mark.parametrize("end", [300, 260])
    def test_ends_at_every_end_of_the_tokenizer(self, end):
        bytes_of = BYTES.tokens
        more = [f"<|{i}|>" for i in range(len(bytes_of), 301)]
        specials = BYTES.specials | {name: i for i, name in enumerate(more, len(bytes_of))}
        tokenizer = Tokenizer("byte", bytes_of + more, (), specials, ends=[300, 260])
        hello = tokenizer.encode("hello")
        script = Script([*hello, end, *hello], vocab_size=301)
        result = complete(script, tokenizer, "x", sampling=GREEDY, max_new_tokens=9)
        assert (result.text, result.stop_reason) == ("hello", "eos")

    def test_ends_at_end_of_text(self):
        pieces, result = say("hello")
        assert pieces == list("hello")
        assert (result.text, result.stop_reason) == ("hello", "eos")
        assert BYTES.eos_id not in result.ids

    def test_characters_arrive_whole(self):
        text = "né 漢字 🦙🏽!"
        pieces, result = say(text)
        assert pieces == list(text)
        assert result.text == text

    def test_limit_inside_a_character_shows_one_replacement(self):
        _, result = say("a🦙", max_new_tokens=3)
        assert (result.text, result.stop_reason) == ("a\ufffd", "length")

    @pytest.mark.parametrize(
        ("text", "stop", "expected", "reason"),
        [
            ("one\n\ntwo", ["\n\n"], "one", "stop"),
            ("one\ntwo", ["\n\n"], "one\ntwo", "eos"),
            ("one\n", ["\n\n"], "one\n", "eos"),  # held back, then released
            ("aaab", ["aab"], "a", "stop"),
            ("xabcy", ["abc", "b"], "xa", "stop"),  # the first to be complete
            ("xabc", ["bc", "abc"], "x", "stop"),  # complete together: the longer
            ("stop", ["stop"], "", "stop"),
            ("ü🦙ü", ["🦙"], "ü", "stop"),
        ],
    )
    def test_stop_strings(self, text, stop, expected, reason):
        pieces, result = say(text, stop)
        assert (result.text, result.stop_reason) == (expected, reason)
        assert "".join(pieces) == expected

    @settings(max_examples=200)
    @given(
        st.text("ab🦙\n", max_size=12),
        st.lists(st.text("ab🦙\n", min_size=1, max_size=3), max_size=3),
        st.integers(1, 4),
    )
    def test_pieces_never_leak_a_stop_string(self, text, stop, size):
        class Chunks:  # a tokenizer whose token n is the n-th run of `size` bytes
            raw = text.encode()

            def decode_bytes(self, ids):
                return self.raw[ids[0] * size : (ids[0] + 1) * size]

        ends = [(text.find(s) + len(s), text.find(s)) for s in stop if s in text]
        expected = text[: min(ends)[1]] if ends else text
        stream, shown = TextStream(Chunks(), stop), ""
        for token in range(-(-len(Chunks.raw) // size)):
            shown += stream.push(token)
            assert expected.startswith(shown)
            if stream.stopped:
                break
        assert shown + stream.flush() == expected
        assert stream.stopped == bool(ends)

    def test_empty_stop_string_is_refused(self):
        with pytest.raises(PaperkilnError, match="empty"):
            say("a", [""])


class TestLoad:
    def run_folder(self, path):
        config, params, _ = make(positional="rope")
        path.mkdir()
        spec = {"version": 1, "arch": config.model_dump()}
        (path / "spec.json").write_text(json.dumps(spec))
        BYTES.save(path / "tokenizer.json")
        save_tensors(path / "model.safetensors", model_tensors(config, params))
        return config, params

    def test_run_folder(self, tmp_path):
        config, params = self.run_folder(tmp_path / "run")
        model = load_run(tmp_path / "run")
        assert model.config == config
        assert model.spec["arch"]["d_model"] == 32
        assert model.tokenizer.tokens == BYTES.tokens
        for name, value in params.items():
            np.testing.assert_array_equal(model.params[name], value, err_msg=name)
        assert model.decoder is model.decoder

    def test_gguf_and_hugging_face_folder_say_the_same(self, tmp_path):
        config, params = self.run_folder(tmp_path / "run")
        write_gguf(tmp_path / "model.gguf", config, params, BYTES)
        export_hf(tmp_path / "hf", config, params, BYTES)
        texts = []
        for name in ("run", "model.gguf", "hf"):
            model = load_run(tmp_path / name)
            texts.append(complete(model.decoder, model.tokenizer, "a", sampling=GREEDY).text)
        assert texts[0] == texts[1] == texts[2] != ""

    @pytest.mark.parametrize("name", ["spec.json", "tokenizer.json", "model.safetensors"])
    def test_unfinished_run(self, tmp_path, name):
        self.run_folder(tmp_path / "run")
        os.remove(tmp_path / "run" / name)
        with pytest.raises(PaperkilnError, match=f"no {name}"):
            load_run(tmp_path / "run")

    def test_run_of_another_version(self, tmp_path):
        self.run_folder(tmp_path / "run")
        spec = tmp_path / "run" / "spec.json"
        spec.write_text(spec.read_text().replace('"version": 1', '"version": 99'))
        with pytest.raises(PaperkilnError, match=r"version.*99"):
            load_run(tmp_path / "run")

    def test_tokenizer_of_another_model(self, tmp_path):
        self.run_folder(tmp_path / "run")
        tokens = [*BYTES.tokens, *(f"w{i}" for i in range(50))]
        Tokenizer("bpe", tokens).save(tmp_path / "run" / "tokenizer.json")
        with pytest.raises(PaperkilnError, match="do not belong together"):
            load_run(tmp_path / "run")

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("missing", None, "no such run folder"),
            ("model.safetensors", b"\0" * 64, "not a GGUF file; give its folder"),
            ("photo.gguf", b"\x89PNG....", "not a GGUF file"),
            ("empty.gguf", b"", "not a GGUF file"),
            ("short.gguf", b"GGUF\x03\0", "short.gguf"),
        ],
    )
    def test_other_files(self, tmp_path, name, content, message):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(PaperkilnError, match=message):
            load_run(tmp_path / name)

    def test_some_other_folder(self, tmp_path):
        with pytest.raises(PaperkilnError, match=r"no spec\.json"):
            load_run(tmp_path)
