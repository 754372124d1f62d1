"""How many parameters a transformer has, from its dimensions alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ParameterCount:
    """Trainable parameters: all, those of the token and position tables, those a token uses."""

    total: int
    embedding: int
    """Token table, positions and an untied head; `total - embedding` is what papers call
    non-embedding parameters."""
    active: int
    """As `total`, without the experts that the router leaves out; equal where there are none."""


def count_parameters(
    *,
    d_model: int | None,
    n_layers: int | None,
    d_ff: int | None,
    vocab_size: int | None,
    n_heads: int | None = None,
    n_kv_heads: int | None = None,
    head_dim: int | None = None,
    gated: bool = False,
    tied: bool = True,
    bias: bool = False,
    norm: str = "rmsnorm",
    norm_placement: str = "pre",
    learned_positions: int = 0,
    n_experts: int = 0,
    n_experts_shared: int = 0,
    n_experts_active: int = 0,
    expert_d_ff: int | None = None,
    encoder_decoder: bool = False,
) -> ParameterCount | None:
    """Return a transformer's parameter count, or None where a dimension it needs is unknown.

    Without head sizes the heads together are d_model wide. With experts every layer has a router
    and `n_experts` of them, of which `n_experts_active` serve a token beside the shared ones.
    `encoder_decoder` has n_layers in each half, cross-attention in the second, one token table.
    """
    width = _attention_width(d_model, n_heads, n_kv_heads, head_dim)
    inner = d_ff if not n_experts else (expert_d_ff or d_ff)
    if not (d_model and n_layers and inner and vocab_size and width):
        return None

    def linear(n_in: int, n_out: int) -> int:
        return n_in * n_out + (n_out if bias else 0)

    norm_size = d_model * (2 if bias and norm == "layernorm" else 1)
    heads, kv_heads = width
    attention = linear(d_model, heads + 2 * kv_heads) + linear(heads, d_model) + norm_size
    one_ffn = linear(d_model, (2 if gated else 1) * inner) + linear(inner, d_model)
    every_ffn, used_ffn = one_ffn, one_ffn
    if n_experts:
        router = d_model * n_experts
        every_ffn = router + (n_experts + n_experts_shared) * one_ffn
        used_ffn = router + (n_experts_active + n_experts_shared) * one_ffn

    stacks = 2 if encoder_decoder else 1
    attentions = n_layers * (3 if encoder_decoder else 1)
    n_ffns = n_layers * stacks
    outside = attentions * attention + n_ffns * norm_size
    outside += stacks * norm_size if norm_placement == "pre" else 0
    embedding = d_model * (vocab_size * (1 if tied else 2) + learned_positions)
    return ParameterCount(
        total=embedding + outside + n_ffns * every_ffn,
        embedding=embedding,
        active=embedding + outside + n_ffns * used_ffn,
    )


def _attention_width(
    d_model: int | None, n_heads: int | None, n_kv_heads: int | None, head_dim: int | None
) -> tuple[int, int] | None:
    """Return the widths of all query heads and of all key heads, where they are known."""
    if not n_heads:
        # Full heads fill d_model whatever their number; with fewer key heads it matters.
        return (d_model, d_model) if d_model and not n_kv_heads and not head_dim else None
    if not head_dim:
        if not d_model or d_model % n_heads:
            return None
        head_dim = d_model // n_heads
    return n_heads * head_dim, (n_kv_heads or n_heads) * head_dim
