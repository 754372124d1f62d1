"""The decoder: embedding, blocks of attention and feed-forward, head; reads like the figure.

It is written once against an op set `F` (`engine.ops`, `engine.torch_ops`, ...) and holds no
arrays of its own: parameters are that engine's tensors, named as in `parameter_shapes`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from paperkiln.models.config import ModelConfig

Tensor = Any  # whatever the engine's op set works on


@lru_cache(maxsize=16)
def sinusoidal_table(n_positions: int, d_model: int) -> np.ndarray:
    """Return (positions, D) float64: sin on even columns, cos on odd ones.

    Vaswani et al. 2017, section 3.5: angle = position / 10000^(2i/D), i the pair's number.
    """
    position, column = np.arange(n_positions)[:, None], np.arange(d_model)[None, :]
    angle = position / 10000.0 ** (2 * (column // 2) / d_model)
    return np.where(column % 2 == 0, np.sin(angle), np.cos(angle))


class Decoder:
    """A decoder-only transformer over the tensors it is given."""

    def __init__(
        self,
        config: ModelConfig,
        parameters: Mapping[str, Any],
        F: Any,
        checkpoint: bool = False,
        rope_factors: tuple[float, ...] | None = None,
    ) -> None:
        """Wrap `parameters` (arrays become tensors of `F` that need no gradient).

        Rotary frequencies are divided by `rope_factors` (E/2,), if given. With `checkpoint`, each
        block keeps only its input and is recomputed going back.
        """
        self.config, self.F, self.checkpoint = config, F, checkpoint
        self.rope_factors = rope_factors
        self.parameters = {
            name: F.tensor(p) if isinstance(p, np.ndarray) else p for name, p in parameters.items()
        }

    def hidden(self, ids: np.ndarray, seed: tuple[int, ...] | None = None) -> Tensor:
        """Return what the head reads, (B, T, D), for ids (B, T); `seed` switches dropout on."""
        return deque(self.stages(ids, seed), maxlen=1)[0][1]

    def stages(
        self, ids: np.ndarray, seed: tuple[int, ...] | None = None
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield each module's name and its output (B, T, D): embed, blocks.0, ..., norm."""
        c, F, p = self.config, self.F, self.parameters
        T = ids.shape[1]
        if T > c.context_length:
            raise ValueError(f"{T} tokens exceed context_length {c.context_length}")
        x = F.embedding(ids, p["embed.weight"])  # (B, T) -> (B, T, D)
        if c.scale_embeddings:
            x = x * c.d_model**0.5
        if c.positional == "learned":
            x = x + p["pos.weight"][:T]
        elif c.positional == "sinusoidal":
            x = x + F.constant(sinusoidal_table(c.context_length, c.d_model)[:T], like=x)
        x = self._dropout(x, seed, 0)
        yield "embed", x
        for layer in range(c.n_layers):
            if self.checkpoint:
                x = F.checkpoint(lambda h, layer=layer: self._block(layer, h, seed), x)
            else:
                x = self._block(layer, x, seed)
            yield f"blocks.{layer}", x
        if c.norm_placement == "pre":
            yield "norm", self._norm("norm", x)

    def logits(self, ids: np.ndarray) -> Tensor:
        """Return the next-token logits (B, T, V) for ids (B, T)."""
        return self.F.linear(self.hidden(ids), self._head())

    def loss(
        self,
        ids: np.ndarray,
        targets: np.ndarray,
        seed: tuple[int, ...] | None = None,
        divisor: float | None = None,
    ) -> Tensor:
        """Return the summed cross-entropy (nats) over `divisor`, by default the mean.

        ids and targets are (B, T) integers; target -1 is not scored.
        """
        x = self.hidden(ids, seed)
        return self.F.linear_cross_entropy(x, self._head(), targets, divisor=divisor)

    def _head(self) -> Tensor:
        return self.parameters["embed.weight" if self.config.tied_embeddings else "head.weight"]

    def _block(self, layer: int, x: Tensor, seed: tuple[int, ...] | None) -> Tensor:
        name = f"blocks.{layer}"
        attn = lambda h: self._dropout(self._attention(f"{name}.attn", h), seed, 2 * layer + 1)  # noqa: E731
        ffn = lambda h: self._dropout(self._ffn(f"{name}.ffn", h), seed, 2 * layer + 2)  # noqa: E731
        if self.config.norm_placement == "pre":
            x = x + attn(self._norm(f"{name}.norm1", x))
            return x + ffn(self._norm(f"{name}.norm2", x))
        x = self._norm(f"{name}.norm1", x + attn(x))
        return self._norm(f"{name}.norm2", x + ffn(x))

    def _attention(self, name: str, x: Tensor) -> Tensor:  # (B, T, D) -> (B, T, D)
        c, F = self.config, self.F
        B, T, _ = x.shape
        H, K, E = c.n_heads, c.n_kv_heads, c.head_dim
        qkv = F.reshape(self._linear(f"{name}.qkv", x), (B, T, H + 2 * K, E))
        q, k, v = qkv[:, :, :H], qkv[:, :, H : H + K], qkv[:, :, H + K :]
        if c.positional == "rope":
            how = c.rope_theta, c.rope_layout == "interleaved", self.rope_factors
            q, k = F.rope(q, *how), F.rope(k, *how)
        window = c.window if c.attention == "swa" else None
        out = F.attention(q, k, v, window, c.sinks, alibi=c.positional == "alibi")
        return self._linear(f"{name}.out", F.reshape(out, (B, T, H * E)))

    def _ffn(self, name: str, x: Tensor) -> Tensor:  # (B, T, D) -> (B, T, F) -> (B, T, D)
        activation = getattr(self.F, self.config.activation)
        return self._linear(f"{name}.out", activation(self._linear(f"{name}.in", x)))

    def _linear(self, name: str, x: Tensor) -> Tensor:
        p = self.parameters
        return self.F.linear(x, p[f"{name}.weight"], p.get(f"{name}.bias"))

    def _norm(self, name: str, x: Tensor) -> Tensor:
        c, p = self.config, self.parameters
        if c.norm == "rmsnorm":
            return self.F.rms_norm(x, p[f"{name}.weight"], c.norm_eps)
        return self.F.layer_norm(x, p[f"{name}.weight"], p.get(f"{name}.bias"), c.norm_eps)

    def _dropout(self, x: Tensor, seed: tuple[int, ...] | None, site: int) -> Tensor:
        if seed is None or self.config.dropout == 0.0:
            return x
        return self.F.dropout(x, self.config.dropout, (*seed, site))
