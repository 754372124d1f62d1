"""The learning rate over time, as a factor of its peak: a pure function of the step."""

from __future__ import annotations

import math

from paperkiln.spec import TrainSpec


def lr_scale(spec: TrainSpec, update: int) -> float:
    """Return the factor on the peak learning rate for the `update`-th step, counted from 1.

    Linear warm-up over `warmup_steps`, then constant; or a half cosine down to `min_lr_ratio`
    at the last step (Loshchilov & Hutter 2017); or a drop by `step_gamma` every `step_every`.
    """
    warmup = min(spec.warmup_steps, spec.steps)
    if update <= warmup:
        return update / warmup
    if spec.schedule == "constant":
        return 1.0
    if spec.schedule == "step":
        return spec.step_gamma ** ((update - 1) // spec.step_every)
    progress = (update - warmup) / max(1, spec.steps - warmup)
    cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    return spec.min_lr_ratio + (1 - spec.min_lr_ratio) * cosine
