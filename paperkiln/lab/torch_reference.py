"""The opponent in the benchmark: the llama that a torch user would write by hand.

One module of fused torch calls, no part of `engine`, so that a comparison with it is one with
torch and not with our way of using torch. It loads our parameters and returns our loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from paperkiln.errors import PaperkilnError
from paperkiln.models.config import ModelConfig


@cache
def _block_class() -> type:
    """Return the block's class; torch is imported when it is first asked for."""
    import torch
    from torch import Tensor, nn
    from torch.nn import functional as F

    def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # (B, H, T, E), tables (T, E/2)
        x1, x2 = x.chunk(2, dim=-1)
        return torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), dim=-1)

    class Block(nn.Module):
        """Pre-norm attention and SwiGLU; `cache` (K and V of (B, K, S, E)) is filled at `at`."""

        def __init__(self, c: ModelConfig) -> None:
            super().__init__()
            self.heads, self.head_dim = (c.n_heads, c.n_kv_heads, c.n_kv_heads), c.head_dim
            self.gqa = {"enable_gqa": True} if c.n_kv_heads != c.n_heads else {}  # torch >= 2.5
            self.norm1 = nn.RMSNorm(c.d_model, eps=c.norm_eps)
            self.qkv = nn.Linear(c.d_model, sum(self.heads) * c.head_dim, bias=False)
            self.out = nn.Linear(c.n_heads * c.head_dim, c.d_model, bias=False)
            self.norm2 = nn.RMSNorm(c.d_model, eps=c.norm_eps)
            self.gate_up = nn.Linear(c.d_model, 2 * c.d_ff, bias=False)
            self.down = nn.Linear(c.d_ff, c.d_model, bias=False)

        def forward(
            self,
            x: Tensor,  # (B, T, D)
            cos: Tensor,
            sin: Tensor,
            cache: tuple[Tensor, Tensor] | None = None,
            at: int = 0,
        ) -> Tensor:
            B, T, _ = x.shape
            qkv = self.qkv(self.norm1(x)).view(B, T, sum(self.heads), self.head_dim)
            q, k, v = qkv.transpose(1, 2).split(self.heads, dim=1)  # (B, H, T, E)
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            if cache is not None:
                end = at + T
                for kept, new in zip(cache, (k, v), strict=True):
                    kept[:, :, at:end] = new
                k, v = (kept[:, :, :end] for kept in cache)
            # One query may see every cached key; a prompt starts an empty cache.
            y = F.scaled_dot_product_attention(q, k, v, is_causal=T > 1, **self.gqa)
            x = x + self.out(y.transpose(1, 2).reshape(B, T, -1))
            gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
            return x + self.down(F.silu(gate) * up)

    return Block


@cache
def _llama_class() -> type:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional as F

    class Llama(nn.Module):
        """A llama decoder: hidden states, logits and loss."""

        def __init__(self, c: ModelConfig) -> None:
            super().__init__()
            self.config = c
            self.embed = nn.Embedding(c.vocab_size, c.d_model)
            self.blocks = nn.ModuleList(_block_class()(c) for _ in range(c.n_layers))
            self.norm = nn.RMSNorm(c.d_model, eps=c.norm_eps)
            self.head = nn.Linear(c.d_model, c.vocab_size, bias=False)
            if c.tied_embeddings:
                self.head.weight = self.embed.weight
            m = torch.arange(0, c.head_dim, 2, dtype=torch.float64) / c.head_dim
            angles = torch.outer(
                torch.arange(c.context_length, dtype=torch.float64), c.rope_theta**-m
            )
            self.register_buffer("cos", angles.cos().float(), persistent=False)  # (context, E/2)
            self.register_buffer("sin", angles.sin().float(), persistent=False)

        def hidden(self, ids: Tensor, caches: Sequence[Any] = (), at: int = 0) -> Tensor:
            """Return (B, T, D) for ids (B, T) that stand at positions at, at + 1, ..."""
            x, end = self.embed(ids), at + ids.shape[1]
            cos, sin = self.cos[at:end], self.sin[at:end]
            for i, block in enumerate(self.blocks):
                x = block(x, cos, sin, caches[i] if caches else None, at)
            return self.norm(x)

        def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
            """Return the mean cross-entropy (nats) of targets (B, T); -1 is not scored."""
            logits = self.head(self.hidden(ids))
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)

    return Llama


def _refuse_other_shapes(c: ModelConfig) -> None:
    wanted = {
        "norm": "rmsnorm", "norm_placement": "pre", "activation": "swiglu", "positional": "rope",
        "rope_layout": "half", "attention": "exact", "bias": False, "scale_embeddings": False,
        "dropout": 0.0,
    }  # fmt: skip
    other = [f"{name}={getattr(c, name)}" for name, v in wanted.items() if getattr(c, name) != v]
    if other:
        raise PaperkilnError(
            f"the torch reference is a llama and has no {', '.join(other)}; "
            "compare a llama-shaped spec (preset llama-tiny) instead"
        )


def build(config: ModelConfig, params: Mapping[str, np.ndarray], device: str = "cpu") -> Any:
    """Return the torch module holding copies of `params` (canonical names), float32.

    Raises PaperkilnError when the configuration is not llama-shaped.
    """
    import torch

    _refuse_other_shapes(config)
    theirs = {"attn.qkv": "qkv", "attn.out": "out", "ffn.in": "gate_up", "ffn.out": "down"}
    state = {}
    for name, array in params.items():
        for ours, other in theirs.items():
            name = name.replace(ours, other)
        state[name] = torch.tensor(array, dtype=torch.float32)
    if config.tied_embeddings:
        state["head.weight"] = state["embed.weight"]
    module = _llama_class()(config)
    module.load_state_dict(state)
    return module.to(device)


def generate(module: Any, prompt_ids: Sequence[int], n: int) -> list[int]:
    """Return the `n` greedy tokens after the prompt, by prefill and a preallocated KV cache.

    Raises PaperkilnError when prompt and answer exceed the context.
    """
    import torch

    c, T = module.config, len(prompt_ids)
    if T == 0 or T + n > c.context_length:
        raise PaperkilnError(
            f"a prompt of {T} tokens and {n} new ones must fill 1 to {c.context_length} positions; "
            "change the prompt or the count"
        )
    weight = module.embed.weight
    with torch.inference_mode():
        shape = (1, c.n_kv_heads, T + n, c.head_dim)
        caches = [(weight.new_empty(shape), weight.new_empty(shape)) for _ in range(c.n_layers)]
        ids = torch.tensor([list(prompt_ids)], device=weight.device)
        at, out = 0, []
        for _ in range(n):
            last = module.hidden(ids, caches, at)[:, -1]  # (1, D): only one row meets the head
            at += ids.shape[1]
            ids = module.head(last).argmax(dim=-1, keepdim=True)  # (1, 1)
            out.append(ids)
        return torch.cat(out, dim=1)[0].tolist() if out else []
