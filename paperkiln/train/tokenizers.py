"""Text to ids and back: byte-level BPE (`bpe`, `byte`) and a closed list of whole words (`word`).

Encoding and decoding need the standard library only, so that the same code runs in the browser;
training a BPE imports the `tokenizers` library. On disk a tokenizer is a Hugging Face
tokenizer.json, and its ids are those which that library gives for the same file.

    bpe   <|endoftext|> <|user|> <|assistant|>, the 256 bytes, then one token per merge
    byte  the same without merges: 259 ids, and nothing can be unknown
    word  the three specials, <unk>, then " whole" words and symbols with their leading space
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from pathlib import Path
from typing import Any

from paperkiln.errors import PaperkilnError
from paperkiln.formats.atomic import new_file
from paperkiln.train.pretokenize import CUTS, blocks, bpe_pieces, byte_alphabet, word_pieces
from paperkiln.train.tokenizer_json import UNKNOWN, Kind, read_begins, read_layout, write_layout

END_OF_TEXT, USER, ASSISTANT = "<|endoftext|>", "<|user|>", "<|assistant|>"
SPECIALS = (END_OF_TEXT, USER, ASSISTANT)

# How other people's files call the token that ends a text, tried in this order.
_END_NAMES = (END_OF_TEXT, "</s>", "<|end_of_text|>", "<eos>", "<|im_end|>")
_CACHED_PIECES = 1 << 16
_CACHED_PIECE_LENGTH = 64


class Tokenizer:
    """A vocabulary with the rules that turn text into its ids; immutable, safe to share."""

    begin_ids: tuple[int, ...] = ()  # what every text of other people's models begins with
    chat_template: str = ""  # Jinja, as the model's file has it

    def __init__(
        self,
        kind: Kind,
        tokens: Sequence[str],
        merges: Iterable[tuple[str, str]] = (),
        specials: dict[str, int] | None = None,
        ends: Sequence[int] = (),
        *,
        cut: str = "gpt-2",
        user_defined: dict[str, int] | None = None,
    ) -> None:
        """`tokens` in id order, `merges` by rank; a `bpe` without merges is a `byte`.

        A text ends at any of `ends`, the main one first; ids beyond the tokens are passed over,
        and without one the special with a usual name is taken. `cut` names how a BPE cuts its
        text (pretokenize.CUTS); `user_defined` tokens are found in any text before that.
        Raises PaperkilnError where tokens, merges and specials do not fit together.
        """
        self.tokens = list(tokens)
        self.merges = [tuple(pair) for pair in merges]
        self.kind: Kind = "byte" if kind == "bpe" and not self.merges else kind
        if specials is None:
            specials = {name: i for i, name in enumerate(SPECIALS)}
        self.specials, self.cut = specials, cut
        self.user_defined = user_defined or {}
        self._ids = {token: i for i, token in enumerate(self.tokens)}
        known = [i for i in ends if 0 <= i < len(self.tokens)]
        named = [self.specials[name] for name in _END_NAMES if name in self.specials]
        self.end_ids = tuple(known or named[:1])
        self._check()
        self.eos_id = self.end_ids[0]
        self._special_pattern = any_of(self.specials)
        self._user_pattern = any_of(self.user_defined)
        self._bytes = self._token_bytes()
        self._cache: dict[str, list[int]] = {}
        if kind != "word":
            self._alphabet = byte_alphabet()
            self._byte_ids = [self._ids[self._alphabet[byte]] for byte in range(256)]
            self._ranks, self._merged_ids = self._read_merges()

    def __repr__(self) -> str:
        return f"Tokenizer({self.kind}, vocab_size={self.vocab_size}, merges={len(self.merges)})"

    @property
    def vocab_size(self) -> int:
        """Number of ids, specials included."""
        return len(self.tokens)

    def encode(self, text: str, *, specials: bool = False) -> list[int]:
        """Ids of `text`; its literal special strings become their ids only if `specials`.

        Never raises: `word` gives <unk> for what it does not know, and a lone surrogate, which
        UTF-8 cannot hold, is read as "?".
        """
        if not specials:
            return self._encode_text(text)
        ids: list[int] = []
        for i, part in enumerate(self.split_at_specials(text)):
            ids += [self.specials[part]] if i % 2 else self._encode_text(part)
        return ids

    def split_at_specials(self, text: str) -> list[str]:
        """Ordinary text and special strings in turn, ordinary text first and last."""
        return self._special_pattern.split(text)

    def decode(self, ids: Iterable[int], *, keep_specials: bool = False) -> str:
        """Text of `ids`, bytes that are no UTF-8 shown as U+FFFD; specials are left out or kept.

        Raises PaperkilnError for an id outside the vocabulary.
        """
        return self.decode_bytes(ids, keep_specials=keep_specials).decode("utf-8", "replace")

    def decode_bytes(self, ids: Iterable[int], *, keep_specials: bool = False) -> bytes:
        """UTF-8 bytes of `ids`, for streaming: one token may end inside a character."""
        ids = list(ids)
        for i in ids:
            if not 0 <= i < self.vocab_size:
                raise PaperkilnError(f"token id {i} is outside the vocabulary of {self.vocab_size}")
        if not keep_specials:
            hidden = set(self.specials.values())
            ids = [i for i in ids if i not in hidden]
        return b"".join([self._bytes[i] for i in ids])

    @property
    def bos_id(self) -> int:
        """What other programs are told begins a text: the end of one, where nothing of its own."""
        return (*self.begin_ids, self.eos_id)[0]

    def begin(self, ids: Iterable[int]) -> list[int]:
        """A prompt as a model is to read it: never empty, and with what a text begins with."""
        ids, first = list(ids), list(self.begin_ids)
        if ids[: len(first)] != first:
            ids = first + ids
        return ids or [self.eos_id]

    def unknown_pieces(self, text: str) -> list[str]:
        """The pieces of `text` that become <unk>, to be shown; only `word` has any."""
        if self.kind != "word":
            return []
        return [piece for piece in word_pieces(text) if piece not in self._ids]

    def to_json(self) -> dict[str, Any]:
        """The contents of a Hugging Face tokenizer.json that gives the same ids."""
        return write_layout(
            self.kind, self.tokens, self.merges, self.specials, self.cut, self.user_defined,
            self.begin_ids,
        )  # fmt: skip

    @classmethod
    def from_json(cls, data: Any, ends: Sequence[int] = ()) -> Tokenizer:
        """Read the contents of a tokenizer.json: ours, or a byte-level BPE such as GPT-2's.

        Which token ends a text the file does not say, `ends` may. Raises PaperkilnError naming
        what is missing in it or what is not supported.
        """
        *layout, cut, user_defined = read_layout(data)
        tokenizer = cls(*layout, ends, cut=cut, user_defined=user_defined)
        begins = [tokenizer.specials.get(name) for name in read_begins(data)]
        tokenizer.begin_ids = tuple(i for i in begins if i is not None)
        return tokenizer

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write tokenizer.json, whole or not at all. Raises PaperkilnError."""
        with new_file(path) as aside:
            aside.write_text(json.dumps(self.to_json(), ensure_ascii=False), encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str], ends: Sequence[int] = ()) -> Tokenizer:
        """Read a tokenizer.json. Raises PaperkilnError naming the file and what is wrong in it."""
        try:
            return cls.from_json(json.loads(Path(path).read_text(encoding="utf-8")), ends)
        except OSError as error:
            raise PaperkilnError(f"cannot read {path}: {error.strerror or error}") from error
        except (ValueError, RecursionError) as error:
            raise PaperkilnError(f"{path} is not JSON: {error}") from error
        except PaperkilnError as error:
            raise PaperkilnError(f"{path}: {error}") from error

    def _encode_text(self, text: str) -> list[int]:
        if not self.user_defined:
            return self._encode_ordinary(text)
        ids: list[int] = []
        for i, part in enumerate(self._user_pattern.split(text)):
            ids += [self.user_defined[part]] if i % 2 else self._encode_ordinary(part)
        return ids

    def _encode_ordinary(self, text: str) -> list[int]:
        if self.kind == "word":
            unknown = self._ids[UNKNOWN]
            return [self._ids.get(piece, unknown) for piece in word_pieces(text)]
        ids: list[int] = []
        cached = self._cache.get
        for piece in bpe_pieces(text, self.cut):
            ids += cached(piece) or self._encode_piece(piece)
        return ids

    def _encode_piece(self, piece: str) -> list[int]:
        data = piece.encode("utf-8", "replace")
        if CUTS[self.cut].ignores_merges:
            spelled = "".join([self._alphabet[byte] for byte in data])
            if spelled in self._ids:
                return self._remembered(piece, [self._ids[spelled]])
        byte_ids = [self._byte_ids[byte] for byte in data]
        return self._remembered(piece, _apply_merges(byte_ids, self._ranks, self._merged_ids))

    def _remembered(self, piece: str, ids: list[int]) -> list[int]:
        if len(piece) <= _CACHED_PIECE_LENGTH:
            if len(self._cache) >= _CACHED_PIECES:
                self._cache.clear()
            self._cache[piece] = ids
        return ids

    def _token_bytes(self) -> list[bytes]:
        if self.kind == "word":
            return [token.encode("utf-8", "replace") for token in self.tokens]
        byte_of = {character: byte for byte, character in byte_alphabet().items()}
        whole = {*self.specials.values(), *self.user_defined.values()}
        try:
            return [
                token.encode() if i in whole else bytes([byte_of[c] for c in token])
                for i, token in enumerate(self.tokens)
            ]
        except KeyError as error:
            raise PaperkilnError(
                f"a token holds {error.args[0]!r}, which stands for no byte: not a byte-level BPE"
            ) from error

    def _check(self) -> None:
        if len(self._ids) != len(self.tokens):
            twice = next(token for token, n in Counter(self.tokens).items() if n > 1)
            raise PaperkilnError(f"token {twice!r} has two ids")
        for name, i in (self.specials | self.user_defined).items():
            if self._ids.get(name) != i or not name:
                raise PaperkilnError(f"special token {name!r} is not token {i} of the vocabulary")
        if not self.end_ids:
            raise PaperkilnError(f"no end-of-text token among its added tokens ({END_OF_TEXT})")
        if self.kind == "word":
            if UNKNOWN not in self._ids:
                raise PaperkilnError(f"a word vocabulary needs {UNKNOWN}")
            return
        missing = [c for c in byte_alphabet().values() if c not in self._ids]
        if missing:
            raise PaperkilnError(
                f"{len(missing)} of the 256 byte tokens are missing, first {missing[0]!r}: "
                "not a byte-level BPE that can encode every text"
            )

    def _read_merges(self) -> tuple[dict[tuple[int, int], int], list[int]]:
        """Return each pair's rank, and by rank what the pair becomes, all as ids."""
        ids, ranks, merged = self._ids, {}, []
        try:
            for rank, (left, right) in enumerate(self.merges):  # a quarter of a million in Llama 3
                ranks[ids[left], ids[right]] = rank
                merged.append(ids[left + right])
        except KeyError as error:
            raise PaperkilnError(
                f"merge {left!r} + {right!r}: {error.args[0]!r} is not a token"
            ) from error
        return ranks, merged


def any_of(names: Iterable[str]) -> re.Pattern[str]:
    """A pattern that captures any of the names, the longest first; nothing where there is none."""
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})")


def byte_tokenizer() -> Tokenizer:
    """The BPE without merges: 3 specials and 256 bytes."""
    return Tokenizer("byte", [*SPECIALS, *byte_alphabet().values()])


def train_bpe(text: str | Iterable[str], vocab_size: int) -> Tokenizer:
    """Learn a byte-level BPE of at most `vocab_size` ids; a corpus may yield fewer merges.

    A pair must occur twice to be merged, and merges never cross a special string. The same text
    gives the same tokenizer. Parts of an iterable count as separate texts.
    """
    if vocab_size < len(SPECIALS) + 256:
        raise PaperkilnError(
            f"a bpe tokenizer needs vocab_size >= 259 (3 specials, 256 bytes), not {vocab_size}"
        )
    import tokenizers as hf

    learner = hf.Tokenizer(hf.models.BPE())
    learner.pre_tokenizer = hf.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = hf.trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        special_tokens=list(SPECIALS),
        initial_alphabet=hf.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    learner.train_from_iterator(_ordinary_blocks(text), trainer)
    return Tokenizer.from_json(json.loads(learner.to_str()))


def train_word(text: str | Iterable[str], vocab_size: int) -> Tokenizer:
    """Take the most frequent words and symbols, ties in code point order, up to `vocab_size` ids.

    A word is a run of letters, digits and apostrophes, a symbol any other character; each carries
    the one space before it, other whitespace stands alone. So decoding known text restores it.
    """
    first = [*SPECIALS, UNKNOWN]
    if vocab_size <= len(first):
        raise PaperkilnError(f"a word tokenizer needs vocab_size > {len(first)}, not {vocab_size}")
    counts: Counter[str] = Counter()
    for block in _ordinary_blocks(text):
        counts.update(word_pieces(block))
    by_frequency = sorted(counts, key=lambda piece: (-counts[piece], piece))
    return Tokenizer("word", first + by_frequency[: vocab_size - len(first)])


def _apply_merges(
    ids: list[int], ranks: dict[tuple[int, int], int], merged_ids: list[int]
) -> list[int]:
    # The lowest rank first, the leftmost on ties, from a heap over a linked list: O(n log n), so
    # that a megabyte without a space costs seconds, not hours. A swallowed id becomes -1, and so is
    # the one past the end, which is also "the one before the first" at index -1: none has a rank.
    n = len(ids)
    ids = [*ids, -1]
    before, after = list(range(-1, n)), [*range(1, n + 1), n]
    heap = [
        (rank, i) for i, pair in enumerate(pairwise(ids)) if (rank := ranks.get(pair)) is not None
    ]
    heapify(heap)
    while heap:
        rank, i = heappop(heap)
        j = after[i]
        if ranks.get((ids[i], ids[j])) != rank:
            continue  # one of the two was merged since
        ids[i], ids[j] = merged_ids[rank], -1
        after[i] = after[j]
        before[after[i]] = i
        for k in (before[i], i):
            rank_of_new = ranks.get((ids[k], ids[after[k]]))
            if rank_of_new is not None:
                heappush(heap, (rank_of_new, k))
    return [i for i in ids if i >= 0]


def _ordinary_blocks(text: str | Iterable[str]) -> Iterator[str]:
    special = re.compile("|".join(map(re.escape, SPECIALS)))
    for part in [text] if isinstance(text, str) else text:
        for block in blocks(part):
            yield from special.split(block)
