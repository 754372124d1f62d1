"""Figures made from the events of runs."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from paperkiln.errors import PaperkilnError
from paperkiln.formats.atomic import new_file
from paperkiln.train.events import Eval, Start, Step, read_events

# Okabe & Ito's palette: told apart by readers with any colour vision.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")


def loss_curves(folders: Sequence[Path], out: Path) -> None:
    """Draw training and validation loss over steps, one colour a run; SVG or PNG by the suffix.

    Raises PaperkilnError when matplotlib is missing or a folder holds no events.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise PaperkilnError("figures need matplotlib: pip install 'paperkiln[docs]'")
    if out.suffix not in (".svg", ".png"):
        raise PaperkilnError(f"{out}: name a .svg or .png file")
    import matplotlib

    matplotlib.use("svg" if out.suffix == ".svg" else "agg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "paperkiln"  # same events, same bytes
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for folder, colour in zip(folders, _COLOURS * len(folders), strict=False):
        events = _events(folder)
        name = next((e.name for e in events if isinstance(e, Start)), folder.name)
        steps = [e for e in events if isinstance(e, Step)]
        evals = [e for e in events if isinstance(e, Eval)]
        axes.plot([e.step for e in steps], _smooth([e.loss for e in steps]), color=colour,
                  linewidth=1, alpha=0.55, label=f"{name}, training")  # fmt: skip
        axes.plot([e.step for e in evals], [e.val_loss for e in evals], "o-", color=colour,
                  markersize=4, label=f"{name}, validation")  # fmt: skip
    axes.set(xlabel="step", ylabel="loss (nats per token)")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    with new_file(out) as aside:
        figure.savefig(aside, format=out.suffix[1:], dpi=150, metadata=_undated(out))
    plt.close(figure)


def _events(folder: Path) -> list:
    path = folder / "events.jsonl"
    if not path.exists():
        raise PaperkilnError(f"{folder}: no events.jsonl; give a run folder")
    return list(read_events(path))


def _undated(out: Path) -> dict[str, None]:
    return {"Date": None} if out.suffix == ".svg" else {}


def _smooth(losses: list[float], weight: float = 0.9) -> list[float]:
    """Return the exponential moving average, started at the first loss."""
    smoothed, average = [], losses[0] if losses else 0.0
    for loss in losses:
        average = weight * average + (1 - weight) * loss
        smoothed.append(average)
    return smoothed
