"""What a model costs: arithmetic and memory, from its configuration alone."""

from __future__ import annotations

from paperkiln.models.config import ModelConfig, parameter_shapes


def matmul_parameters(config: ModelConfig) -> int:
    """Return the weights a token is multiplied by: matrices and the head, not the look-ups."""
    total = 0
    for name, shape in parameter_shapes(config).items():
        if len(shape) == 2 and name.startswith(("blocks.", "head.")):
            total += shape[0] * shape[1]
    if config.tied_embeddings:
        total += config.vocab_size * config.d_model
    return total


def train_flops_per_token(config: ModelConfig) -> int:
    """Return the floating-point operations to train on one token, forward and backward.

    6 N + 12 L H E T (Chowdhery et al. 2022, appendix B): N matmul parameters, and attention
    over a whole context. Norms, activations and softmax are left out, as is usual.
    """
    c = config
    attention = 12 * c.n_layers * c.n_heads * c.head_dim * c.context_length
    return 6 * matmul_parameters(c) + attention


def train_memory_bytes(config: ModelConfig, batch: int, n_parameters: int) -> int:
    """Return about how many bytes a float32 training step holds (AdamW, nothing recomputed).

    Weights, their gradient twice (total and shards) and two moments; and for each layer and token
    the activations that backward reads, with one probability per head and key.
    """
    c = config
    heads = c.n_heads + 2 * c.n_kv_heads
    per_token = 6 * c.d_model + 3 * heads * c.head_dim + 5 * c.d_ff
    per_token += c.n_heads * c.context_length
    activations = batch * c.context_length * c.n_layers * per_token
    return 4 * (6 * n_parameters + activations)
