"""The learning rate, by table."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperkiln.spec import TrainSpec
from paperkiln.train.schedule import lr_scale

COSINE = {"schedule": "cosine", "steps": 110, "warmup_steps": 10, "min_lr_ratio": 0.2}
STEP = {"schedule": "step", "steps": 50, "warmup_steps": 2, "step_every": 10, "step_gamma": 0.5}
CONSTANT = {"schedule": "constant", "steps": 9, "warmup_steps": 4}


@pytest.mark.parametrize(
    ("spec", "update", "scale"),
    [
        (CONSTANT, 1, 0.25), (CONSTANT, 2, 0.5), (CONSTANT, 4, 1.0), (CONSTANT, 5, 1.0),
        (CONSTANT, 9, 1.0), (CONSTANT | {"warmup_steps": 0}, 1, 1.0),
        (CONSTANT | {"warmup_steps": 99}, 9, 1.0),  # a warm-up longer than the run ends with it
        (COSINE, 1, 0.1), (COSINE, 10, 1.0), (COSINE, 60, 0.6), (COSINE, 110, 0.2),
        (COSINE, 35, 0.2 + 0.8 * (1 + math.sqrt(0.5)) / 2),
        (COSINE | {"min_lr_ratio": 0.0}, 110, 0.0), (COSINE | {"warmup_steps": 0}, 110, 0.2),
        (STEP, 1, 0.5), (STEP, 2, 1.0), (STEP, 10, 1.0), (STEP, 11, 0.5), (STEP, 20, 0.5),
        (STEP, 21, 0.25), (STEP, 50, 0.0625),
    ],
)  # fmt: skip
def test_table(spec: dict, update: int, scale: float) -> None:
    assert lr_scale(TrainSpec(**spec), update) == pytest.approx(scale, abs=1e-12)


@given(
    st.sampled_from(["constant", "cosine", "step"]),
    st.integers(1, 60), st.integers(0, 80), st.floats(0, 1), st.data(),
)  # fmt: skip
def test_never_above_the_peak_and_never_rising_after_the_warm_up(
    schedule: str, steps: int, warmup: int, ratio: float, data: st.DataObject
) -> None:
    spec = TrainSpec(schedule=schedule, steps=steps, warmup_steps=warmup, min_lr_ratio=ratio)
    update = data.draw(st.integers(1, steps))
    scale = lr_scale(spec, update)
    assert 0 <= scale <= 1
    if min(warmup, steps) < update < steps:
        assert lr_scale(spec, update + 1) <= scale
