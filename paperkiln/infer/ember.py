"""The host of ember, the second inference engine (web/engine/ember.c): standard library only.

The engine is a WebAssembly module; who runs it, `wasmtime` here or the browser there, is hidden
behind `Machine`. This file reads the header of the GGUF file that lies in the engine's memory,
tells the engine what the model is, and turns the tokens it chooses into text.

Python is in the loop once per batch of tokens, not once per token.
"""

from __future__ import annotations

import array
import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from random import Random
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from paperkiln.errors import PaperkilnError
from paperkiln.formats.gguf_reader import GgufFile, read_beginning
from paperkiln.formats.gguf_tokenizer import read_tokenizer
from paperkiln.infer.ember_plan import (
    MAX_CHOICES,
    make_plan,
    memory_needed,
    pack_config,
)  # fmt: skip
from paperkiln.infer.ember_positions import frequencies, rope_divisors, slopes
from paperkiln.infer.sampling import GREEDY, Sampling
from paperkiln.infer.stream import Piece, Result, StopReason, TextStream
from paperkiln.train.tokenizers import Tokenizer

MEMORY_LIMIT = (1 << 32) - (1 << 16)  # what 32-bit WebAssembly can address
BATCH_SECONDS = 0.025  # of one batch of tokens: text moves 40 times a second
READ_CHUNK = 64  # prompt tokens between two moments to cancel

# Why ember_generate returned, in ember.c's order.
_GOING_ON, _AT_END, _CONTEXT_FULL, _NOT_FINITE, _NOTHING_LEFT, _NOTHING_READ = range(6)
_IS_END = b"\1"
_HOST_PART = 19 * 4  # bytes of Config that the host writes


class Machine(Protocol):
    """An instance of the engine: its exports and its memory."""

    def call(self, name: str, *arguments: int) -> int:
        """Call an export; addresses come back unsigned."""

    def read(self, address: int, n: int) -> bytes:
        """Return n bytes of its memory."""

    def write(self, address: int, data: bytes) -> None:
        """Put bytes into its memory."""


class PageMachine:
    """A Machine over the `Ember` of web/engine/ember.js, under Pyodide."""

    def __init__(self, ember: Any) -> None:
        from pyodide.ffi import to_js

        self._ember, self._to_js = ember, to_js
        self.call = ember.call

    def read(self, address: int, n: int) -> bytes:
        """Return n bytes of its memory."""
        return self._ember.read(address, n).to_bytes()

    def write(self, address: int, data: bytes) -> None:
        """Put bytes into its memory."""
        self._ember.write(address, self._to_js(data))


class _Addresses(NamedTuple):
    """The tables in the engine's memory, as ember.c's Config lists them."""

    weights: int
    frequencies: int
    slopes: int
    uniforms: int
    marks: int
    tokens: int
    logits: int


class Ember:
    """A model in the engine, ready to read and choose tokens. One sequence at a time."""

    def __init__(
        self,
        machine: Machine,
        file: int,
        size: int,
        *,
        where: str = "the GGUF file",
        context_length: int | None = None,
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        """Open the model whose file of `size` bytes the caller wrote at address `file`.

        The context may be shortened: to `context_length`, and to what the memory allows. Raises
        PaperkilnError for a file that is damaged, foreign or too large.
        """
        self._machine = machine
        header = read_header(machine, file, size, where)
        plan = make_plan(header, where)
        self.metadata = header.metadata
        n_choices = plan.shape.vocab_size
        tokens = header.metadata.get("tokenizer.ggml.tokens")
        if isinstance(tokens, list) and len(tokens) > n_choices:
            raise PaperkilnError(
                f"{where}: its tokenizer has {len(tokens)} tokens, its model only {n_choices}; "
                "export it again"
            )
        self.tokenizer: Tokenizer | None = read_tokenizer(header.metadata)
        if self.tokenizer:
            n_choices = self.tokenizer.vocab_size  # further rows are padding
        self.n_choices = n_choices
        wanted = min(context_length or plan.shape.context_length, plan.shape.context_length)
        self.shape = replace(plan.shape, context_length=max(2, wanted))
        self._config = machine.call("ember_config")
        self._allocate(memory_limit - file - size, where)
        place = lambda offset: offset and file + offset  # noqa: E731 (0 stays: not there)
        table = [n for a in plan.affines for n in (place(a.weight), a.kind, place(a.bias))]
        machine.write(self.addresses.weights, struct.pack(f"<{len(table)}I", *table))
        divisors = rope_divisors(plan, lambda at, n: machine.read(file + at, n), where)
        angles, per_head = frequencies(self.shape, divisors), slopes(self.shape)
        machine.write(self.addresses.frequencies, struct.pack(f"<{len(angles)}d", *angles))
        machine.write(self.addresses.slopes, struct.pack(f"<{len(per_head)}f", *per_head))
        self.tokens: list[int] = []  # the context; the last may be chosen but not yet read
        self._n_read = 0
        self._end_ids: frozenset[int] = frozenset()
        self._sampling: Sampling | None = None

    def _allocate(self, room: int, where: str) -> None:
        """Give the engine the shape, its context halved until everything fits."""
        while True:
            needed = memory_needed(self.shape, self.n_choices)
            self._machine.write(self._config, pack_config(self.shape, self.n_choices))
            if needed <= room and self._machine.call("ember_allocate"):
                break
            if self.shape.context_length < 128:
                raise PaperkilnError(
                    f"{where}: the model needs {needed // 1_000_000 + 1:,} MB beside its file, "
                    "more than there is; close other pages or take a smaller model"
                )
            self.shape = replace(self.shape, context_length=self.shape.context_length // 2)
        found = self._machine.read(self._config + _HOST_PART, 4 * len(_Addresses._fields))
        self.addresses = _Addresses(*struct.unpack("<7I", found))

    # ---- Reading

    def keep_common(self, ids: Sequence[int]) -> int:
        """Forget what differs from `ids`; return how many of them are read already, not all."""
        n, limit = 0, min(self._n_read, len(ids) - 1)
        while n < limit and self.tokens[n] == ids[n]:
            n += 1
        self._machine.call("ember_rewind", n)
        del self.tokens[n:]
        self._n_read = n
        return n

    def read(self, ids: Sequence[int]) -> None:
        """Read tokens after those of the context. Raises ValueError when they do not fit."""
        address = self.addresses.tokens + 4 * self._n_read
        room = self.shape.context_length - self._n_read
        if not 0 < len(ids) <= room or not all(0 <= i < self.shape.vocab_size for i in ids):
            raise ValueError(f"{len(ids)} ids, with room for {room}, or one is not a token")
        self._machine.write(address, struct.pack(f"<{len(ids)}i", *ids))
        self._machine.call("ember_read", len(ids))
        self.tokens[self._n_read :] = ids
        self._n_read += len(ids)

    def logits(self) -> list[float]:
        """Return the logits (n_choices,) after the last token that was read."""
        return array.array(
            "f", self._machine.read(self.addresses.logits, 4 * self.n_choices)
        ).tolist()

    def warm_up(self) -> None:
        """Read and choose some tokens for nothing, so that the browser compiles the engine well.

        A browser runs new code slowly at first; do this while nobody waits. Costs some 100 passes.
        """
        self.prepare(GREEDY, ())
        n = min(self.shape.context_length, 64)
        for _ in range(2):
            self.keep_common([-1])
            self.read([0] * n)
            self.choose(n, Random(0))
        self.keep_common([-1])

    # ---- Choosing

    def prepare(self, sampling: Sampling, end_ids: Collection[int]) -> None:
        """Tell the engine how to choose, and which tokens end the text."""
        s = sampling
        self._sampling = s
        penalty, top_k = s.repetition_penalty, min(int(s.top_k), (1 << 31) - 1)
        self._machine.write(
            self._machine.call("ember_sampling"),
            struct.pack("<4di", s.temperature, s.top_p, s.min_p, penalty, top_k),
        )
        for ids, mark in ((self._end_ids, b"\0"), (end_ids, _IS_END)):
            for i in ids:
                if 0 <= i < self.shape.vocab_size:
                    self._machine.write(self.addresses.marks + i, mark)
        self._end_ids = frozenset(end_ids)

    def choose(self, n: int, rng: Random) -> tuple[list[int], int]:
        """Choose up to n tokens; return them, and why it stopped (0: it did not).

        The token that ends the text is not among them. As many numbers are drawn from `rng` as
        tokens were chosen by chance, that one included. Raises PaperkilnError when the logits are
        not finite.
        """
        n = min(n, MAX_CHOICES)
        before = None
        if not self._sampling.greedy:
            before = rng.getstate()
            uniforms = [rng.random() for _ in range(n)]
            self._machine.write(self.addresses.uniforms, struct.pack(f"<{n}d", *uniforms))
        at = len(self.tokens)
        n_chosen = self._machine.call("ember_generate", n)
        self._n_read, stopped = struct.unpack(
            "<2i", self._machine.read(self._config + _HOST_PART + 28, 8)
        )
        if stopped in (_NOT_FINITE, _NOTHING_LEFT):
            raise PaperkilnError("the model's logits are not finite: its weights are damaged")
        if stopped == _NOTHING_READ:
            raise ValueError("no token has been read")
        chosen = struct.unpack(
            f"<{n_chosen}i", self._machine.read(self.addresses.tokens + 4 * at, 4 * n_chosen)
        )
        self.tokens += chosen
        n_drawn = n_chosen + (stopped == _AT_END)
        if before and n_drawn < n:
            draw_again(rng, before, n_drawn)
        return list(chosen), stopped


def draw_again(rng: Random, state: Any, n: int) -> None:
    """Set a generator to where it is n draws after `state`."""
    rng.setstate(state)
    for _ in range(n):
        rng.random()


def read_header(machine: Machine, file: int, size: int, where: str) -> GgufFile:
    """Read the header of a GGUF file in the engine's memory, copying little more than it.

    Raises PaperkilnError as `formats.gguf_reader.read_header` does.
    """
    n = min(size, 1 << 20)
    while (header := read_beginning(machine.read(file, n), size, where)) is None:
        n = min(size, 4 * n)
    return header


def load(machine: Machine, data: bytes, **options: Any) -> Ember:
    """Put a file's bytes into the engine and open it; options are those of `Ember`."""
    where = options.get("where", "the GGUF file")
    file = machine.call("ember_reserve", len(data)) if len(data) < MEMORY_LIMIT else 0
    if not file:
        raise PaperkilnError(
            f"{where}: no room for its {len(data) // 1_000_000 + 1:,} MB; take a smaller model"
        )
    machine.write(file, data)
    return Ember(machine, file, len(data), **options)


class _Batch(NamedTuple):
    """Tokens chosen in one call, perhaps none; `ended` when the next one would end the text."""

    tokens: list[int]
    state: Any  # of the random numbers, before
    ended: bool


def _batches(model: Ember, prompt: list[int], limit: int, rng: Random) -> Iterator[_Batch]:
    """Read the prompt and choose up to `limit` tokens, moving the window when it is full."""
    new, n_left, size = prompt, limit, 1
    while n_left > 0:
        start = model.keep_common(new) if new else 0
        for i in range(start, len(new), READ_CHUNK):
            model.read(new[i : i + READ_CHUNK])
            yield _Batch([], None, False)
        state, began = rng.getstate(), perf_counter()
        chosen, stopped = model.choose(min(size, n_left), rng)
        if perf_counter() - began < BATCH_SECONDS / 2:
            size = min(2 * size, MAX_CHOICES)
        # Past the context, the newest half of it is read again (infer/cache.py).
        new = model.tokens[-(model.shape.context_length // 2) :] if stopped == _CONTEXT_FULL else []
        n_left -= len(chosen)
        yield _Batch(chosen, state, stopped == _AT_END)
        if stopped == _AT_END:
            return


def generate(
    model: Ember,
    prompt_ids: Sequence[int],
    *,
    max_new_tokens: int = 200,
    sampling: Sampling | None = None,
    stop: Sequence[str] = (),
    end_ids: Collection[int] | None = None,
    rng: Random | None = None,
) -> Iterator[Piece]:
    """Yield what follows the prompt; `infer/generate.py` says how, and the text is the same.

    What the context shares with the prompt is not read again. A piece may be empty: each is a
    moment to cancel in, by closing the generator, and one comes after every 64 tokens of prompt
    and about every 25 ms of new text.
    """
    sampling, tokenizer = sampling or Sampling(), model.tokenizer
    if tokenizer is None:
        raise PaperkilnError("the file's tokenizer is of a kind that paperkiln does not have")
    rng = rng or Random(sampling.seed)
    model.prepare(sampling, tokenizer.end_ids if end_ids is None else end_ids)
    prompt = tokenizer.begin(prompt_ids)
    new = prompt[-model.shape.context_length :]
    stream = TextStream(tokenizer, stop)
    ids: list[int] = []
    texts: list[str] = []
    stop_reason: StopReason = "length"
    started = perf_counter()
    for batch in _batches(model, new, max_new_tokens, rng):
        text = ""
        for n_used, token in enumerate(batch.tokens, 1):
            ids.append(token)
            text += stream.push(token)
            if stream.stopped:
                if not sampling.greedy:  # what came after it was never chosen
                    draw_again(rng, batch.state, n_used)
                break
        texts.append(text)
        if stream.stopped or batch.ended:
            stop_reason = "stop" if stream.stopped else "eos"
        paused = perf_counter()
        yield Piece(text)
        started += perf_counter() - paused  # the reader's time is not ours
        if stream.stopped:
            break
    rest = stream.flush()
    speed = len(ids) / max(perf_counter() - started, 1e-9)
    text = "".join([*texts, rest])
    n_cut = len(prompt) - len(new)
    yield Piece(rest, Result(text, ids, stop_reason, len(new), n_cut, speed))
