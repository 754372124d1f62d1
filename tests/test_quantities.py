"""Numbers as papers write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperkiln.papers.numbers.quantities import quantities

# A text and the values of its numbers.
VALUES = [
    ("512", [512]),
    ("12 layers and 768 units", [12, 768]),
    ("151,936 and 49,152-token", [151936, 49152]),
    ("128, 256 and 512", [128, 256, 512]),
    ("128,256", [128256]),
    ("1,2,3", [1, 2, 3]),
    ("50\u2009257", [50257]),
    ("50\u202f257 or 50\u00a0257", [50257, 50257]),
    ("5 000 examples", [5000]),
    ("1.5", [1.5]),
    (".5", [0.5]),
    ("0.1%", [0.1]),
    ("-3", [-3]),
    ("2^15", [32768]),
    ("2^-3", [0.125]),
    ("10^6", [1_000_000]),
    ("3×10^-4", [3e-4]),
    ("1.693 × 10^8", [169_300_000]),
    ("6e-4 or 6.0e4", [6e-4, 60_000]),
    ("32K and 32k and 32 K", [32_000, 32_000, 32_000]),
    ("125M, 1.3B, 15T", [125_000_000, 1_300_000_000, 15_000_000_000_000]),
    ("8.2B", [8_200_000_000]),
    ("1.3 billion parameters", [1_300_000_000]),
    ("350-million", [350_000_000]),
    ("250 thousand entries", [250_000]),
    ("eight layers", [8]),
    ("Twenty-four heads", [24]),
    ("twelve-layer", [12]),
    ("a dozen heads", [12]),
    ("two million tokens", [2_000_000]),
    ("a single head", [1]),
    ("top-2", [2]),
    # Numbers that name or measure something else.
    ("Figure 3, Table 2 and Section 4.1", []),
    ("Eq. 5 and step", []),
    ("patches of 16×16 or 14 x 14", []),
    ("d_3, x2 and v1", []),
    ("someone often tenable", []),
    ("1" * 40, []),
    ("99^64", []),
    ("9999999^60", []),
    ("0^-3", []),
    ("", []),
]


@pytest.mark.parametrize(("text", "values"), VALUES)
def test_the_values_of_a_text(text, values):
    assert [q.value for q in quantities(text)] == pytest.approx(values)


def test_whole_numbers_are_integers():
    for text in ("8.2B", "1.5K", "3e4", "2^15", "6.7 billion"):
        assert isinstance(quantities(text)[0].value, int)


@pytest.mark.parametrize(
    ("text", "flag"),
    [("about 37000", None), ("4K", "kilo"), ("10 %", "percent"), ("125M", "scaled"),
     ("three billion", "scaled")],
)  # fmt: skip
def test_how_it_was_written(text, flag):
    (quantity,) = quantities(text)
    flags = ("kilo", "percent", "scaled")
    assert [name for name in flags if getattr(quantity, name)] == ([flag] if flag else [])


def test_lengths_count_k_as_1024():
    assert [q.binary for q in quantities("4K, 128k and 4096")] == [4096, 131072, 4096]


@given(st.text() | st.text(alphabet="0123456789.,^×e-KkMB %onetw ", max_size=60))
def test_any_text_is_read(text):
    at = 0
    for quantity in quantities(text):
        assert at <= quantity.start < quantity.end <= len(text)
        assert abs(quantity.value) <= 1e18
        assert quantity.binary == quantity.binary  # no NaN, no overflow
        at = quantity.end
