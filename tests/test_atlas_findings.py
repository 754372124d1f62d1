"""Findings: what is read, what is refused, the state of each id, and the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_findings import REGISTRY, finding
from made_study import DRAFT, hypothesis

from paperkiln.atlas.findings import (
    Finding,
    Preregistration,
    current,
    find,
    finding_schema,
    line_of,
    parse_lines,
    preregistration_schema,
    read_findings,
    read_preregistration,
    validated,
)
from paperkiln.atlas.table import findings_table
from paperkiln.errors import PaperkilnError

SPECS = Path(__file__).parent.parent / "specs"
STEP = {"date": "2026-01-03", "status": "retracted", "note": "why"}


@pytest.mark.parametrize(
    ("name", "verb", "schema"),
    [
        ("finding", "findings", finding_schema()),
        ("preregistration", "preregister", preregistration_schema()),
    ],
)
def test_the_schemas_on_disk_are_the_code_s(name: str, verb: str, schema: dict[str, Any]) -> None:
    on_disk = json.loads((SPECS / f"{name}.schema.json").read_text(encoding="utf-8"))
    assert on_disk == schema, f"write it again: paperkiln atlas {verb} --schema"


def test_a_finding_is_its_line_and_the_line_is_the_finding() -> None:
    for one in REGISTRY:
        assert list(parse_lines(line_of(one))) == [one]
        assert line_of(one).count("\n") == 1
    turn = json.loads(line_of(find(REGISTRY, "F-window")))["analysis"]
    assert turn == {
        "kind": "change", "metric": "best_val", "term": "attention", "from": 400, "to": 1600,
    }  # fmt: skip


def test_the_last_line_of_an_id_is_its_state(tmp_path: Path) -> None:
    later = finding(status="retracted", note="why", history=[STEP])
    lines = [finding(), finding("F-other"), later]
    (tmp_path / "findings.jsonl").write_text("".join(map(line_of, lines)))
    assert [(f.id, f.status) for f in read_findings(tmp_path)] == [
        ("F-muon", "retracted"), ("F-other", "supported"),
    ]  # fmt: skip
    assert current(lines)[0].history[0].note == "why"
    assert read_findings(tmp_path / "nowhere") == []


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"status": "retracted"}, "retracted needs a note"),
    ({"status": "superseded"}, "superseded needs superseded_by"),
    ({"status": "replicated"}, "replicated needs replicated_by"),
    ({"status": "pending"}, "pending is what is unresolved"),
    ({"status": "supported", "outcome": "unresolved"}, "an unresolved finding is pending"),
    ({"check": {"outcome": "higher", "alpha": 0.05, "margin": None}}, "the check tests higher"),
    ({"history": [STEP]}, "its history ends retracted"),
    ({"status": "proven"}, "status"),
    ({"effect": float("nan")}, "effect"),
    ({"effect": float("inf")}, "effect"),
    ({"p": 1.5}, "p: "),
    ({"se": -1}, "se: "),
    ({"seeds": 0}, "seeds"),
    ({"id": "../up"}, "id: "),
    ({"claim": "two\nlines"}, "one line of printable characters"),
    ({"claim": "\x1b[2J"}, "printable"),
    ({"claim": "\u202eright to left"}, "printable"),
    ({"claim": "x" * 2001}, "claim"),
    ({"receipts": ["/etc/passwd"]}, "receipts"),
    ({"receipts": ["studies/../../x"]}, "receipts"),
    ({"receipts": ["studies/.git/x"]}, "receipts"),
    ({"receipts": []}, "receipts"),
    ({"metric": "best val"}, "metric"),
    ({"analysis": {"kind": "vibes"}}, "analysis"),
    ({"colour": "red"}, "colour"),
    ({"date": "yesterday"}, "date"),
    ({"ci": [1]}, "ci"),
]


@pytest.mark.parametrize(("changes", "part"), REFUSED, ids=lambda v: str(v)[:50])
def test_a_line_that_is_no_finding(changes: dict[str, Any], part: str) -> None:
    values = json.loads(line_of(finding())) | changes
    with pytest.raises(PaperkilnError) as error:
        validated(Finding, values, "f:1")
    assert str(error.value).startswith("f:1: ")
    assert part in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("line", ["{", "[]", "[" * 10_000, '{"id": "F"}', "9" * 5000])
def test_a_file_of_something_else_names_its_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "findings.jsonl").write_text(line_of(finding()) + line + "\n")
    with pytest.raises(PaperkilnError, match=r"findings\.jsonl:2: "):
        read_findings(tmp_path)


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "findings.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(PaperkilnError, match="not UTF-8"):
        read_findings(tmp_path)


def _preregistration(**changes: Any) -> dict[str, Any]:
    values = {key: value for key, value in DRAFT.items() if key != "sweep"}
    return values | {"date": "2026-01-02", "study": "s", "sweep_sha256": "0" * 64} | changes


EFFECT = {"kind": "effect", "metric": "best_val", "term": "lr"}


@pytest.mark.parametrize(
    ("hypotheses", "part"),
    [
        ([], "hypotheses"),
        ([hypothesis("F-a", EFFECT), hypothesis("F-a", EFFECT)], "F-a stands there twice"),
        ([hypothesis("F-a", EFFECT) | {"claims": {"lower": "x"}}], "lacks a sentence for higher"),
        ([hypothesis("F-a", EFFECT, None) | {"expected": "equivalent"}], "without a margin"),
        ([hypothesis("F-a", EFFECT, -0.1)], "margin"),
        ([hypothesis("F-a", EFFECT | {"given": {"a": "b"}})], "given"),
        ([hypothesis("F-a", {"kind": "simple", "metric": "m", "term": "a", "given": {}})], "given"),
    ],
)
def test_what_is_no_preregistration(hypotheses: list[Any], part: str) -> None:
    with pytest.raises(PaperkilnError, match=part):
        validated(Preregistration, _preregistration(hypotheses=hypotheses), "p")
    assert validated(Preregistration, _preregistration(), "p").alpha == 0.05


def test_a_preregistration_is_found_by_its_id(tmp_path: Path) -> None:
    folder = tmp_path / "preregistrations"
    folder.mkdir()
    (folder / "trio.json").write_text(json.dumps(_preregistration()))
    assert read_preregistration(tmp_path, "trio").id == "trio"
    for name in ("../trio", "other", "", "trio.json\0"):
        with pytest.raises(PaperkilnError, match="known: trio"):
            read_preregistration(tmp_path, name)
    (folder / "trio.json").rename(folder / "duo.json")
    with pytest.raises(PaperkilnError, match="named after its id"):
        read_preregistration(tmp_path, "duo")


def test_the_table_shows_claim_evidence_and_fate() -> None:
    text = findings_table(REGISTRY)
    for part in ("F-muon ", "supported", "-0.31 [-0.35, -0.27], p 4e-09 (Holm), 36 runs, 3 seeds",
                 "retracted: An artefact", "superseded: see F-lr-optimizer; It"):  # fmt: skip
        assert part in text, text
    assert findings_table([]) == "no findings"
    assert findings_table(REGISTRY, status="retracted").startswith("F-batch-spikes  retracted")
    assert findings_table(REGISTRY, factor="lr").count("scope:") == 2


def test_the_table_in_markdown_has_one_line_a_finding() -> None:
    hostile = finding("F-x", claim="a | b <script> ~~c~~ [x](http://y)")
    lines = findings_table([*REGISTRY, hostile], markdown=True).split("\n")
    assert len(lines) == 2 + len(REGISTRY) + 1
    assert all(line.replace("\\|", "").count("|") == 6 for line in lines)
    escaped = next(line for line in lines if "F-x" in line)
    assert r"a \| b \<script\> \~\~c\~\~ \[x\]" in escaped
    corrected = ["**retracted**" in line or "**superseded**" in line for line in lines]
    assert corrected == sorted(corrected), "what stands comes first"
    retracted = next(line for line in lines if "F-batch-spikes" in line)
    assert "~~A batch of 16 spikes" in retracted
    assert "artefact" in retracted


def test_filters_are_checked() -> None:
    with pytest.raises(PaperkilnError, match="choose one of supported"):
        findings_table(REGISTRY, status="true")
    with pytest.raises(PaperkilnError, match="factors: activation"):
        findings_table(REGISTRY, factor="colour")
    with pytest.raises(PaperkilnError, match="did you mean F-muon"):
        find(REGISTRY, "F-muonn")
    with pytest.raises(PaperkilnError, match="none yet"):
        find([], "F")
