"""The tokenizer inside a GGUF file: to metadata and back; no numpy.

llama.cpp knows our byte-level BPE as model "gpt2" with pre-tokenizer "gpt-2" (GPT-2's regular
expression), named outright so that nothing has to guess it from a hash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paperkiln.errors import PaperkilnError
from paperkiln.infer.chat_template import CHAT_TEMPLATE_JINJA
from paperkiln.train.tokenizers import ASSISTANT, END_OF_TEXT, UNKNOWN, USER, Tokenizer

PADDING = "<|pad_{}|>"  # names the embedding rows beyond the token list, by row
NORMAL, CONTROL, UNUSED = 1, 3, 5  # llama.cpp's token types
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
    special = set(tokenizer.specials.values())
    types = [CONTROL if i in special else NORMAL for i in range(len(tokens))]
    padding = range(len(tokens), vocab_size)
    keys: dict[str, Any] = {
        "tokenizer.ggml.model": "word" if tokenizer.kind == "word" else "gpt2",
        "tokenizer.ggml.tokens": tokens + [PADDING.format(i) for i in padding],
        "tokenizer.ggml.token_type": types + [UNUSED for _ in padding],
        "tokenizer.ggml.bos_token_id": tokenizer.eos_id,
        "tokenizer.ggml.eos_token_id": tokenizer.eos_id,
        "tokenizer.ggml.padding_token_id": tokenizer.eos_id,
        "tokenizer.ggml.add_bos_token": False,
    }
    if tokenizer.kind == "word":
        keys["tokenizer.ggml.unknown_token_id"] = tokens.index(UNKNOWN)
    else:
        keys["tokenizer.ggml.pre"] = "gpt-2"
        keys["tokenizer.ggml.merges"] = [" ".join(pair) for pair in tokenizer.merges] or _NO_MERGES
    if USER in tokenizer.specials and ASSISTANT in tokenizer.specials:
        keys["tokenizer.chat_template"] = CHAT_TEMPLATE_JINJA
    return keys


def read_tokenizer(metadata: Mapping[str, Any]) -> Tokenizer | None:
    """Return the tokenizer of a GGUF file, or None where it is not of a kind that we have."""
    model = metadata.get("tokenizer.ggml.model")
    # Another pre-tokenizer cuts the text by another rule: its ids would be silently wrong.
    if model != "word" and (model, metadata.get("tokenizer.ggml.pre")) != ("gpt2", "gpt-2"):
        return None
    try:
        tokens = metadata["tokenizer.ggml.tokens"]
        types = metadata["tokenizer.ggml.token_type"]
        merges = metadata.get("tokenizer.ggml.merges", [])
        pairs = [] if merges == _NO_MERGES else [tuple(merge.split(" ")) for merge in merges]
        specials = {tokens[i]: i for i, kind in enumerate(types) if kind == CONTROL}
        n_tokens = len(tokens)
        while n_tokens and tokens[n_tokens - 1] == PADDING.format(n_tokens - 1):
            n_tokens -= 1
        kind = "word" if model == "word" else "bpe"
        end = metadata.get("tokenizer.ggml.eos_token_id")
        ends = [end] if type(end) is int else []
        return Tokenizer(kind, tokens[:n_tokens], pairs, specials, ends)
    except (PaperkilnError, LookupError, TypeError, ValueError, AttributeError):
        return None
