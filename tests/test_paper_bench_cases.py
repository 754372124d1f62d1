"""Papers and their truth are read from a folder or the shipped table; trouble is one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paperkiln.errors import PaperkilnError
from paperkiln.papers.bench.bench import open_case
from paperkiln.papers.bench.cases import load_arxiv_table, load_folder, template_groups


def write(root: Path, *records: Any, manifest: str = "manifest.jsonl") -> Path:
    """A folder of papers: each record's files are written with a template of its own."""
    root.mkdir(exist_ok=True)
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    (root / manifest).write_text("\n".join(lines), encoding="utf-8")
    for record in records:
        if isinstance(record, dict) and isinstance(record.get("files"), list):
            for name in record["files"]:
                path = root / str(record.get("id")) / str(name)
                if path.resolve().is_relative_to(root.resolve()):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text("\\documentclass{x}\n\\begin{document}", encoding="utf-8")
    return root


def record(name: str = "p", **more: Any) -> dict[str, Any]:
    return {"id": name, "files": ["main.tex"], "truth": {"d_model": 64}, **more}


def test_a_folder_is_read(tmp_path: Path) -> None:
    root = write(
        tmp_path / "papers",
        record("a-1", title="A", truth_alternatives={"d_model": [65, None]}, note="ignored"),
        "",
        record("a-2", files=["sections/a.tex"], truth_public={"d_ff": 8}, template="t"),
    )
    write(root, record("a-3"), record("a-1", truth_alternatives={"d_model": [65, None]}),
          manifest="manifest_more.jsonl")  # fmt: skip
    first, second, third = load_folder(root)
    assert (first.id, first.title, dict(first.truth)) == ("a-1", "A", {"d_model": 64})
    assert first.alternatives == {"d_model": (65, None)}
    assert second.public == {"d_ff": 8}
    assert second.files == ("sections/a.tex",)
    assert [case.group for case in (first, second, third)] == ["a-1", "t", "a-1"]
    assert first.folder == root / "a-1"


DEEP = '{"id": ' + "[" * 100_000
BAD = [
    (["{"], "manifest.jsonl line 1: not JSON"),
    ([record(), "no"], "manifest.jsonl line 2: not JSON"),
    ([DEEP], "line 1: not JSON"),
    (["[]"], "line 1: not a JSON object"),
    ([{"id": "a"}], "'truth' must be an object"),
    ([record(id=3)], "'id' must be a text"),
    ([record(title=None)], "'title' must be a text"),
    ([record(truth_alternatives=[])], "'truth_alternatives' must be an object"),
    ([record(truth_alternatives={"norm": "rmsnorm"})], "alternatives of 'norm' must be a list"),
    ([record(truth={"norm": ["rmsnorm"]})], "the truth of 'norm' must be one value or null"),
    ([record(files="main.tex")], "'files' must list the paper's files"),
    ([record(files=[])], "'files' must list the paper's files"),
    ([record(files=[1])], "'files' must list the paper's files"),
    ([record(files=["../p.tex"])], "'../p.tex' is no path within the folder"),
    ([record(files=["a/../../p.tex"])], "is no path within the folder"),
    ([record(files=["/etc/passwd"])], "'/etc/passwd' is no path within the folder"),
    ([record(files=["a\\b.tex"])], "is no path within the folder"),
    ([record("..")], "'..' is no path within the folder"),
    ([record("")], "'' is no path within the folder"),
    ([record(), record(truth={"d_model": 65})], "line 2: another truth for p"),
    ([""], "manifest.jsonl lists no paper"),
]


@pytest.mark.parametrize(("records", "message"), BAD, ids=[message for _, message in BAD])
def test_a_bad_manifest_is_one_line(tmp_path: Path, records: list[Any], message: str) -> None:
    root = write(tmp_path / "papers", *records)
    with pytest.raises(PaperkilnError) as caught:
        load_folder(root)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_things_are_named(tmp_path: Path) -> None:
    with pytest.raises(PaperkilnError, match="is no folder"):
        load_folder(tmp_path / "nowhere")
    with pytest.raises(PaperkilnError, match=r"has no manifest\*.jsonl"):
        load_folder(tmp_path)
    root = write(tmp_path / "papers", record())
    (root / "p" / "main.tex").unlink()
    with pytest.raises(PaperkilnError, match=r"main\.tex is missing"):
        load_folder(root)
    (tmp_path / "outside.tex").write_text("secret")
    (root / "p" / "main.tex").symlink_to(tmp_path / "outside.tex")
    with pytest.raises(PaperkilnError, match=r"'main\.tex' leads out of the folder"):
        load_folder(root)
    (root / "manifest.jsonl").write_bytes(b'{"id": "\xff"}')
    with pytest.raises(PaperkilnError, match="line 1: not JSON in UTF-8"):
        load_folder(root)


def test_a_case_of_the_table_has_to_be_fetched() -> None:
    with pytest.raises(PaperkilnError, match="fetch it first"):
        open_case(load_arxiv_table()[0])


def test_the_shipped_table_is_complete() -> None:
    cases = load_arxiv_table()
    assert len({case.id for case in cases}) == 40
    assert sum(len(case.truth) for case in cases) == 92
    truths = {case.title: dict(case.truth) for case in cases}
    assert truths["LaMDA"] == {"activation": "geglu", "positional": "outside"}
    assert truths["T5"] == {"activation": "relu"}
    lattice = {
        "norm": {"rmsnorm", "layernorm"},
        "activation": {"swiglu", "geglu", "gelu", "relu", "outside"},
        "positional": {"rope", "alibi", "sinusoidal", "learned", "outside"},
    }
    assert all(v in lattice[name] for truth in truths.values() for name, v in truth.items())
    abstaining = [v for truth in truths.values() for v in truth.values() if v == "outside"]
    assert len(abstaining) == 6


def test_template_groups_follow_preambles_and_ids() -> None:
    base = frozenset("abcdefgh")
    groups = template_groups(
        {
            "zen-base": base,
            "zen2": base - {"e", "f"},
            "zen-odd": frozenset("xyz"),
            "zen3": frozenset("efghijkl"),  # 4 of 12 with zen-base
            "zen-late": frozenset("ijklmno"),  # 4 of 11 with zen3 only
            "other": base,
            "2401.00001": base,
            "2401.00002": base,
        }
    )
    assert groups == {
        "zen-base": "zen-base", "zen2": "zen-base", "zen3": "zen-base", "zen-late": "zen-base",
        "zen-odd": "zen-odd", "other": "other",
        "2401.00001": "2401.00001", "2401.00002": "2401.00002",
    }  # fmt: skip
