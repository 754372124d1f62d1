"""The error term: what the design says an effect is to be measured against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paperkiln.atlas.blocks import Blocks, listed
from paperkiln.atlas.contrasts import Model
from paperkiln.errors import PaperkilnError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ErrorTerm:
    """The cells' means and how sure they are; a contrast of them gets its standard error here."""

    words: str
    means: Array  # of each cell, over the seeds that count
    variance: Array  # of each of those means, as far as it matters to a contrast
    df: float | Array  # an array: one variance a cell, combined after Welch and Satterthwaite
    counts: tuple[int, ...]  # runs a cell
    seeds: tuple[int, ...]
    paired: Array | None  # cells x seeds
    residuals: Array  # of each run, cell after cell, in the order of the seeds
    residual_sd: Array  # how far each of those may be expected to lie from 0
    notes: tuple[str, ...]

    def of(self, weights: Array) -> tuple[float, float]:
        """Return the standard error of a contrast and its degrees of freedom."""
        parts = weights**2 * self.variance
        se = float(np.sqrt(parts.sum()))
        if not isinstance(self.df, np.ndarray):
            return se, float(self.df)
        used = parts > 0
        if not used.any():
            return 0.0, float(self.df.sum())
        return se, float(parts.sum() ** 2 / (parts[used] ** 2 / self.df[used]).sum())


def error_term(blocks: Blocks, model: Model) -> ErrorTerm:
    """Return the error term of a study.

    - Two or more seeds that every cell ran with: a randomised complete block design. The error
      is the mean square of cell x seed, with (cells - 1)(seeds - 1) degrees of freedom
      (Montgomery, Design and Analysis of Experiments, section 4.1); for two cells that is the
      paired t test.
    - Seeds that are not the same in every cell: one variance a cell, after Welch (Biometrika 34
      (1947) 28) and Satterthwaite.
    - One run a cell: what the model leaves over, on the assumption that the terms outside it
      (higher interactions) are zero.

    Raises PaperkilnError where none of these is there.
    """
    common = blocks.common_seeds
    counts = [len(v) for v in blocks.values]
    if len(common) >= 2:
        return _block_error(blocks, common)
    if min(counts) >= 2:
        return _welch_error(blocks)
    if max(counts) == 1:
        return _residual_error(blocks, model)
    short = [", ".join(cell) for cell, n in zip(blocks.cells, counts, strict=True) if n < 2]
    raise PaperkilnError(
        f"the cells share {len(common)} seed(s) and {listed(short)} ran once only: an error term "
        "needs two seeds that every cell ran with; run the missing ones again"
    )


def _block_error(blocks: Blocks, seeds: list[int]) -> ErrorTerm:
    y = np.array([[values[seed] for seed in seeds] for values in blocks.values])
    cells, n = y.shape
    residuals = y - y.mean(axis=1, keepdims=True) - y.mean(axis=0) + y.mean()
    df = (cells - 1) * (n - 1)
    mse = float((residuals**2).sum() / df) if df else 0.0
    left_out = sorted(set().union(*blocks.values) - set(seeds))
    notes = [f"left out, since not every cell has it: seed {listed([str(s) for s in left_out])}"]
    words = f"cell x seed, a block design of {cells} cells and {n} seeds, MSE {mse:.4g}"
    if cells == 2:
        words = f"paired by seed: the t test of {n} differences"
    sd = np.full(y.size, np.sqrt(mse * df / y.size))
    return ErrorTerm(words, y.mean(axis=1), np.full(cells, mse / n), df, (n,) * cells, tuple(seeds),
                     y, residuals.ravel(), sd, tuple(notes if left_out else ()))  # fmt: skip


def _welch_error(blocks: Blocks) -> ErrorTerm:
    y = [np.array([values[s] for s in sorted(values)]) for values in blocks.values]
    counts = np.array([len(v) for v in y])
    variance = np.array([v.var(ddof=1) for v in y])
    words = f"Welch: the seeds differ between cells, nothing is paired; {len(y)} variances"
    residuals = np.concatenate([v - v.mean() for v in y])
    sd = np.repeat(np.sqrt(variance * (1 - 1 / counts)), counts)
    means = np.array([v.mean() for v in y])
    return ErrorTerm(words, means, variance / counts, counts - 1.0, tuple(map(int, counts)),
                     _all_seeds(blocks), None, residuals, sd, ())  # fmt: skip


def _residual_error(blocks: Blocks, model: Model) -> ErrorTerm:
    y = np.array([next(iter(values.values())) for values in blocks.values])
    df = model.matrix.shape[0] - model.matrix.shape[1]
    if df < 1:
        raise PaperkilnError(
            f"{len(y)} runs and as many terms leave nothing to measure the error with; "
            "run every cell with two seeds or more, or look at the half-normal plot"
        )
    hat = model.matrix @ np.linalg.pinv(model.matrix)
    residuals = y - hat @ y
    mse = float((residuals**2).sum() / df)
    words = f"residual, one run a cell, MSE {mse:.4g}: what is not in the model is taken to be zero"
    return ErrorTerm(words, y, np.full(len(y), mse), df, (1,) * len(y), _all_seeds(blocks), None,
                     residuals, np.sqrt(mse * (1 - hat.diagonal())), ())  # fmt: skip


def _all_seeds(blocks: Blocks) -> tuple[int, ...]:
    return tuple(sorted(set().union(*blocks.values)))
