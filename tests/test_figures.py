"""The loss curves drawn from a run's events."""

from __future__ import annotations

from pathlib import Path

import pytest

from paperkiln.errors import PaperkilnError

pytest.importorskip("matplotlib", reason="matplotlib is not installed (the extra `docs`)")

from paperkiln.lab.figures import loss_curves


def test_a_run_is_drawn_and_the_same_events_give_the_same_file(
    tiny_run: Path, tmp_path: Path
) -> None:
    for name in ("a.svg", "b.svg"):
        loss_curves([tiny_run, tiny_run], tmp_path / name)
    drawn = (tmp_path / "a.svg").read_text()
    assert drawn == (tmp_path / "b.svg").read_text()
    assert "tiny, validation" in drawn
    loss_curves([tiny_run], tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_no_run_or_no_picture_is_refused(tiny_run: Path, tmp_path: Path) -> None:
    with pytest.raises(PaperkilnError, match="no events"):
        loss_curves([tmp_path], tmp_path / "a.svg")
    with pytest.raises(PaperkilnError, match=r"\.svg or \.png"):
        loss_curves([tiny_run], tmp_path / "a.bmp")
