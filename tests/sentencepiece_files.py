"""Llama files as others make them: a SentencePiece vocabulary, random weights of any GGUF type."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from paperkiln.formats.gguf_writer import add_value

SHAPE: dict[str, int] = {"D": 256, "L": 2, "H": 8, "K": 2, "F": 512, "C": 128}


def train_vocabulary(text: str, size: int = 600, **options: Any) -> Any:
    """A SentencePiece BPE with byte fallback, learned as Llama's was; their processor of it."""
    library = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    model = io.BytesIO()
    settings = {
        "model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True,
        "character_coverage": 0.999, "minloglevel": 2, "num_threads": 1,
    }  # fmt: skip
    library.SentencePieceTrainer.train(
        sentence_iterator=iter(text.splitlines()), model_writer=model, vocab_size=size,
        **settings | options,
    )  # fmt: skip
    return library.SentencePieceProcessor(model_proto=model.getvalue())


def vocabulary_keys(vocabulary: Any, template: str = "", **changes: Any) -> dict[str, Any]:
    """Return the `tokenizer.*` keys that llama.cpp's converter writes for a vocabulary."""
    v, ids = vocabulary, range(len(vocabulary))
    user_defined = set(changes.pop("user_defined", ()))

    def kind(i: int) -> int:
        if v.is_unknown(i):
            return gguf.TokenType.UNKNOWN
        if v.is_control(i):
            return gguf.TokenType.CONTROL
        if v.is_byte(i):
            return gguf.TokenType.BYTE
        user = v.id_to_piece(i) in user_defined
        return gguf.TokenType.USER_DEFINED if user else gguf.TokenType.NORMAL

    keys = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": [v.id_to_piece(i) for i in ids],
        "tokenizer.ggml.scores": [float(v.get_score(i)) for i in ids],
        "tokenizer.ggml.token_type": [int(kind(i)) for i in ids],
        "tokenizer.ggml.bos_token_id": v.bos_id(),
        "tokenizer.ggml.eos_token_id": v.eos_id(),
        "tokenizer.ggml.unknown_token_id": v.unk_id(),
    }
    if template:
        keys["tokenizer.chat_template"] = template
    return keys | changes


def write_llama(
    path: Path, keys: dict[str, Any], kinds: str | dict[str, str] = "F32", seed: int = 7,
    rope_freqs: np.ndarray | None = None, **shape: int,
) -> Path:  # fmt: skip
    """Write a random llama of GGUF type `kinds`, or of a type for each ending of a name."""
    D, L, H, K, F, C = (SHAPE | shape).values()
    E, V = D // H, len(keys["tokenizer.ggml.tokens"])
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in (llama_keys(D, L, H, K, F, C) | keys).items():
        add_value(writer, key, value)

    def tensor(name: str, *shape: int) -> None:
        gain = len(shape) == 1
        x = (gain + rng.normal(0, 0.1 if gain else shape[1] ** -0.5, shape)).astype(np.float32)
        kind = "F32" if gain else kinds if isinstance(kinds, str) else kind_of(name, kinds)
        writer.add_tensor(name, quantise(x, kind), raw_dtype=gguf.GGMLQuantizationType[kind])

    if rope_freqs is not None:
        writer.add_tensor("rope_freqs.weight", rope_freqs.astype(np.float32))
    tensor("token_embd.weight", V, D)
    for i in range(L):
        tensor(f"blk.{i}.attn_norm.weight", D)
        tensor(f"blk.{i}.attn_q.weight", H * E, D)
        tensor(f"blk.{i}.attn_k.weight", K * E, D)
        tensor(f"blk.{i}.attn_v.weight", K * E, D)
        tensor(f"blk.{i}.attn_output.weight", D, H * E)
        tensor(f"blk.{i}.ffn_norm.weight", D)
        tensor(f"blk.{i}.ffn_gate.weight", F, D)
        tensor(f"blk.{i}.ffn_up.weight", F, D)
        tensor(f"blk.{i}.ffn_down.weight", D, F)
    tensor("output_norm.weight", D)
    tensor("output.weight", V, D)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def llama_keys(D: int, L: int, H: int, K: int, F: int, C: int) -> dict[str, Any]:
    return {
        "llama.context_length": C, "llama.embedding_length": D, "llama.block_count": L,
        "llama.feed_forward_length": F, "llama.attention.head_count": H,
        "llama.attention.head_count_kv": K, "llama.rope.dimension_count": D // H,
        "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.rope.freq_base": 10000.0,
    }  # fmt: skip


def kind_of(name: str, kinds: dict[str, str]) -> str:
    """Return the type of the first ending that fits; "" fits all."""
    return next(kind for ending, kind in kinds.items() if name.endswith(ending))


# Types that the gguf package reads but cannot make. The standard deviation of a weight whose parts
# are random bytes, its f16 being 1 (and the least values' f16 so that its mean is 0); where in a
# block the f16 lies; what the least values' f16, which follows it, is.
_RANDOM_BLOCKS = {
    "Q2_K": (14, 80, 1.5), "Q3_K": (43, 108, None), "Q4_K": (190, 0, 7.5), "Q5_K": (390, 0, 15.5),
    "Q6_K": (1370, 208, None), "IQ4_NL": (70, 0, None),
}  # fmt: skip


def quantise(x: np.ndarray, kind: str) -> np.ndarray:
    """Return x (rows, n) as GGUF type `kind`, or random blocks of about that size."""
    if kind not in _RANDOM_BLOCKS:
        return gguf.quants.quantize(x, gguf.GGMLQuantizationType[kind])
    spread, at, least = _RANDOM_BLOCKS[kind]
    n_weights, n_bytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    rng, n_blocks = np.random.default_rng(x.size), x.size // n_weights
    blocks = rng.integers(0, 256, (n_blocks, n_bytes), np.uint8)
    d = (float(x.std()) / spread * rng.uniform(0.5, 1.5, n_blocks)).astype(np.float16)
    blocks[:, at : at + 2] = d.view(np.uint8).reshape(-1, 2)
    if least is not None:
        d_least = (d * least).astype(np.float16)
        blocks[:, at + 2 : at + 4] = d_least.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(x.shape[0], -1)
