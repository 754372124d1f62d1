"""The tokenizer inside a GGUF file: to metadata and back; no numpy.

llama.cpp knows a byte-level BPE as model "gpt2" with a pre-tokenizer named outright, ours "gpt-2"
(GPT-2's regular expression); and the SentencePiece BPE of Llama 2 and its kin as model "llama".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paperkiln.errors import PaperkilnError
from paperkiln.infer.chat_template import CHAT_TEMPLATE_JINJA
from paperkiln.train.pretokenize import CUTS
from paperkiln.train.sentencepiece import SentencePiece, TokenType
from paperkiln.train.tokenizers import ASSISTANT, END_OF_TEXT, UNKNOWN, USER, Tokenizer

PADDING = "<|pad_{}|>"  # names the embedding rows beyond the token list, by row
# Every text is searched for these; making the search ready for a million takes a minute.
_FOUND_IN_TEXT = frozenset({TokenType.CONTROL, TokenType.UNKNOWN, TokenType.USER_DEFINED})
_MOST_FOUND = 1 << 14
# llama.cpp refuses a BPE without merges, which is what bytes are; this one can never apply, since
# merging starts from single characters.
_NO_MERGES = [f"{END_OF_TEXT} {END_OF_TEXT}"]


def tokenizer_metadata(tokenizer: Tokenizer, vocab_size: int) -> dict[str, Any]:
    """Return the `tokenizer.*` keys; rows beyond the token list get named placeholders.

    Raises PaperkilnError if there are more tokens than rows.
    """
    tokens = list(tokenizer.tokens)
    if len(tokens) > vocab_size:
        raise PaperkilnError(
            f"the tokenizer has {len(tokens)} tokens and the model {vocab_size} embedding rows; "
            "export the model with the tokenizer it was trained with"
        )
    padding = range(len(tokens), vocab_size)
    if isinstance(tokenizer, SentencePiece):
        types, own = tokenizer.types, _sentencepiece_metadata(tokenizer, len(padding))
    else:
        types = [TokenType.NORMAL] * len(tokens)
        for kind, named in (
            (TokenType.CONTROL, tokenizer.specials),
            (TokenType.USER_DEFINED, tokenizer.user_defined),
        ):
            for i in named.values():
                types[i] = kind
        own = _bpe_or_word_metadata(tokenizer)
    keys = own | {
        "tokenizer.ggml.tokens": tokens + [PADDING.format(i) for i in padding],
        "tokenizer.ggml.token_type": [*map(int, types), *[int(TokenType.UNUSED)] * len(padding)],
        "tokenizer.ggml.eos_token_id": tokenizer.eos_id,
    }
    if tokenizer.chat_template:
        keys["tokenizer.chat_template"] = tokenizer.chat_template
    elif USER in tokenizer.specials and ASSISTANT in tokenizer.specials:
        keys["tokenizer.chat_template"] = CHAT_TEMPLATE_JINJA
    return keys


def _bpe_or_word_metadata(tokenizer: Tokenizer) -> dict[str, Any]:
    keys: dict[str, Any] = {
        "tokenizer.ggml.model": "word" if tokenizer.kind == "word" else "gpt2",
        "tokenizer.ggml.bos_token_id": tokenizer.bos_id,
        "tokenizer.ggml.padding_token_id": tokenizer.eos_id,
        "tokenizer.ggml.add_bos_token": bool(tokenizer.begin_ids),
    }
    if tokenizer.kind == "word":
        return keys | {"tokenizer.ggml.unknown_token_id": tokenizer.tokens.index(UNKNOWN)}
    merges = [" ".join(pair) for pair in tokenizer.merges] or _NO_MERGES
    return keys | {"tokenizer.ggml.pre": tokenizer.cut, "tokenizer.ggml.merges": merges}


def _sentencepiece_metadata(tokenizer: SentencePiece, n_padding: int) -> dict[str, Any]:
    keys: dict[str, Any] = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.scores": [*map(float, tokenizer.scores), *[-1000.0] * n_padding],
        "tokenizer.ggml.add_bos_token": bool(tokenizer.begin_ids),
        "tokenizer.ggml.add_space_prefix": tokenizer.space_first,
    }
    if tokenizer.begin_ids:
        keys["tokenizer.ggml.bos_token_id"] = tokenizer.begin_ids[0]
    if TokenType.UNKNOWN in tokenizer.types:
        keys["tokenizer.ggml.unknown_token_id"] = tokenizer.types.index(TokenType.UNKNOWN)
    return keys


def read_tokenizer(metadata: Mapping[str, Any]) -> Tokenizer | None:
    """Return the tokenizer of a GGUF file, or None where it is not of a kind that we have."""
    model = metadata.get("tokenizer.ggml.model")
    # Another pre-tokenizer cuts the text by another rule: its ids would be silently wrong.
    if model not in ("word", "llama", "gpt2") or (model == "gpt2" and _cut(metadata) not in CUTS):
        return None
    try:
        tokens = metadata["tokenizer.ggml.tokens"]
        n_tokens = len(tokens)
        while n_tokens and tokens[n_tokens - 1] == PADDING.format(n_tokens - 1):
            n_tokens -= 1
        if sum(t in _FOUND_IN_TEXT for t in metadata["tokenizer.ggml.token_type"]) > _MOST_FOUND:
            return None
        read = _read_sentencepiece if model == "llama" else _read_bpe_or_word
        tokenizer = read(metadata, tokens[:n_tokens], metadata["tokenizer.ggml.token_type"])
    except (PaperkilnError, LookupError, TypeError, ValueError, AttributeError):
        return None
    template = metadata.get("tokenizer.chat_template")
    tokenizer.chat_template = template if isinstance(template, str) else ""
    return tokenizer


def why_none(metadata: Mapping[str, Any]) -> str:
    """Return why `read_tokenizer` gives None for a file."""
    if (model := metadata.get("tokenizer.ggml.model")) is None:
        return "it holds no tokenizer"
    cut = f", cut as {_cut(metadata)!r:.30}" if model == "gpt2" else ""
    return (
        f"its tokenizer ({model!r:.30}{cut}) is damaged or of a kind that paperkiln does not have; "
        "it reads SentencePiece, byte-level BPE cut as gpt-2, smollm, llama-bpe, qwen2 or default, "
        "whole words and bytes"
    )


def _cut(metadata: Mapping[str, Any]) -> str:
    return str(metadata.get("tokenizer.ggml.pre") or "default")


def _read_bpe_or_word(
    metadata: Mapping[str, Any], tokens: list[str], types: list[int]
) -> Tokenizer:
    merges = metadata.get("tokenizer.ggml.merges", [])
    pairs = [] if merges == _NO_MERGES else [tuple(merge.split(" ")) for merge in merges]
    is_word = metadata["tokenizer.ggml.model"] == "word"
    cut = "gpt-2" if is_word else _cut(metadata)
    of_type = lambda *kinds: {tokens[i]: i for i, kind in enumerate(types) if kind in kinds}  # noqa: E731
    tokenizer = Tokenizer(
        "word" if is_word else "bpe", tokens, pairs,
        of_type(TokenType.CONTROL, TokenType.UNKNOWN), _ends(metadata), cut=cut,
        user_defined=of_type(TokenType.USER_DEFINED),
    )  # fmt: skip
    if metadata.get("tokenizer.ggml.add_bos_token", CUTS[cut].begins):
        tokenizer.begin_ids = (range(len(tokens))[metadata["tokenizer.ggml.bos_token_id"]],)
    return tokenizer


def _read_sentencepiece(
    metadata: Mapping[str, Any], tokens: list[str], types: list[int]
) -> SentencePiece:
    get = lambda name, default=None: metadata.get(f"tokenizer.ggml.{name}", default)  # noqa: E731
    if not isinstance(tokens, list):
        raise TypeError("tokens are not a list")
    n = len(tokens)
    return SentencePiece(
        tokens, get("scores")[:n], types[:n], ends=_ends(metadata),
        begin_id=get("bos_token_id", 1) if get("add_bos_token", True) else None,
        space_first=bool(get("add_space_prefix", True)),
    )  # fmt: skip


def _ends(metadata: Mapping[str, Any]) -> list[int]:
    """Return the ids that end a text, and those that end a turn."""
    found = [metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot")]
    return [i for i in found if type(i) is int]
