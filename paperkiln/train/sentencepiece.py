"""The tokenizer of Llama 2 and its kin: a SentencePiece BPE, read from a file, to ids and back.

A space is written "▁" and one stands before every text. Characters are then joined pair by pair,
always into the known piece of the best score, the leftmost on ties (Kudo & Richardson 2018;
Sennrich et al. 2016). What no piece covers becomes UTF-8 bytes, <0xXX>. Where SentencePiece and
llama.cpp differ, as in the space after a special token, ids are those of llama.cpp.

Standard library only: the browser runs this file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from typing import Any

from paperkiln.errors import PaperkilnError
from paperkiln.train.tokenizers import Tokenizer, any_of

SPACE = "▁"  # U+2581
_UNKNOWN_SHOWN = " ⁇ "  # as SentencePiece shows it
_BYTE_NAME = re.compile(r"<0x[0-9A-F]{2}>")


class TokenType(IntEnum):
    """What a token is, as GGUF numbers it."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4  # found in any text before all else
    UNUSED = 5
    BYTE = 6


class SentencePiece(Tokenizer):
    """A vocabulary of scored pieces. Control tokens are its specials: no text becomes one."""

    kind = "sentencepiece"

    def __init__(
        self,
        tokens: Sequence[str],
        scores: Sequence[float],
        types: Sequence[int],
        *,
        begin_id: int | None = None,
        ends: Sequence[int] = (),
        space_first: bool = True,
    ) -> None:
        """Tokens in id order, each with its score and type; a text begins with `begin_id`.

        Raises PaperkilnError where they do not fit together or cannot encode every text.
        """
        if not len(tokens) == len(scores) == len(types):
            raise PaperkilnError("tokens, scores and types differ in number")
        if any(math.isnan(score) for score in scores):
            raise PaperkilnError("a score is not a number")
        self.tokens, self.scores, self.types = list(tokens), list(scores), list(types)
        self.merges, self.space_first = [], space_first
        self.begin_ids = () if begin_id is None else (begin_id,)
        self.end_ids = tuple(i for i in ends if 0 <= i < len(tokens))
        if not self.end_ids or not all(0 <= i < len(tokens) for i in self.begin_ids):
            raise PaperkilnError("no token is named that begins or ends a text")
        self.eos_id = self.end_ids[0]
        of_type = lambda *kinds: {t: i for i, t in enumerate(tokens) if types[i] in kinds and t}  # noqa: E731
        self.specials = of_type(TokenType.CONTROL, TokenType.UNKNOWN)
        self.user_defined = of_type(TokenType.USER_DEFINED)
        self._special_pattern = any_of(self.specials)
        self._user_pattern = any_of(self.user_defined)
        # What merging finds: the negated score, smallest first, and the id.
        self._pieces = {t: (-scores[i], i) for t, i in of_type(TokenType.NORMAL).items()}
        self._byte_ids = _byte_ids(tokens, types)
        self._unknown = next((i for i, t in enumerate(types) if t == TokenType.UNKNOWN), None)
        if self._byte_ids is None and self._unknown is None:
            raise PaperkilnError("it has neither byte tokens nor one for the unknown")
        # Where no piece goes on after its first word, words can be encoded one by one.
        words = all(SPACE not in piece.lstrip(SPACE) for piece in self._pieces)
        self._words = re.compile(f"{SPACE}*[^{SPACE}]+|{SPACE}+" if words else "(?s:.+)")
        self._bytes = [self._bytes_of(i) for i in range(len(tokens))]
        self._cache: dict[str, list[int]] = {}

    def decode(self, ids: Iterable[int], *, keep_specials: bool = False) -> str:
        """Text of `ids`, read as a whole: the space that stands before every text is left out.

        Raises PaperkilnError for an id outside the vocabulary.
        """
        text = super().decode(ids, keep_specials=keep_specials)
        return text.removeprefix(" ") if self.space_first else text

    def to_json(self) -> dict[str, Any]:
        """Raise PaperkilnError: such a tokenizer is kept in GGUF only."""
        raise PaperkilnError("a SentencePiece tokenizer can be exported as GGUF only")

    def _encode_ordinary(self, text: str) -> list[int]:
        ids: list[int] = []
        text = text.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate is read as "?"
        if text and self.space_first:
            text = " " + text
        for word in self._words.findall(text.replace(" ", SPACE)):
            ids += self._cache.get(word) or self._encode_word(word)
        return ids

    def _encode_word(self, word: str) -> list[int]:
        ids: list[int] = []
        for piece in self._merge(word):
            if piece in self._pieces:
                ids.append(self._pieces[piece][1])
            elif self._byte_ids:
                ids += [self._byte_ids[byte] for byte in piece.encode()]
            elif not ids or ids[-1] != self._unknown:  # unknown neighbours are one token
                ids.append(self._unknown)
        return self._remembered(word, ids)

    def _merge(self, text: str) -> list[str]:
        # A part is known by where it begins; ends[i] is where it ends and the next one begins, and
        # 0 once the part at i is swallowed. The heap holds what two neighbours might become.
        n = len(text)
        ends, before = [*range(1, n + 1), 0], [*range(-1, n)]
        heap: list[tuple[float, int, int]] = []

        def offer(i: int) -> None:
            end = ends[ends[i]]
            if end and (piece := self._pieces.get(text[i:end])):
                heappush(heap, (piece[0], i, end))

        for i in range(n):
            offer(i)
        while heap:
            _, i, end = heappop(heap)
            middle = ends[i]
            if not middle or ends[middle] != end:
                continue  # one of the two was merged since
            ends[i], ends[middle] = end, 0
            before[end] = i
            offer(i)
            if before[i] >= 0:
                offer(before[i])
        parts, at = [], 0
        while at < n:
            parts.append(text[at : ends[at]])
            at = ends[at]
        return parts

    def _bytes_of(self, i: int) -> bytes:
        token = self.tokens[i]
        match self.types[i]:
            case TokenType.BYTE if _BYTE_NAME.fullmatch(token):
                return bytes.fromhex(token[3:5])
            case TokenType.UNKNOWN:
                return _UNKNOWN_SHOWN.encode()
            case TokenType.NORMAL:
                token = token.replace(SPACE, " ")
        return token.encode("utf-8", "replace")


def _byte_ids(tokens: Sequence[str], types: Sequence[int]) -> list[int] | None:
    """Return the ids of <0x00> to <0xFF>, or None where one is missing."""
    found = {token: i for i, token in enumerate(tokens) if types[i] == TokenType.BYTE}
    names = [f"<0x{byte:02X}>" for byte in range(256)]
    return [found[name] for name in names] if found.keys() >= set(names) else None
