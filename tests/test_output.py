"""How a verb speaks."""

from __future__ import annotations

import pytest

from paperkiln.output import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "0 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"), (5400, "1.5 h"),
        (86_400, "24.0 h"), (172_800, "2 days"), (1e9, "11,574 days"),
    ],
)  # fmt: skip
def test_a_time_for_a_person(seconds: float, text: str) -> None:
    assert duration(seconds) == text
