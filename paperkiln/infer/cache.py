"""The key/value cache of one sequence, and the one rule for what happens when it is full.

Keys are stored after rotation, so a cached key is never touched again. Room for the whole
context is set aside at once; the operating system maps the pages only when they are written.
"""

from __future__ import annotations

import numpy as np

from paperkiln.models.config import ModelConfig


def window(tokens: list[int], context_length: int) -> list[int]:
    """Return the tokens the model reads: all that fit or, past the context, the newest half.

    Text longer than the context is generated in windows. When a token no longer fits, the model
    starts over, at position 0, with the newest `context_length // 2` tokens, that one included.
    The rule looks at the tokens alone, never at the cache, so cached and uncached generation read
    the same windows; and a refresh costs one pass over half a context every half a context.
    """
    if len(tokens) <= context_length:
        return tokens
    return tokens[-(context_length // 2) :]


def bytes_per_token(config: ModelConfig) -> int:
    """Return the bytes that one token's keys and values take in a `KVCache`."""
    return 4 * 2 * config.n_layers * config.n_kv_heads * config.head_dim


class KVCache:
    """Keys and values of the tokens read so far, float32, for every layer of one sequence."""

    def __init__(self, config: ModelConfig) -> None:
        n_layers, n_kv_heads = config.n_layers, config.n_kv_heads
        # One array for both, so that a token's keys and values are one write: (L, 2K, C, E).
        shape = (n_layers, 2 * n_kv_heads, config.context_length, config.head_dim)
        array = np.empty(shape, np.float32)
        self.layers: list[np.ndarray] = list(array)  # L x (2K, C, E)
        self._keys_transposed = array[:, :n_kv_heads].swapaxes(2, 3)  # (L, K, E, C)
        self._values = array[:, n_kv_heads:]  # (L, K, C, E)
        self.context_length = config.context_length
        self.length = 0

    def clear(self) -> None:
        """Forget every token; the memory stays."""
        self.length = 0

    def extend(self, n_tokens: int) -> int:
        """Take room for `n_tokens` more tokens and return the position of the first.

        Raises ValueError when they do not fit: callers keep within the context by `window`.
        """
        start = self.length
        if start + n_tokens > self.context_length:
            raise ValueError(
                f"{start} + {n_tokens} tokens exceed context_length {self.context_length}"
            )
        self.length = start + n_tokens
        return start

    def views(self) -> tuple[np.ndarray, np.ndarray]:
        """Return what is stored: keys (L, K, E, S), ready for q k^T, and values (L, K, S, E)."""
        stop = self.length
        return self._keys_transposed[..., :stop], self._values[:, :, :stop]
