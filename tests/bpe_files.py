"""Byte-level BPE vocabularies as SmolLM, Llama 3 and Qwen2 have them, made by `tokenizers`."""

from __future__ import annotations

import json
from typing import Any

import gguf
import tokenizers as hf

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# What each name stands for, as a chain of splits: the text is cut by the first, pieces by the next.
SPLITS = {
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "llama-bpe": [LLAMA3],
    "smaug-bpe": [LLAMA3],
    "qwen2": [LLAMA3.replace("{1,3}", "")],
    "default": [r"[\p{P}$+<=>^~|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
}
TEXT = (
    "The kiln's fire WON'T wait; we'll fire it at 1200 degrees, they've said.\r\n\r\n"
    "Der Töpfer größert die Öfen, 日本の窯は熱い、Печь горяча 🔥🔥 12½ ١٢٣. का खि e\u0301\n\n"
    "\t if x == 1:\n        pass  # 1,234,567.89\nsystem user assistant You are helpful\n"
) * 9
CHATML_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
LLAMA3_TOKENS = (
    "<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|start_header_id|>",
    "<|end_header_id|>",
)  # fmt: skip


def train_bpe(
    cut: str, size: int = 600, text: str = TEXT, specials: tuple[str, ...] = CHATML_TOKENS
) -> hf.Tokenizer:
    """A byte-level BPE that cuts text by the chain of that name, learned from a text.

    One token of it cannot be reached by merges: " unmerged".
    """
    library = hf.Tokenizer(hf.models.BPE())
    library.pre_tokenizer = hf.pre_tokenizers.Sequence(
        [
            *(hf.pre_tokenizers.Split(hf.Regex(split), "isolated") for split in SPLITS[cut]),
            hf.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    library.train_from_iterator(
        text.splitlines(keepends=True),
        hf.trainers.BpeTrainer(
            vocab_size=size - 2,
            special_tokens=list(specials),
            initial_alphabet=hf.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    data = json.loads(library.to_str())
    data["model"]["vocab"]["Ġunmerged"] = len(data["model"]["vocab"])
    data["model"]["ignore_merges"] = cut == "llama-bpe"
    library = hf.Tokenizer.from_str(json.dumps(data))
    library.add_tokens(["<tool▁call>"])
    return library


def bpe_keys(library: hf.Tokenizer, pre: str | None, **changes: Any) -> dict[str, Any]:
    """Return the `tokenizer.*` keys that llama.cpp's converter writes for a vocabulary."""
    data = json.loads(library.to_str())
    tokens = sorted(library.get_vocab(), key=library.get_vocab().__getitem__)
    types = [int(gguf.TokenType.NORMAL)] * len(tokens)
    for token in data["added_tokens"]:
        kind = gguf.TokenType.CONTROL if token["special"] else gguf.TokenType.USER_DEFINED
        types[token["id"]] = int(kind)
    keys = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": [" ".join(pair) for pair in data["model"]["merges"]],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 2,
    }
    return {key: value for key, value in (keys | changes).items() if value is not None}
