"""Which paper a reference names: every accepted spelling, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperkiln.errors import PaperkilnError
from paperkiln.papers.source.reference import ARCHIVES, Reference, from_file_name, parse_reference

ACCEPTED = {
    "1706.03762": "1706.03762",
    "1706.03762v5": "1706.03762v5",
    "1706.03762V5": "1706.03762v5",
    "  1706.03762v5\t\n": "1706.03762v5",
    "\xa01706.03762 ": "1706.03762",
    "1706.03762 v5": "1706.03762v5",
    "0704.0001": "0704.0001",
    "1412.6980v9": "1412.6980v9",
    "arXiv:1706.03762v7": "1706.03762v7",
    "arxiv:1706.03762": "1706.03762",
    "ARXIV: 1706.03762": "1706.03762",
    "arXiv : 1706.03762v2": "1706.03762v2",
    "arXiv:1706.03762v5 [cs.CL]": "1706.03762v5",
    "arXiv:hep-th/9901001 [hep-th]": "hep-th/9901001",
    "hep-th/9901001": "hep-th/9901001",
    "hep-th/9901001v2": "hep-th/9901001v2",
    "HEP-TH/9711200": "hep-th/9711200",
    "cs/0003044": "cs/0003044",
    "math/0211159": "math/0211159",
    "math.GT/0309136": "math/0309136",
    "arXiv:math.GT/0309136v1": "math/0309136v1",
    "https://arxiv.org/abs/1706.03762": "1706.03762",
    "http://arxiv.org/abs/1706.03762v5": "1706.03762v5",
    "HTTPS://ARXIV.ORG/abs/1706.03762": "1706.03762",
    "arxiv.org/abs/1706.03762": "1706.03762",
    "www.arxiv.org/abs/1706.03762/": "1706.03762",
    "https://arxiv.org:443/abs/1706.03762": "1706.03762",
    "https://arxiv.org/abs/1706.03762?context=cs.LG": "1706.03762",
    "https://arxiv.org/abs/1706.03762v2#comments": "1706.03762v2",
    "https://arxiv.org/abs/arXiv:1706.03762": "1706.03762",
    "https://arxiv.org/abs/hep-th/9408099": "hep-th/9408099",
    "https://arxiv.org/abs/hep-th%2F9408099v1": "hep-th/9408099v1",
    "https://arxiv.org/pdf/2505.18102v3.pdf": "2505.18102v3",
    "https://arxiv.org/pdf/2505.18102v3.PDF?download=1#page=3": "2505.18102v3",
    "https://arxiv.org/pdf/hep-th/9901001v1.pdf": "hep-th/9901001v1",
    "https://arxiv.org/html/2402.17753v1": "2402.17753v1",
    "https://arxiv.org/html/2402.17753v1#S3.T1": "2402.17753v1",
    "https://arxiv.org/src/2101.10016v7": "2101.10016v7",
    "https://arxiv.org/e-print/2101.10016": "2101.10016",
    "https://arxiv.org/format/2101.10016": "2101.10016",
    "https://export.arxiv.org/abs/2108.08810": "2108.08810",
    "https://ar5iv.labs.arxiv.org/html/2108.08810": "2108.08810",
    "10.48550/arXiv.1706.03762": "1706.03762",
    "10.48550/ARXIV.1706.03762": "1706.03762",
    "doi:10.48550/arXiv.1706.03762": "1706.03762",
    "DOI: 10.48550/arxiv.1706.03762": "1706.03762",
    "doi.org/10.48550/arXiv.1706.03762": "1706.03762",
    "https://doi.org/10.48550/arXiv.1706.03762": "1706.03762",
    "http://dx.doi.org/10.48550/arXiv.1706.03762": "1706.03762",
    "https://www.doi.org/10.48550/arXiv.hep-th/9901001": "hep-th/9901001",
    "https://doi.org/10.48550%2FarXiv.1706.03762": "1706.03762",
    "https://huggingface.co/papers/1706.03762": "1706.03762",
    "hf.co/papers/1706.03762": "1706.03762",
    "https://www.alphaxiv.org/abs/1706.03762v5": "1706.03762v5",
    "https://alphaxiv.org/overview/1706.03762?tab=blog": "1706.03762",
}


@pytest.mark.parametrize(("text", "canonical"), ACCEPTED.items(), ids=ascii)
def test_every_spelling_names_the_paper_and_keeps_its_version(text: str, canonical: str) -> None:
    assert parse_reference(text).canonical == canonical


REFUSED = {
    "": "no paper is named",
    " \n ": "no paper is named",
    "attention is all you need": "is not an arXiv paper",
    "https://example.com/2505.18102": "is not an arXiv paper",
    "https://example.com/abs/2505.18102": "is not an arXiv paper",
    "https://arxiv.org.example.com/abs/2505.18102": "is not an arXiv paper",
    "https://arxiv.org@example.com/abs/2505.18102": "is not an arXiv paper",
    "https://notarxiv.org/abs/2505.18102": "is not an arXiv paper",
    "https://arxiv.org/list/cs.CL/recent": "is not an arXiv paper",
    "https://arxiv.org/abs/": "is not an arXiv paper",
    "https://arxiv.org/abs/1706.03762/extra": "is not an arXiv paper",
    "https://huggingface.co/gpt2": "is not an arXiv paper",
    "https://doi.org/10.1000/182": "is not an arXiv paper",
    "ftp://arxiv.org/abs/1706.03762": "is not an arXiv paper",
    "http://[": "is not an arXiv paper",
    "1706.03762\n1706.03763": "is not an arXiv paper",
    "1706.03762 1706.03763": "is not an arXiv paper",
    "1706.03762; rm -rf ~": "is not an arXiv paper",
    "1706.03762v": "is not an arXiv paper",
    "1706.03762v0": "is not an arXiv paper",
    "1706.03762v5000": "is not an arXiv paper",
    "1706.037620": "is not an arXiv paper",
    "../1706.03762": "is not an arXiv paper",
    "1706.\x0003762": "is not an arXiv paper",
    "１７０６.03762": "is not an arXiv paper",
    "1713.03762": "1713 names no month",
    "1700.03762": "1700 names no month",
    "0703.0001": "begin with 0704",
    "1706.0376": "5 digits",
    "1412.69800": "4 digits",
    "1706.00000": "numbered from 1",
    "hep-th/9913001": "9913 names no month",
    "hep-th/9106001": "July 1991 to March 2007",
    "hep-th/0704001": "July 1991 to March 2007",
    "foo-th/9901001": "no archive foo-th",
}


@pytest.mark.parametrize(("text", "part"), REFUSED.items(), ids=ascii)
def test_anything_else_is_refused_in_one_line(text: str, part: str) -> None:
    with pytest.raises(PaperkilnError) as caught:
        parse_reference(text)
    line = str(caught.value)
    assert part in line
    assert "10.48550/arXiv.1706.03762" in line  # what is accepted
    assert line.isprintable()


def test_a_long_text_is_not_echoed() -> None:
    with pytest.raises(PaperkilnError) as caught:
        parse_reference("x" * 1_000_000)
    assert len(str(caught.value)) < 400


def test_addresses() -> None:
    reference = parse_reference("arXiv:hep-th/9901001v2")
    assert (reference.id, reference.version) == ("hep-th/9901001", 2)
    assert str(reference) == "hep-th/9901001v2"
    assert reference.abs_url == "https://arxiv.org/abs/hep-th/9901001v2"
    assert reference.at(None).canonical == "hep-th/9901001"


_NEW = st.builds("{:02}{:02}.{:04}".format, st.integers(8, 14), st.integers(1, 12),
                 st.integers(1, 9999))  # fmt: skip
_OLD = st.builds("{}/{:02}{:02}{:03}".format, st.sampled_from(sorted(ARCHIVES)),
                 st.integers(92, 99), st.integers(1, 12), st.integers(1, 999))  # fmt: skip
_IDS = st.one_of(_NEW, _OLD)
_VERSIONS = st.one_of(st.none(), st.integers(1, 99))


@given(_IDS, _VERSIONS)
def test_a_reference_survives_every_form_it_is_written_in(paper: str, version: int | None) -> None:
    reference = Reference(paper, version)
    pdf, source = (reference.abs_url.replace("abs", what) for what in ("pdf", "src"))
    for text in (reference.canonical, reference.abs_url, pdf, source):
        assert parse_reference(text) == reference
    assert "/" not in reference.file_name
    assert from_file_name(reference.file_name) == reference


@given(st.one_of(st.text(max_size=80), st.from_regex(r"\A(https?://)?[\w.:@/%\[\]?#-]{0,60}\Z")))
def test_arbitrary_text_gives_a_reference_or_one_clear_line(text: str) -> None:
    try:
        reference = parse_reference(text)
    except PaperkilnError as error:
        line = str(error)
    else:
        assert parse_reference(reference.canonical) == reference
        line = reference.canonical
    assert line.isprintable()
