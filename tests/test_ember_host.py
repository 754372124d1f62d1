"""ember's host: the text it streams, the edges of the context and of memory, and hostile files."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import gguf
import numpy as np
import pytest
from ember_host import (
    ENGINE,
    GOLDEN,
    GOLDEN_GGUF,
    Wasmtime,
    ember_tokens,
    modules,
    numpy_tokens,
    open_in_ember,
    write_model,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paperkiln.errors import PaperkilnError
from paperkiln.formats.gguf_reader import read_header
from paperkiln.formats.gguf_tokenizer import read_tokenizer
from paperkiln.infer import ember as host
from paperkiln.infer import generate as numpy_host
from paperkiln.infer.chat_template import encode_chat
from paperkiln.infer.ember import Ember
from paperkiln.infer.ember_plan import make_plan, memory_needed
from paperkiln.infer.load import LoadedModel, load_run
from paperkiln.infer.sampling import GREEDY, Sampling

__all__ = ["modules"]  # a fixture

ROOT = Path(__file__).parents[1]
TINY: dict[str, Any] = {"d_model": 16, "n_layers": 1, "n_heads": 2, "d_ff": 32}


@pytest.fixture(scope="module")
def golden(modules: list[Path]) -> Ember:
    return open_in_ember(modules[0], GOLDEN_GGUF)


@pytest.fixture(scope="module")
def golden_numpy() -> LoadedModel:
    return load_run(GOLDEN_GGUF)


@pytest.fixture(scope="module")
def prompt(golden: Ember) -> list[int]:
    return golden.tokenizer.encode(GOLDEN["prompt"])


SAMPLINGS = [
    Sampling(seed=1), Sampling(top_k=0, seed=2), Sampling(top_k=0, top_p=0.9, seed=3),
    Sampling(temperature=1.3, top_k=50, top_p=0.95, min_p=0.02, seed=4),
    Sampling(temperature=0.0, repetition_penalty=1.3), Sampling(top_k=1, seed=5),
    Sampling(temperature=2.5, top_k=0, min_p=0.1, repetition_penalty=1.2, seed=6),
    Sampling(temperature=1e-3, top_k=3, seed=7), Sampling(top_k=100_000, top_p=1e-9, seed=8),
    Sampling(temperature=1e-300, seed=9), Sampling(repetition_penalty=0.5, top_k=5, seed=10),
    Sampling(temperature=5, top_k=0, repetition_penalty=3.0, top_p=0.5, min_p=1.0, seed=11),
]  # fmt: skip


class TestTheText:
    @pytest.mark.parametrize("sampling", SAMPLINGS, ids=range(len(SAMPLINGS)))
    def test_a_seed_gives_pythons_choice(
        self, sampling: Sampling, golden: Ember, golden_numpy: LoadedModel, prompt: list[int]
    ) -> None:
        expected = numpy_tokens(golden_numpy, prompt, 300, sampling)  # the window moves
        assert ember_tokens(golden, prompt, 300, sampling) == expected

    def test_equal_logits_rank_by_id(self, modules: list[Path], tmp_path: Path) -> None:
        path = write_model(tmp_path, **TINY, context_length=16, std=0.0)
        model = open_in_ember(modules[0], path)
        assert len(set(open_logits(model))) == 1
        assert ember_tokens(model, [5], 3, GREEDY) == [0, 0, 0]
        sampling = Sampling(temperature=1, top_k=7, seed=3)
        expected = numpy_tokens(load_run(path), [5], 30, sampling)
        assert ember_tokens(model, [5], 30, sampling) == expected
        assert set(expected) == set(range(7))

    @given(
        text=st.text(st.sampled_from("Good morning! 日é🦙\n-"), max_size=150),
        n=st.integers(0, 60),
        stop=st.lists(st.sampled_from([".", "you", "\n-", "I am", "zzz", "é"]), max_size=2),
        sampling=st.builds(
            Sampling, temperature=st.sampled_from([0, 0.7, 1.5]),
            top_k=st.sampled_from([0, 1, 5, 40]), top_p=st.sampled_from([1.0, 0.8]),
            repetition_penalty=st.sampled_from([1.0, 1.3]), seed=st.integers(0, 99),
        ),
        end=st.sampled_from([None, (15,), (3, 16, 201), (10**9, -1)]),
    )  # fmt: skip
    @settings(max_examples=60)
    def test_it_is_the_numpy_decoders(
        self, golden: Ember, golden_numpy: LoadedModel, text: str, n: int, stop: list[str],
        sampling: Sampling, end: tuple[int, ...] | None,
    ) -> None:  # fmt: skip
        ids = golden.tokenizer.encode(text)
        options = {"max_new_tokens": n, "stop": stop, "sampling": sampling, "end_ids": end}
        theirs, ours = Random(5), Random(5)
        expected = list(
            numpy_host.generate(
                golden_numpy.decoder, golden_numpy.tokenizer, ids, rng=theirs, **options
            )
        )
        found = list(host.generate(golden, ids, rng=ours, **options))
        assert "".join(p.text for p in found) == "".join(p.text for p in expected)
        assert vars(replace_speed(found[-1].result)) == vars(replace_speed(expected[-1].result))
        assert ours.getstate() == theirs.getstate()  # the next reply starts from the same numbers

    def test_characters_come_whole(self, modules: list[Path], tmp_path: Path) -> None:
        model = open_in_ember(modules[0], write_model(tmp_path, **TINY, context_length=64))
        sampling = Sampling(temperature=3, top_k=0, seed=1)
        pieces = list(host.generate(model, [40], max_new_tokens=300, sampling=sampling))
        ids = pieces[-1].result.ids
        assert "".join(piece.text for piece in pieces) == model.tokenizer.decode(ids)

    def test_a_chat_reads_only_what_is_new(
        self, modules: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = open_in_ember(modules[0], write_model(tmp_path, **TINY, context_length=128))
        read, n_read = model.read, []
        monkeypatch.setattr(model, "read", lambda ids: (n_read.append(len(ids)), read(ids)))
        turns = [("user", "Hello there")]
        for text in ("How are you?", "Fine."):
            ids = encode_chat(model.tokenizer, turns, add_generation_prompt=True)
            *_, last = host.generate(model, ids, max_new_tokens=6, sampling=GREEDY, end_ids=())
            turns += [("assistant", last.result.text), ("user", text)]
        assert n_read[0] == len("Hello there") + 2
        assert n_read[1] < len("How are you?") + 12
        # Asked once more, only the last token is read again.
        n_read.clear()
        *_, again = host.generate(model, ids, max_new_tokens=6, sampling=GREEDY, end_ids=())
        assert n_read == [1]
        assert again.result.ids == last.result.ids

    def test_cancelled_between_two_pieces(
        self, golden: Ember, golden_numpy: LoadedModel, prompt: list[int]
    ) -> None:
        for n_pieces in range(1, 7):
            pieces = host.generate(golden, prompt * 8, max_new_tokens=200, sampling=GREEDY)
            for _ in range(n_pieces):
                next(pieces)
            pieces.close()
            expected = numpy_tokens(golden_numpy, prompt, 20, GREEDY)
            assert ember_tokens(golden, prompt, 20, GREEDY) == expected

    def test_warming_up_leaves_no_trace(
        self, golden: Ember, golden_numpy: LoadedModel, prompt: list[int]
    ) -> None:
        golden.warm_up()
        assert golden.tokens == []
        sampling = Sampling(seed=4)
        expected = numpy_tokens(golden_numpy, prompt, 20, sampling)
        assert ember_tokens(golden, prompt, 20, sampling) == expected

    def test_a_long_prompt_leaves_moments_to_cancel_in(
        self, modules: list[Path], tmp_path: Path
    ) -> None:
        model = open_in_ember(modules[0], write_model(tmp_path, **TINY, context_length=1000))
        pieces = list(host.generate(model, [7] * 900, max_new_tokens=1, sampling=GREEDY))
        assert len(pieces) >= 900 / host.READ_CHUNK


def open_logits(model: Ember) -> list[float]:
    model.read([1])
    return model.logits()


def replace_speed(result: Any) -> Any:
    return replace(result, tokens_per_second=0)


class TestTheContext:
    @pytest.mark.parametrize("context_length", [2, 3, 31, 32, 33, 64, 65])
    def test_its_edges(self, context_length: int, modules: list[Path], tmp_path: Path) -> None:
        path = write_model(tmp_path, **TINY, context_length=context_length)
        theirs, ours = load_run(path), open_in_ember(modules[0], path)
        for n in (0, 1, context_length - 1, context_length, context_length + 1, 200):
            ids = Random(n).choices(range(259), k=n)
            for n_new in (1, 2, 70):
                expected = numpy_tokens(theirs, ids, n_new, GREEDY)
                assert ember_tokens(ours, ids, n_new, GREEDY) == expected

    def test_what_does_not_fit_is_refused(self, golden: Ember) -> None:
        golden.keep_common([-1])
        for ids in ([], [0] * 129, [-1], [512], [10**9]):
            with pytest.raises(ValueError, match="room for"):
                golden.read(ids)
        golden.read([0] * 128)
        with pytest.raises(ValueError, match="room for"):
            golden.read([0])

    def test_the_engine_refuses_too(self, modules: list[Path]) -> None:
        machine = Wasmtime(modules[0])
        assert machine.call("ember_read", 1) == 0
        assert machine.call("ember_generate", 1) == 0
        model = host.load(machine, GOLDEN_GGUF.read_bytes())
        for n in (-1, 0, 129, 1 << 30):
            assert machine.call("ember_read", n) == 0
        for token in (-1, 512, 1 << 30):
            machine.write(model.addresses.tokens, struct.pack("<i", token))
            assert machine.call("ember_read", 1) == 0
        machine.call("ember_rewind", 5)
        machine.call("ember_rewind", -1)
        with pytest.raises(ValueError, match="no token has been read"):
            (model.prepare(GREEDY, ()), model.choose(1, Random()))

    def test_one_engine_opens_one_model_after_another(
        self, modules: list[Path], tmp_path: Path, golden_numpy: LoadedModel
    ) -> None:
        machine = Wasmtime(modules[0])
        small = write_model(tmp_path, **TINY, context_length=2000, positional="alibi")
        for path in (small, GOLDEN_GGUF, small, GOLDEN_GGUF):
            model = host.load(machine, path.read_bytes())
            found = ember_tokens(model, [15, 35], 20, Sampling(seed=1))
        assert found == numpy_tokens(golden_numpy, [15, 35], 20, Sampling(seed=1))


class TestMemory:
    def test_the_estimate_covers_what_is_taken(self, modules: list[Path], tmp_path: Path) -> None:
        for fields in ({}, {"context_length": 5000}, {"n_layers": 40}, {"d_ff": 5000}):
            path = write_model(tmp_path, **TINY | fields)
            data = path.read_bytes()
            shape = make_plan(read_header(data), "x").shape
            needed = memory_needed(shape, 259)
            limit = (1 << 17) + len(data) + needed + (1 << 16)  # stack, file, rest, page
            model = host.load(Wasmtime(modules[0], limit), data)
            assert model.shape.context_length == shape.context_length

    def test_a_context_is_shortened_to_what_fits(self, modules: list[Path], tmp_path: Path) -> None:
        path = write_model(tmp_path, **TINY, context_length=1 << 20)
        data = path.read_bytes()
        model = host.load(Wasmtime(modules[0], 8 << 20), data)
        assert 1000 < model.shape.context_length < 1 << 17
        assert len(ember_tokens(model, [5] * 1500, 5, GREEDY)) == 5
        assert host.load(Wasmtime(modules[0]), data, context_length=99).shape.context_length == 99
        limited = host.load(Wasmtime(modules[0]), data, memory_limit=8 << 20)
        assert limited.shape.context_length == model.shape.context_length

    def test_a_file_that_does_not_fit_is_one_line(self, modules: list[Path]) -> None:
        data = GOLDEN_GGUF.read_bytes()
        with pytest.raises(PaperkilnError, match="smaller model"):
            host.load(Wasmtime(modules[0], 1 << 20), data)
        with pytest.raises(PaperkilnError, match="MB beside its file"):
            host.load(Wasmtime(modules[0], len(data) + (1 << 17)), data)


# ---- Hostile files


@lru_cache
def golden_bytes() -> tuple[bytes, int]:
    """The golden file and where its tensor data begins."""
    data = GOLDEN_GGUF.read_bytes()
    return data, read_header(data).data_offset


def run_or_refuse(modules: list[Path], data: bytes) -> str | None:
    """Open and run a file: it works, or it is refused in one line; nothing traps."""
    try:
        model = open_in_ember(modules[0], data)
        list(host.generate(model, [0, 1, 2], max_new_tokens=5, sampling=Sampling(seed=1)))
    except PaperkilnError as error:
        line = str(error)
        assert line
        assert "\n" not in line
        assert len(line) < 400
        return line
    return None


def rewritten(changes: dict[str, Any], rename: dict[str, str] | None = None) -> bytes:
    """The golden file's header with other values; keys given None are left out."""
    header = read_header(GOLDEN_GGUF)
    data = GOLDEN_GGUF.read_bytes()
    writer = gguf.GGUFWriter(None, changes.pop("general.architecture", "llama"))
    for key, value in {**header.metadata, **changes}.items():
        if value is None or key == "general.architecture":
            continue
        match value:
            case bool():
                writer.add_bool(key, value)
            case int():
                (writer.add_uint64 if value >= 0 else writer.add_int64)(key, value)
            case float():
                writer.add_float64(key, value)
            case str():
                writer.add_string(key, value)
            case _:
                writer.add_array(key, value)
    for info in header.tensors.values():
        raw = np.frombuffer(data[info.offset : info.offset + info.n_bytes], np.float32)
        writer.add_tensor((rename or {}).get(info.name, info.name), raw.reshape(info.shape))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.gguf"
        writer.write_header_to_file(path)
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path.read_bytes()


NUMBERS = [
    -1, 0, 1, 2, 3, 5, 6, 95, 97, 127, 128, 1 << 16, (1 << 16) + 1, 1 << 20, (1 << 31) - 1,
    1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, 0.0, -1.0, 1e-5, 1e30, float("nan"),
    float("inf"), True, "text", "", ["a", "b"], [1, 2, 3], None,
]  # fmt: skip
KEYS = [
    "llama.context_length", "llama.embedding_length", "llama.block_count",
    "llama.feed_forward_length", "llama.attention.head_count", "llama.attention.head_count_kv",
    "llama.attention.key_length", "llama.attention.layer_norm_rms_epsilon",
    "llama.rope.dimension_count", "llama.rope.freq_base", "llama.rope.scaling.type",
    "tokenizer.ggml.eos_token_id", "tokenizer.ggml.tokens", "tokenizer.ggml.token_type",
    "tokenizer.ggml.merges", "tokenizer.ggml.pre", "tokenizer.ggml.model", "general.architecture",
]  # fmt: skip


class TestHostileFiles:
    def test_the_file_as_it_is_runs(self, modules: list[Path]) -> None:
        assert run_or_refuse(modules, rewritten({})) is None

    @given(st.dictionaries(st.sampled_from(KEYS[:-1]), st.sampled_from(NUMBERS), max_size=3))
    @settings(max_examples=150)
    @example({"llama.context_length": (1 << 24)})
    @example({"llama.attention.head_count": 1024, "llama.attention.key_length": 4096})
    def test_any_metadata(self, modules: list[Path], changes: dict[str, Any]) -> None:
        run_or_refuse(modules, rewritten(dict(changes)))

    @given(st.data())
    @settings(max_examples=200)
    def test_any_bytes_of_the_header(self, modules: list[Path], data: st.DataObject) -> None:
        whole, end = golden_bytes()
        changed = bytearray(whole)
        for _ in range(data.draw(st.integers(1, 4))):
            changed[data.draw(st.integers(0, end - 1))] = data.draw(st.integers(0, 255))
        run_or_refuse(modules, bytes(changed))

    @given(st.data())
    @settings(max_examples=60)
    def test_cut_anywhere(self, modules: list[Path], data: st.DataObject) -> None:
        whole, end = golden_bytes()
        n = data.draw(st.integers(0, end + 100) | st.integers(0, len(whole) - 1))
        assert run_or_refuse(modules, whole[:n])

    @given(st.binary(max_size=200))
    @settings(max_examples=60)
    def test_any_bytes(self, modules: list[Path], data: bytes) -> None:
        assert run_or_refuse(modules, data)
        assert run_or_refuse(modules, b"GGUF\3\0\0\0" + data)

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"general.architecture": "mamba"}, "'mamba' is not one of llama, gpt2, paperkiln"),
            ({"llama.block_count": None}, "llama.block_count is missing"),
            ({"llama.block_count": 2}, "belongs to no layer"),
            ({"llama.block_count": 4}, "'blk.3.attn_norm.weight' is missing"),
            (
                {"llama.feed_forward_length": 255},
                "shape (256, 96), and its metadata says (255, 96)",
            ),
            ({"llama.attention.head_count": 0}, "not a whole number from 1 to 1024"),
            ({"llama.attention.head_count_kv": 4}, "not a divisor of 6"),
            ({"llama.rope.scaling.type": "yarn"}, "scaled by 'yarn'"),
            ({"llama.rope.dimension_count": 8}, "rotated in part"),
            ({"llama.attention.layer_norm_rms_epsilon": float("nan")}, "not a number from"),
            ({"tokenizer.ggml.model": "llama"}, "tokenizer is of a kind"),
        ],
    )
    def test_what_is_said(self, modules: list[Path], changes: dict[str, Any], said: str) -> None:
        assert said in run_or_refuse(modules, rewritten(changes))

    def test_an_architecture_that_is_no_name(self) -> None:
        header = read_header(GOLDEN_GGUF)
        metadata = header.metadata | {"general.architecture": ["llama"]}
        with pytest.raises(PaperkilnError, match="is not one of llama, gpt2, paperkiln"):
            make_plan(header._replace(metadata=metadata), "x")

    def test_a_tokenizer_of_many_control_tokens(self, modules: list[Path]) -> None:
        """A million took a minute: they are one pattern that every text is searched for."""
        header = read_header(GOLDEN_GGUF)
        many = [f"<{i}>" for i in range(20_000)]
        tokens = header.metadata["tokenizer.ggml.tokens"] + many
        types = header.metadata["tokenizer.ggml.token_type"] + [3] * len(many)
        changes = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types}
        assert "has 20512 tokens" in run_or_refuse(modules, rewritten(dict(changes)))
        assert read_tokenizer(header.metadata) is not None
        assert read_tokenizer(header.metadata | changes) is None

    def test_a_choice_from_the_future(self, modules: list[Path], tmp_path: Path) -> None:
        data = write_model(tmp_path, **TINY, attention="swa").read_bytes()
        newer = data.replace(b"paperkiln.window", b"paperkiln.widnow")
        assert "does not know; use a newer paperkiln" in run_or_refuse(modules, newer)
        assert "not one of exact, swa" in run_or_refuse(
            modules, re.sub(rb"(attention.{12})swa", rb"\1xyz", data, flags=re.DOTALL)
        )

    def test_a_type_it_does_not_read(self, modules: list[Path]) -> None:
        data, _ = golden_bytes()
        name = b"blk.0.attn_q.weight"
        at = data.index(name) + len(name) + 4 + 16
        assert data[at : at + 4] == bytes(4)
        changed = data[:at] + struct.pack("<I", 25) + data[at + 4 :]
        assert "is i16, and this engine reads f32, f16, bf16" in run_or_refuse(modules, changed)

    @pytest.mark.parametrize("bad", [float("nan"), float("inf")])
    def test_weights_that_are_no_numbers(self, bad: float, modules: list[Path]) -> None:
        data = bytearray(GOLDEN_GGUF.read_bytes())
        at = read_header(bytes(data)).tensors["output_norm.weight"].offset
        data[at : at + 4] = struct.pack("<f", bad)
        assert "logits are not finite" in run_or_refuse(modules, bytes(data))

    def test_a_header_longer_than_the_first_megabyte(
        self, modules: list[Path], golden_numpy: LoadedModel, prompt: list[int]
    ) -> None:
        data = rewritten({"general.description": "x" * 3_000_000})
        model = open_in_ember(modules[0], data)
        expected = numpy_tokens(golden_numpy, prompt, 10, GREEDY)
        assert ember_tokens(model, prompt, 10, GREEDY) == expected


# ---- The browser's side


def test_the_host_imports_in_a_bare_interpreter() -> None:
    program = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
before = set(sys.modules)
import paperkiln.infer.ember
foreign = {{m.split(".")[0] for m in sys.modules}} - set(sys.stdlib_module_names) - before
assert foreign <= {{"paperkiln"}}, foreign
"""
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True, timeout=60)


def test_javascript_chooses_a_build_and_moves_bytes(modules: list[Path]) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    program = f"""
import {{ chooseBuild, Ember }} from {str(ENGINE / "ember.js")!r};
import {{ readFileSync }} from "node:fs";
if (!chooseBuild().startsWith("ember")) throw new Error("no build");
const ember = await Ember.fromBytes(readFileSync({str(modules[0])!r}));
const file = new Uint8Array(5_000_000).map((_, i) => i * 7);
const told = [];
await ember.receive(new Blob([file]).stream(), file.length, (n) => told.push(n));
if (Buffer.compare(ember.read(ember.file, file.length), file)) throw new Error("other bytes");
if (told.at(-1) !== file.length || ember.file % 64) throw new Error("not told");
let refused = 0;
for (const size of [file.length - 1, file.length + 1])
  await ember.receive(new Blob([file]).stream(), size).catch(() => refused++);
await ember.receive(new Blob([]).stream(), 2 ** 32).catch(() => refused++);
if (refused !== 3) throw new Error("not refused");
"""
    command = [node, "--input-type=module", "-e", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_ids_are_those_of_the_tokenizers_library(golden: Ember) -> None:
    hf = pytest.importorskip("tokenizers")
    theirs = hf.Tokenizer.from_str(json.dumps(golden.tokenizer.to_json()))
    text = "Good morning! It's 3 o'clock,\n\n  isn't it? 日本語 🦙 <|user|> \t x1y2\r\n" * 3
    assert golden.tokenizer.encode(text, specials=True) == theirs.encode(text).ids
