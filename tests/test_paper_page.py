"""The page of a paper: well-formed, self-contained, values and quotes linked both ways."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperkiln.papers.architecture import (
    Architecture,
    Check,
    Evidence,
    Inheritance,
    Mention,
    Scalar,
    Value,
    Variant,
)
from paperkiln.papers.document import Document, SourceFile, Text
from paperkiln.papers.emit.page import to_html

VOID = {"meta", "br", "hr", "img", "link", "input"}
SOURCE = """\\documentclass{article}
\\section{Model}
The width is $d=512$ and the six layers use ReLU, not GELU.
% a remark
We follow GPT-2, with dropout.
\\end{document}
"""
UNSEEN = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
HOSTILE = "</script><script>alert(1)</script> ]]> <!-- \" ' & <img src=x onerror=alert(1)> \x00\x1b"


class Reader(HTMLParser):
    """Collects elements and text, and fails on tags that do not nest."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(attrs) == len(dict(attrs)), f"{tag} has an attribute twice"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["script"], ["style"]):
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())


def document(*files: SourceFile) -> Document:
    return Document(Text("A Paper"), [], {f.name: f for f in files}, files[0].name)


def quoted(file: SourceFile, quote: str, section: str = "Model") -> Evidence:
    start = file.text.index(quote)
    end = start + len(quote)
    return Evidence(file.name, file.line(start), start, end, quote, quote, section)


def saying(name: str, value: Scalar, *evidence: Evidence) -> Architecture:
    """Make a paper that says one thing."""
    return Architecture("A", values={name: Value(value, "used", evidence)})


def paper(file: SourceFile) -> Architecture:
    """Make a paper with every kind of entry."""
    a = Architecture("A Paper", "2401.00001", file.name, model="base", files=[file.name])
    sentence = "The width is $d=512$ and the six layers use ReLU, not GELU."
    a.values = {
        "d_model": Value(512, "used", (quoted(file, "$d=512$"), quoted(file, sentence))),
        "n_layers": Value(6, "used", (quoted(file, sentence),), cues=("'layers' with its value",)),
        "activation": Value(
            "relu", "contested", (quoted(file, "ReLU"),), cues=("used in the method",),
            runner_up=Mention("gelu", 2.0, quoted(file, "GELU"), ("named beside it",)),
        ),
        "norm": Value("layernorm", "inherited", (quoted(file, "follow GPT-2"),), note="as GPT-2"),
        "bias": Value(True, "used", (quoted(file, "dropout"),)),
        "n_parameters": Value(1_300_000_000, "derived", (quoted(file, "512"),)),
    }  # fmt: skip
    a.training = {"lr": Value(0.0006, "used", (quoted(file, "dropout"),))}
    a.unresolved = {"positional": "named only as rejected", "dropout": "not stated"}
    mention = Mention("rope", 1.0, quoted(file, "six layers"), vetoed="rejected: no gains")
    a.mentions = {"positional": [mention]}
    a.inherits = Inheritance("GPT-2", "Radford et al. 2019", quoted(file, "follow GPT-2"))
    a.variants = [Variant("big", {"d_model": 1024, "n_layers": 12}, quoted(file, "six"))]
    a.checks = [Check("heads", True, "8 × 64 = 512"), Check("sum", False, "off by a half"),
                Check("ffn", None, "d_ff is open")]  # fmt: skip
    a.notes = ["a file is missing"]
    return a


def page_of(a: Architecture, *files: SourceFile) -> Reader:
    return Reader(to_html(a, document(*files)))


@pytest.fixture
def file() -> SourceFile:
    return SourceFile("main.tex", SOURCE)


# --- what the page shows ----------------------------------------------------------------------


def test_everything_that_is_known_and_open_is_on_the_page(file: SourceFile) -> None:
    words = page_of(paper(file), file).words
    for text in (
        "A Paper", "arXiv:2401.00001", "base", "512", "relu or gelu", "against gelu", "contested",
        "named beside it", "used in the method", "inherited", "as GPT-2", "1.3B", "yes", "0.0006",
        "Open: not guessed", "named only as rejected", "named, not applied: rope",
        "rejected: no gains", "not stated", "big", "1024", "8 × 64 = 512", "fails off by a half",
        "not made d_ff is open", "a file is missing", "follows GPT-2", "main.tex:3",
    ):  # fmt: skip
        assert text in words, text
    assert "The width is $d=512$ and the six layers use ReLU, not GELU." in words
    assert "\\documentclass{article}" in words


def test_values_lead_to_their_quotes_and_quotes_to_their_values(file: SourceFile) -> None:
    a = paper(file)
    page = page_of(a, file)
    ids = page.ids()
    assert len(ids) == len(set(ids))
    targets = [link["href"][1:] for link in page.all("a")]
    assert all(target in ids for target in targets)
    # Every quote is the goal of a link and says which rows it speaks for; every row is there.
    quotes = {name for name in ids if re.fullmatch(r"q\d+", name)}
    assert quotes <= set(targets)
    spoken_for = {row for q in page.all("a") for row in q.get("data-of", "").split()}
    rows = {name for name in ids if re.fullmatch(r"v\d+", name)}
    with_evidence = len(a.values) + len(a.training) + 1 + 1 + 1  # positional, inherits, big
    assert len(spoken_for) == with_evidence
    assert spoken_for <= rows
    assert rows - spoken_for == {f"v{len(a.values) + len(a.training) + 2}"}  # dropout has no quote


def test_one_stretch_that_says_two_things_is_marked_once(file: SourceFile) -> None:
    a = Architecture("A", files=["main.tex"])
    a.values = {name: Value(6, "used", (quoted(file, "six layers"),))
                for name in ("n_layers", "n_heads")}  # fmt: skip
    (quote,) = [link for link in page_of(a, file).all("a") if "data-of" in link]
    assert quote["data-of"] == "v1 v2"
    assert quote["title"] == "Layers: 6; Heads: 6"


def test_overlapping_quotes_leave_the_line_as_it_was(file: SourceFile) -> None:
    raw = to_html(paper(file), document(file))
    line = re.search(r"<span>3</span><code>(.*?)</code>", raw)
    assert line
    plain = html.unescape(re.sub(r"<[^>]*>", "", line[1]))
    assert plain == SOURCE.splitlines()[2]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_lines_are_numbered_as_the_author_s_editor_does(ending: str) -> None:
    text = ending.join(["one", "two", "", "four"])
    file = SourceFile("a.tex", text)
    a = Architecture(
        "A", files=["a.tex"], values={"bias": Value(True, "used", (quoted(file, "four"),))}
    )
    raw = to_html(a, document(file))
    numbered = re.findall(r"<span>(\d+)</span><code>(.*?)</code>", raw)
    assert [(n, re.sub(r"<[^>]*>", "", line)) for n, line in numbered] == [
        ("1", "one"), ("2", "two"), ("3", ""), ("4", "four")
    ]  # fmt: skip


def test_a_quote_over_several_lines_is_one_stop_of_the_tab_key(file: SourceFile) -> None:
    quote = "not GELU.\n% a remark\nWe follow"
    a = Architecture(
        "A", files=["main.tex"], values={"norm": Value("x", "used", (quoted(file, quote),))}
    )
    links = [link for link in page_of(a, file).all("a") if "data-of" in link]
    assert [link.get("tabindex") for link in links] == [None, "-1", "-1"]
    assert [link.get("id") for link in links] == ["q1", None, None]


def test_a_quote_that_is_not_where_it_should_be_is_shown_without_a_link(file: SourceFile) -> None:
    lost = (
        Evidence("main.tex", 1, 0, 5, "never", "never", ""),
        Evidence("gone.tex", 1, 0, 5, "never", "never", ""),
        Evidence("main.tex", 1, -5, 10**9, "", "", ""),
    )
    page = page_of(Architecture("A", values={"norm": Value("layernorm", "used", lost)}), file)
    assert "“never”" in page.words
    assert [link["href"] for link in page.all("a")] == ["#source"]


def test_an_empty_paper_is_a_page() -> None:
    page = page_of(Architecture(""), SourceFile("main.tex", ""))
    assert "A paper without a title" in page.words


# --- that it asks nothing of anyone ------------------------------------------------------------


def test_the_page_stands_alone(file: SourceFile) -> None:
    raw = to_html(paper(file), document(file))
    page = Reader(raw)
    assert not re.search(r"(?:https?:)?//[\w.]+|@import|url\(", re.sub(r"//[^\n]*", "", raw))
    for tag, attributes in page.elements:
        assert not attributes.keys() & {"src", "srcset", "style", "action"}, tag
        assert not any(name.startswith("on") for name in attributes), tag
        assert attributes.get("href", "#").startswith("#")


def test_the_policy_allows_this_style_and_script_and_nothing_else(file: SourceFile) -> None:
    raw = to_html(paper(file), document(file))
    (policy,) = [m["content"] for m in Reader(raw).all("meta") if "http-equiv" in m]
    assert policy.startswith("default-src 'none';")
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", raw, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy


def test_a_hostile_paper_is_only_text() -> None:
    file = SourceFile(HOSTILE, f"{HOSTILE}\n\ud800 x {HOSTILE}")
    quote = quoted(file, HOSTILE, HOSTILE)
    mention = Mention(HOSTILE, 1.0, quote, (HOSTILE,), HOSTILE)
    a = Architecture(HOSTILE, HOSTILE, HOSTILE, HOSTILE, files=[HOSTILE])
    a.values = {
        "norm": Value(HOSTILE, "contested", (quote,), 1.0, (HOSTILE,), mention, HOSTILE),
        HOSTILE: Value(HOSTILE, "used", (quote,)),
    }
    a.training = {"lr": Value(HOSTILE, "used", (quote,))}
    a.unresolved, a.mentions = {"positional": HOSTILE}, {"positional": [mention]}
    a.inherits = Inheritance(HOSTILE, HOSTILE, quote)
    a.variants = [Variant(HOSTILE, {"d_model": 1, HOSTILE: HOSTILE}, quote)]
    a.checks, a.notes = [Check(HOSTILE, False, HOSTILE)], [HOSTILE]
    raw = to_html(a, document(file))
    raw.encode("utf-8")
    page = Reader(raw)
    assert len(page.all("script")) == 1
    assert page.all("img") == []
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", raw)
    for _, attributes in page.elements:
        assert not any(name.startswith("on") for name in attributes)
    assert page.words.count("alert(1)") >= 20


anything = st.text(st.characters(codec=None), max_size=40)


@settings(max_examples=60, deadline=None)
@given(st.lists(anything, min_size=1, max_size=8), st.data())
def test_any_source_keeps_its_characters(lines: list[str], data: st.DataObject) -> None:
    file = SourceFile("a.tex", "\n".join(lines))
    a = Architecture("A", files=["a.tex"])
    size = len(file.text)
    for name in ("d_model", "n_layers", "n_heads", "d_ff"):
        start = data.draw(st.integers(0, size))
        end = data.draw(st.integers(start, size))
        quote = file.text[start:end]
        place = Evidence("a.tex", file.line(start), start, end, quote, quote, "")
        a.values[name] = Value(1, "used", (place,))
    raw = to_html(a, document(file))
    page = Reader(raw)
    ids = page.ids()
    assert len(ids) == len(set(ids))
    assert all(link["href"][1:] in ids for link in page.all("a"))
    codes = re.findall(r"</span><code>(.*?)</code></div>", raw, re.DOTALL)
    shown = [html.unescape(re.sub(r"<[^>]*>", "", code)) for code in codes]
    plain = UNSEEN.sub("\ufffd", file.text)
    assert shown == re.split(r"\r\n|\r|\n", plain)


# --- sizes --------------------------------------------------------------------------------------


def test_far_lines_are_folded_up_and_still_there() -> None:
    filler = [f"line {i}" for i in range(100)]
    file = SourceFile("a.tex", "\n".join([*filler, "width 512", *filler]))
    a = Architecture(
        "A", files=["a.tex"], values={"d_model": Value(512, "used", (quoted(file, "512"),))}
    )
    raw = to_html(a, document(file))
    assert raw.count('<div class="l">') == 201
    assert "<details><summary>lines 1 to 94</summary>" in raw
    assert "<details><summary>lines 108 to 201</summary>" in raw


def test_files_that_are_not_the_paper_are_not_shown(file: SourceFile) -> None:
    other = SourceFile("other.tex", "SECRET")
    assert "SECRET" not in page_of(paper(file), file, other).words


@pytest.mark.parametrize("text", ["x = 512\n" * 400_000, "width 512 " * 400_000, "{" * 3_000_000])
def test_a_huge_source_makes_a_small_page(text: str) -> None:
    file = SourceFile("a.tex", f"depth 12\n{text}\nwidth 512 at the end")
    a = Architecture("A", files=["a.tex"])
    a.values = {"d_model": Value(512, "used", (quoted(file, "512 at the end"),)),
                "n_layers": Value(12, "used", (quoted(file, "12"),))}  # fmt: skip
    raw = to_html(a, document(file))
    assert len(raw) < 100_000
    assert "lines not shown" in raw or "characters not shown" in raw
    assert {"q1", "q2"} <= set(Reader(raw).ids())


def test_thousands_of_quotes_make_a_bounded_page() -> None:
    file = SourceFile("a.tex", "ab " * 20_000)
    a = Architecture("A", files=["a.tex"])
    for i in range(3_000):
        at = 3 * i
        place = Evidence("a.tex", 1, at, at + 2, "ab", "ab", "")
        a.values[f"field {i}"] = Value(1, "used", (place,))
    a.variants = [Variant(f"v{i}", {"d_model": i}, place) for i in range(3_000)]
    raw = to_html(a, document(file))
    assert len(raw) < 3_000_000
    ids = Reader(raw).ids()
    assert len([name for name in ids if name.startswith("q")]) <= 1_000


def test_numbers_read_as_people_write_them(file: SourceFile) -> None:
    cases: dict[str, Any] = {
        "d_model": (512, "512"), "vocab_size": (37000, "37,000"), "dropout": (0.1, "0.1"),
        "rope_theta": (500000.0, "500,000"), "n_parameters": (671e9, "671B"),
        "tied_embeddings": (False, "no"), "norm": ("rmsnorm", "rmsnorm"),
    }  # fmt: skip
    a = Architecture("A")
    a.values = {name: Value(value, "used", ()) for name, (value, _) in cases.items()}
    raw = to_html(a, document(file))
    shown = re.findall(r'<code>(\w+)</code></h3><p class="value">(.*?)</p>', raw)
    assert dict(shown) == {name: words for name, (_, words) in cases.items()}
