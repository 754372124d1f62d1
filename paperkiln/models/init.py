"""Initial weights: one numpy generator, so one seed gives the same model on every engine."""

from __future__ import annotations

import math
import zlib

import numpy as np

from paperkiln.models.config import ModelConfig, parameter_shapes


def init_parameters(
    config: ModelConfig, seed: int, dtype: type = np.float32
) -> dict[str, np.ndarray]:
    """Return the seeded initial parameters: N(0, init_std), gains 1, biases 0.

    Each tensor draws from its own stream, keyed by its name: two configurations that share a
    tensor share its values at equal seed (paired comparisons). With `depth-scaled` residual
    init, the projections that write to the residual stream start at init_std / sqrt(2 L)
    (Radford et al. 2019, section 2.3).
    """
    parameters = {}
    for name, shape in parameter_shapes(config).items():
        if len(shape) == 1:
            values = np.ones(shape) if name.endswith("weight") else np.zeros(shape)
        else:
            std = config.init_std
            if config.residual_init == "depth-scaled" and name.endswith("out.weight"):
                std /= math.sqrt(2 * config.n_layers)
            stream = np.random.default_rng([seed, zlib.crc32(name.encode())])
            values = stream.normal(0.0, std, shape)
        parameters[name] = values.astype(dtype)
    return parameters
