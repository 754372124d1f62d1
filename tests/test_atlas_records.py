"""Records and the ledger: what a kill leaves is mended, what anyone touched is found."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from paperkiln.atlas import records
from paperkiln.atlas.records import (
    LEDGER,
    NO_HASH,
    append_record,
    canonical,
    digest,
    ledger_problems,
    mend,
    read_ledger,
    read_records,
)
from paperkiln.errors import PaperkilnError


def record(run: str, study: str = "one", **fields: object) -> dict[str, object]:
    return {"study": study, "run": run, "loss": [1.5, 2.25], **fields}


@pytest.fixture
def atlas(tmp_path: Path) -> Path:
    """Three records of one study and two of another, in turns."""
    for run, study in (("a", "one"), ("a", "two"), ("b", "one"), ("c", "one"), ("b", "two")):
        append_record(tmp_path, record(run, study))
    return tmp_path


def records_of(atlas: Path, study: str = "one") -> Path:
    return atlas / "studies" / study / "records.jsonl"


def test_canonical_json_is_one_text() -> None:
    assert canonical({"b": 1.0, "a": ["é", None]}) == '{"a":["é",null],"b":1.0}'
    assert digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(float("nan"))


def test_the_chain(atlas: Path) -> None:
    entries = read_ledger(atlas)
    assert [(e["seq"], e["study"], e["run"]) for e in entries] == [
        (1, "one", "a"), (2, "two", "a"), (3, "one", "b"), (4, "one", "c"), (5, "two", "b"),
    ]  # fmt: skip
    assert [e["previous"] for e in entries] == [NO_HASH, *(e["hash"] for e in entries[:-1])]
    assert [r["run"] for r in read_records(records_of(atlas).parent)] == ["a", "b", "c"]
    assert entries[0]["sha256"] == digest(record("a"))
    assert ledger_problems(atlas) == []


def test_an_empty_atlas_has_no_problems(tmp_path: Path) -> None:
    assert ledger_problems(tmp_path) == []
    assert read_ledger(tmp_path) == read_records(tmp_path) == []


def test_a_run_is_recorded_once(atlas: Path) -> None:
    with pytest.raises(PaperkilnError, match="has a record of b already"):
        append_record(atlas, record("b"))
    assert ledger_problems(atlas) == []


# --- Kills ----------------------------------------------------------------------------------------


def die_at(n: int) -> None:
    """Let this process kill itself at its n-th write or sync, before it or inside its line."""
    left, fsync, append = n, os.fsync, records._append

    def touch() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def torn(path: Path, line: str) -> None:
        if touch():
            die()
        if touch():
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "ab") as file:
                file.write(line.encode()[: len(line) // 2])
            die()
        append(path, line)

    records._append = torn
    os.fsync = lambda descriptor: die() if touch() else fsync(descriptor)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("n", range(6))
@pytest.mark.parametrize("first", [True, False])
def test_killed_at_every_write_and_mended(tmp_path: Path, n: int, first: bool) -> None:
    if not first:
        append_record(tmp_path, record("a"))
    child = os.fork()
    if child == 0:
        die_at(n)
        append_record(tmp_path, record("b"))
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status)
    mend(tmp_path, records_of(tmp_path).parent)
    assert ledger_problems(tmp_path) == []
    if n < 2:  # the record never came: the run is still to be done
        append_record(tmp_path, record("b"))
    assert [r["run"] for r in read_records(records_of(tmp_path).parent)] == ["a", "b"][first:]
    assert ledger_problems(tmp_path) == []


def test_a_torn_line_longer_than_a_block_is_cut_off(atlas: Path) -> None:
    before = records_of(atlas).read_bytes()
    with open(records_of(atlas), "ab") as file:
        file.write(b'{"loss":[' + b"1," * 100_000)
    assert any("torn" in problem for problem in ledger_problems(atlas))
    mend(atlas, records_of(atlas).parent)
    assert records_of(atlas).read_bytes() == before


def test_more_than_a_kill_leaves_is_not_mended_away(atlas: Path) -> None:
    with open(records_of(atlas), "a") as file:
        file.write(canonical(record("x")) + "\n" + canonical(record("y")) + "\n")
    with pytest.raises(PaperkilnError, match=r"has 5 records, .* has 3 of them"):
        mend(atlas, records_of(atlas).parent)


# --- Tampering ------------------------------------------------------------------------------------


def lines(change: Callable[[list[str]], list[str]]) -> Callable[[str], str]:
    return lambda text: "".join(line + "\n" for line in change(text.splitlines()))


TAMPERED = [
    ("records", lambda t: t.replace("2.25", "2.24", 1), "the record of a was edited"),
    ("records", lambda t: t.replace(",", ", ", 1), "the record of a was edited"),
    ("records", lines(lambda x: x[1:]), "the record of a is missing"),
    ("records", lines(lambda x: x[:-1]), "the record of c is missing"),
    ("records", lines(lambda x: [x[1], x[0], x[2]]), "in another order than in the ledger"),
    ("records", lines(lambda x: [*x, canonical(record("d"))]), "d has no ledger line"),
    ("records", lines(lambda x: [*x, x[0]]), "a has two records"),
    ("records", lambda t: t + "{", "the last line is torn"),
    ("records", lambda t: "x\n" + t, "not a JSON object"),
    ("records", lambda t: "{}\n" + t, "not the record of a run"),
    ("ledger", lines(lambda x: x[1:]), "seq is 2: lines were taken out"),
    ("ledger", lines(lambda x: x[:-1]), "studies/two/records.jsonl: b has no ledger line"),
    ("ledger", lines(lambda x: [x[1], x[0], *x[2:]]), "the chain is broken"),
    ("ledger", lambda t: t.replace('"run":"c"', '"run":"z"'), "the line was edited"),
    ("ledger", lambda t: t.replace('"seq":3', '"seq":9'), "seq is 9"),
    ("ledger", lambda t: t.replace('"two"', '"../two"'), "not the name of a study"),
    ("ledger", lambda t: t.replace('"seq":3', '"seq":true'), "not a line of a ledger"),
    ("ledger", lambda t: t.replace('"seq":3,', ""), "not a line of a ledger"),
    ("ledger", lambda t: t[:-5], "the last line is torn"),
    ("ledger", lambda t: "", "a has no ledger line"),
]


@pytest.mark.parametrize(("which", "change", "problem"), TAMPERED)
def test_what_was_touched_is_found(
    atlas: Path, which: str, change: Callable[[str], str], problem: str
) -> None:
    path = records_of(atlas) if which == "records" else atlas / LEDGER
    text = path.read_text()
    assert change(text) != text
    path.write_text(change(text))
    assert any(problem in found for found in ledger_problems(atlas)), ledger_problems(atlas)


def test_an_edited_record_with_its_ledger_line_forged_breaks_the_chain(atlas: Path) -> None:
    records_of(atlas).write_text(records_of(atlas).read_text().replace("2.25", "2.24", 1))
    entries = read_ledger(atlas)
    entry = {k: v for k, v in entries[0].items() if k != "hash"}
    entry["sha256"] = digest(json.loads(records_of(atlas).read_text().splitlines()[0]))
    entries[0] = entry | {"hash": digest(entry)}
    (atlas / LEDGER).write_text("".join(canonical(e) + "\n" for e in entries))
    assert ledger_problems(atlas) == [
        "ledger.jsonl:2 (two/a): the chain is broken: it does not follow the line before"
    ]


def test_a_study_that_is_gone_is_missed(atlas: Path) -> None:
    records_of(atlas).unlink()
    assert len(ledger_problems(atlas)) == 3


def test_a_file_of_any_size_is_not_read_whole(atlas: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_MAX_LINE_BYTES", 20)
    with pytest.raises(PaperkilnError, match="longer than any record"):
        read_ledger(atlas)
    monkeypatch.setattr(records, "_MAX_FILE_BYTES", 20)
    with pytest.raises(PaperkilnError, match="too many to read"):
        read_records(records_of(atlas).parent)
