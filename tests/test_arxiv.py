"""Fetching from a real server on this machine that misbehaves in every way arXiv's may."""

from __future__ import annotations

import gzip
import http.server
import io
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

import paperkiln
from paperkiln.errors import PaperkilnError
from paperkiln.papers.source import arxiv, client
from paperkiln.papers.source.arxiv import Fetched, fetch, papers_folder
from paperkiln.papers.source.cache import PaperCache
from paperkiln.papers.source.client import Clock, seconds_asked
from paperkiln.papers.source.files import open_source
from paperkiln.papers.source.reference import parse_reference

TEX = b"\\documentclass{article}\\begin{document}Twelve layers.\\end{document}"
PDF = b"%PDF-1.5\n" + b"x" * 3000


def tar_gz(noise: int = 0) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        figure = random.Random(0).randbytes(noise)
        for name, content in {"ms.tex": TEX, "figure.pdf": figure}.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


SOURCE = tar_gz()
BIG = tar_gz(300_000)


@dataclass
class Reply:
    """One answer of the server; `cut` bytes of the body are sent before the connection dies."""

    body: bytes = SOURCE
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    length: bool = True
    ranges: bool = True
    pause: float = 0.0


def page(newest: int, text: str = "") -> Reply:
    history = "".join(f"<a href='/abs/x'>[v{v}]</a>" for v in range(1, newest + 1))
    return Reply(f"<html>{text}{history}</html>".encode())


MISSING = Reply(b"<html>not here</html>", 404)


@dataclass
class Server:
    """What it answers by path, in order, the last for ever; and what it was asked."""

    replies: dict[str, list[Reply]] = field(default_factory=dict)
    asked: list[tuple[float, str, dict[str, str]]] = field(default_factory=list)
    url: str = ""

    @property
    def paths(self) -> list[str]:
        return [path for _, path, _ in self.asked]

    def answer(self, path: str, headers: dict[str, str]) -> Reply | None:
        self.asked.append((time.time(), path, headers))
        left = self.replies.get(path, [MISSING])
        return left.pop(0) if len(left) > 1 else left[0]


def handler(server: Server) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            reply = server.answer(self.path, {k.lower(): v for k, v in self.headers.items()})
            self.close_connection = True
            body, status, extra = reply.body, reply.status, dict(reply.headers)
            wanted = self.headers.get("Range")
            same = self.headers.get("If-Range") in (None, extra.get("ETag"))
            if wanted and same and reply.ranges and status == 200:
                first, _, last = wanted.removeprefix("bytes=").partition("-")
                if int(first) >= len(body):
                    status, body = 416, b""
                else:
                    end = min(int(last or len(body)), len(body) - 1)
                    extra["Content-Range"] = f"bytes {first}-{end}/{len(body)}"
                    status, body = 206, body[int(first) : end + 1]
            with suppress(OSError):
                if reply.cut == 0 and status == 200 and not body:
                    return
                self.send_response(status)
                for name, value in extra.items():
                    self.send_header(name, value)
                if reply.length:
                    self.send_header("Content-Length", str(len(body)))
                self.send_header("Connection", "close")
                self.end_headers()
                for at in range(0, len(body[: reply.cut]), 50_000):
                    self.wfile.write(body[: reply.cut][at : at + 50_000])
                    self.wfile.flush()
                    time.sleep(reply.pause)

        def log_message(self, *args: Any) -> None:
            pass

    return Handler


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    state = Server()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(state)) as running:
        state.url = f"http://127.0.0.1:{running.server_address[1]}"
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield state
        running.shutdown()
        thread.join()


class FakeClock(Clock):
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now, self.slept = 1e9, []

    def wall(self) -> float:  # type: ignore[override]
        return self.now

    ticks = wall  # type: ignore[assignment]

    def sleep(self, seconds: float) -> None:  # type: ignore[override]
        assert seconds >= 0
        self.slept.append(seconds)
        self.now += seconds


@dataclass
class Reader:
    """A user with a cache of their own."""

    server: Server
    cache: Path
    clock: FakeClock = field(default_factory=FakeClock)
    notices: list[str] = field(default_factory=list)
    progress: list[tuple[int, int | None]] = field(default_factory=list)

    def __call__(self, text: str, **options: Any) -> Fetched:
        return fetch(
            parse_reference(text), self.cache, base_url=self.server.url, clock=self.clock,
            notice=self.notices.append, progress=lambda *now: self.progress.append(now), **options,
        )  # fmt: skip

    def refused(self, text: str, **options: Any) -> str:
        with pytest.raises(PaperkilnError) as caught:
            self(text, **options)
        line = str(caught.value)
        assert line.isprintable()
        return line


@pytest.fixture
def reader(server: Server, tmp_path: Path) -> Reader:
    return Reader(server, tmp_path / "papers")


# --- the cache ----------------------------------------------------------------------------------


def test_a_paper_is_asked_for_once_and_by_name(server: Server, reader: Reader) -> None:
    server.replies["/src/1706.03762v5"] = [Reply()]
    first, second = reader("1706.03762v5"), reader("1706.03762v5")
    assert (first.data, first.cached) == (SOURCE, False)
    assert (second.data, second.cached) == (SOURCE, True)
    assert list(open_source(first.data, "p")) == ["ms.tex"]
    assert server.paths == ["/src/1706.03762v5"]
    assert server.asked[0][2]["user-agent"].startswith(f"paperkiln/{paperkiln.__version__} (")
    assert reader.progress[-1] == (len(SOURCE), len(SOURCE))


@pytest.mark.parametrize(
    ("paper", "file_name"),
    [("1706.03762", "arXiv-1706.03762v7.tar.gz"), ("hep-th/9901001", "arXiv-9901001v7.gz")],
)
def test_no_version_means_the_one_arxiv_tells(
    server: Server, reader: Reader, paper: str, file_name: str
) -> None:
    named = {"Content-Disposition": f'attachment; filename="{file_name}"'}
    server.replies[f"/src/{paper}"] = [Reply(headers=named)]
    assert str(reader(paper).reference) == f"{paper}v7"
    assert str(reader(paper).reference) == f"{paper}v7"
    assert reader(f"{paper}v7").cached
    assert reader(paper, offline=True).cached
    assert len(server.asked) == 1
    assert list(map(str, PaperCache(reader.cache).listing())) == [f"{paper}v7"]
    assert not any("/" in p.name for p in reader.cache.iterdir())


def test_a_version_that_is_not_told(server: Server, reader: Reader) -> None:
    server.replies["/src/1706.03762"] = [Reply()]
    assert reader("1706.03762").reference.version is None
    assert reader("1706.03762").cached


def test_an_explicit_version_is_not_taken_for_the_newest(server: Server, reader: Reader) -> None:
    server.replies |= {"/src/1706.03762v2": [Reply()], "/src/1706.03762": [Reply(BIG)]}
    reader("1706.03762v2")
    assert reader("1706.03762").data == BIG


def test_refresh_replaces(server: Server, reader: Reader) -> None:
    server.replies["/src/1706.03762v1"] = [Reply(SOURCE), Reply(BIG)]
    reader("1706.03762v1")
    assert reader("1706.03762v1", refresh=True).data == BIG
    assert reader("1706.03762v1").data == BIG
    assert len(list(reader.cache.glob("*.source"))) == 1


def test_an_entry_that_another_process_replaces_is_no_trouble(tmp_path: Path) -> None:
    cache, paper = PaperCache(tmp_path), parse_reference("1706.03762v1")
    cache.keep(paper, paper, SOURCE)
    gone = tmp_path / "1706.03762v1.0123456789abcdef.source"
    there = cache._entries(paper)
    with pytest.MonkeyPatch.context() as patch:  # listed before, read after it was deleted
        patch.setattr(PaperCache, "_entries", lambda self, reference: [gone, *there])
        assert cache.find(paper) == (paper, SOURCE)


def test_a_refresh_that_fails_loses_nothing(server: Server, reader: Reader) -> None:
    server.replies["/src/1706.03762v1"] = [Reply(), Reply(b"no", 403)]
    reader("1706.03762v1")
    assert "refuses" in reader.refused("1706.03762v1", refresh=True)
    assert reader("1706.03762v1").data == SOURCE


@pytest.mark.parametrize("damage", [b"", b"x", SOURCE[:-9], SOURCE + b"x"])
def test_a_damaged_entry_is_fetched_again(server: Server, reader: Reader, damage: bytes) -> None:
    server.replies["/src/1706.03762v1"] = [Reply()]
    reader("1706.03762v1")
    (entry,) = reader.cache.glob("*.source")
    entry.write_bytes(damage)
    assert "not in the cache" in reader.refused("1706.03762v1", offline=True)
    again = reader("1706.03762v1")
    assert (again.data, again.cached) == (SOURCE, False)
    assert reader("1706.03762v1").cached


def test_a_damaged_note_of_the_newest_version(server: Server, reader: Reader) -> None:
    named = {"Content-Disposition": 'filename="arXiv-1706.03762v3.tar.gz"'}
    server.replies["/src/1706.03762"] = [Reply(headers=named)]
    reader("1706.03762")
    (reader.cache / "1706.03762.newest").write_text("three")
    assert not reader("1706.03762").cached
    assert reader("1706.03762").cached


def test_offline(server: Server, reader: Reader) -> None:
    line = reader.refused("1706.03762", offline=True)
    assert line.startswith("1706.03762 is not in the cache, and --offline forbids asking arXiv")
    assert "contradict" in reader.refused("1706.03762", offline=True, refresh=True)
    server.replies |= {f"/src/1706.03762v{v}": [Reply()] for v in (2, 10)}
    reader("1706.03762v2")
    reader("1706.03762v10")
    assert str(reader("1706.03762", offline=True).reference) == "1706.03762v10"
    assert reader.notices == ["1706.03762v10 is the newest version in the cache"]
    assert len(server.asked) == 2


def test_the_cache_that_is_used_by_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PAPERKILN_CACHE", str(tmp_path))
    assert papers_folder() == tmp_path / "papers"
    with pytest.raises(PaperkilnError, match="not in the cache"):
        fetch(parse_reference("1706.03762"), offline=True)


def test_a_cache_that_cannot_be_written(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    reader = Reader(server, tmp_path / "file" / "papers")
    assert "cannot be used" in reader.refused("1706.03762")


# --- patience -----------------------------------------------------------------------------------


def test_a_busy_server_is_waited_for_as_it_asks(server: Server, reader: Reader) -> None:
    date = formatdate(reader.clock.now + 3 + 6 + 7 + 60, usegmt=True)
    server.replies["/src/1706.03762v1"] = [
        Reply(b"", 429),
        Reply(b"", 429, {"Retry-After": "7"}),
        Reply(b"", 503, {"Retry-After": date}),
        Reply(b"", 503, {"Retry-After": "soon"}),
        Reply(),
    ]
    assert reader("1706.03762v1").data == SOURCE
    host = server.url.removeprefix("http://")
    assert [n.removeprefix(f"{host} ") for n in reader.notices] == [
        "has had too many requests (429); waiting 3 s (try 1 of 5)",
        "has had too many requests (429); waiting 7 s (try 2 of 5)",
        "is busy (503); waiting 66 s (try 3 of 5)",
        "is busy (503); waiting 24 s (try 4 of 5)",
    ]
    assert reader.clock.slept == [3, 7, 66, 24]  # longer than the interval, so none on top


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_server_that_stays_busy_is_given_up(server: Server, reader: Reader, status: int) -> None:
    server.replies["/src/1706.03762v1"] = [Reply(b"", status)]
    line = reader.refused("1706.03762v1")
    assert f"({status}), 5 times in a row; try again later" in line
    assert reader.clock.slept == [3, 6, 12, 24]
    assert len(server.asked) == 5


def test_a_server_that_asks_for_an_hour_is_not_asked_again(server: Server, reader: Reader) -> None:
    server.replies["/src/1706.03762v1"] = [Reply(b"", 429, {"Retry-After": "3600"})]
    assert "asks to wait 60 minutes; try again then" in reader.refused("1706.03762v1")
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None), ("", None), ("5", 5), (" 5 ", 5), ("-5", None), ("1.5", None), ("²", None),
        ("9" * 5000, 999_999_999), (formatdate(1e9 + 90, usegmt=True), 90),
        (formatdate(1e9 - 90, usegmt=True), 0), ("Mon, 99 Foo 2026 99:99:99 GMT", None),
    ],
)  # fmt: skip
def test_retry_after(text: str | None, seconds: float | None) -> None:
    assert seconds_asked(text, 1e9) == seconds


def test_requests_are_spaced_over_papers_and_redirects(server: Server, reader: Reader) -> None:
    server.replies |= {
        "/src/1706.03762v1": [Reply(b"", 301, {"Location": "/e-print/1706.03762v1"})],
        "/e-print/1706.03762v1": [Reply()],
        "/src/1706.03762v2": [Reply()],
    }
    reader("1706.03762v1")
    reader.clock.now += 1
    reader("1706.03762v2")
    assert server.paths == ["/src/1706.03762v1", "/e-print/1706.03762v1", "/src/1706.03762v2"]
    assert reader.clock.slept == [3, 2]


@pytest.mark.parametrize("shift", [-86_400, 0, 86_400])
@pytest.mark.parametrize("stamp", [None, "", "nonsense", "nan", "inf"])
def test_a_clock_that_jumps(
    server: Server, reader: Reader, shift: float, stamp: str | None
) -> None:
    server.replies["/src/1706.03762v1"] = [Reply()]
    reader("1706.03762v1")
    reader.clock.now += shift
    if stamp is not None:
        (reader.cache / "last-request").write_text(stamp)
    reader("1706.03762v1", refresh=True)
    assert sum(reader.clock.slept) <= 3
    if stamp is None:
        assert reader.clock.slept == ([3] if shift <= 0 else [])


def test_two_processes_share_the_pause(server: Server, tmp_path: Path) -> None:
    server.replies |= {f"/src/1706.0000{i}v1": [Reply()] for i in range(1, 7)}
    code = (
        "import sys; from pathlib import Path\n"
        "from paperkiln.papers.source.arxiv import fetch\n"
        "from paperkiln.papers.source.reference import parse_reference\n"
        "for text in sys.argv[3:]:\n"
        "    fetch(parse_reference(text), Path(sys.argv[2]), base_url=sys.argv[1], interval=0.3)\n"
    )
    papers = [f"1706.0000{i}v1" for i in range(1, 7)]
    running = [
        subprocess.Popen([sys.executable, "-c", code, server.url, str(tmp_path), *half])
        for half in (papers[:3], papers[3:])
    ]
    assert [process.wait(timeout=30) for process in running] == [0, 0]
    times = [at for at, _, _ in server.asked]
    assert len(times) == 6
    # Requests leave 0.3 s apart; when a loaded machine sees them come may differ a little.
    assert times[-1] - times[0] > 5 * 0.25
    assert min(b - a for a, b in itertools.pairwise(times)) > 0.1
    assert len(PaperCache(tmp_path).listing()) == 6


def test_the_same_paper_at_once_is_fetched_once(server: Server, tmp_path: Path) -> None:
    server.replies["/src/1706.03762v1"] = [Reply(BIG, pause=0.05)]
    readers = [Reader(server, tmp_path) for _ in range(2)]
    threads = [threading.Thread(target=r, args=("1706.03762v1",)) for r in readers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.asked) == 1
    assert ["another paperkiln is asking arXiv; waiting for it to finish"] in [
        r.notices for r in readers
    ]


# --- interrupted downloads ----------------------------------------------------------------------

ETAG = {"ETag": '"one"'}


@pytest.mark.parametrize("length", [True, False])
def test_a_dropped_connection_is_resumed(server: Server, reader: Reader, length: bool) -> None:
    cuts = [Reply(BIG, headers=ETAG, cut=cut) for cut in (100_000, 90_000, 80_000)]
    server.replies["/src/1706.03762v1"] = [*cuts, Reply(BIG, headers=ETAG, length=length)]
    assert reader("1706.03762v1").data == BIG
    assert [h.get("range") for _, _, h in server.asked] == [
        None, "bytes=100000-", "bytes=190000-", "bytes=270000-"
    ]  # fmt: skip
    assert all(h.get("if-range") == '"one"' for _, _, h in server.asked[1:])
    assert all("(try 1 of 5)" in notice for notice in reader.notices)  # each brought some more
    assert not list(reader.cache.glob("*.part*"))
    done = [now for now, _ in reader.progress]
    assert done == sorted(done)


@pytest.mark.parametrize(
    "then",
    [
        Reply(BIG, headers={"ETag": '"two"'}),  # another file by now
        Reply(BIG, headers=ETAG, ranges=False),  # ranges are ignored
    ],
)
def test_what_cannot_be_resumed_starts_over(server: Server, reader: Reader, then: Reply) -> None:
    old = bytes(len(BIG))  # were it kept, the result would be wrong
    server.replies["/src/1706.03762v1"] = [Reply(b"\x1f\x8b" + old, headers=ETAG, cut=1000), then]
    assert reader("1706.03762v1").data == BIG


@pytest.mark.parametrize("headers", [{}, {"ETag": 'W/"weak"'}])
def test_without_a_strong_validator_nothing_is_resumed(
    server: Server, reader: Reader, headers: dict[str, str]
) -> None:
    server.replies["/src/1706.03762v1"] = [Reply(BIG, headers=headers, cut=1000), Reply(BIG)]
    assert reader("1706.03762v1").data == BIG
    assert "range" not in server.asked[1][2]


def test_a_wrong_range_is_not_glued_on(server: Server, reader: Reader) -> None:
    wrong = {"Content-Range": f"bytes 5-{len(BIG) - 1}/{len(BIG)}"}
    server.replies["/src/1706.03762v1"] = [
        Reply(BIG, headers=ETAG, cut=1000), Reply(BIG[5:], 206, wrong), Reply(BIG)
    ]  # fmt: skip
    assert reader("1706.03762v1").data == BIG
    assert "range" not in server.asked[2][2]


def test_a_part_longer_than_the_file(server: Server, reader: Reader) -> None:
    server.replies["/src/1706.03762v1"] = [Reply(SOURCE, headers=ETAG)]
    part = PaperCache(reader.cache).part(parse_reference("1706.03762v1"))
    part.begin('"one"')
    part.path.write_bytes(SOURCE + b"more")
    assert reader("1706.03762v1").data == SOURCE
    assert "another part" in reader.notices[0]


def test_a_connection_that_always_drops(server: Server, reader: Reader) -> None:
    server.replies["/src/1706.03762v1"] = [Reply(b"", cut=0)]
    assert "dropped the connection, 5 times in a row" in reader.refused("1706.03762v1")


def test_a_download_that_never_ends(server: Server, reader: Reader, monkeypatch: Any) -> None:
    monkeypatch.setattr(arxiv, "MAX_SOURCE", 100_000)
    for length in (True, False):
        server.replies["/src/1706.03762v1"] = [Reply(BIG, length=length)]
        assert "larger than" in reader.refused("1706.03762v1")
    monkeypatch.undo()
    monkeypatch.setattr(client, "TOTAL", 20.0)
    server.replies["/src/1706.03762v1"] = [
        Reply(BIG, headers=ETAG, cut=1000 * i) for i in range(1, 30)
    ]
    assert "gave up after" in reader.refused("1706.03762v1")
    server.replies["/src/1706.03762v1"] = [Reply(BIG, headers=ETAG)]
    assert reader("1706.03762v1").data == BIG
    assert server.asked[-1][2]["range"] > "bytes="


def test_a_silent_server_times_out(
    server: Server, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "TIMEOUTS", (0.2, 0.2))
    server.replies["/src/1706.03762v1"] = [
        Reply(BIG, headers=ETAG, pause=0.6),
        Reply(BIG, headers=ETAG),
    ]
    assert reader("1706.03762v1").data == BIG
    assert "dropped the connection" in reader.notices[0]


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_leaves_a_part_that_is_used(server: Server, tmp_path: Path) -> None:
    server.replies["/src/1706.03762v1"] = [Reply(BIG, headers=ETAG, pause=0.3)]
    code = (
        "import sys; from pathlib import Path\n"
        "from paperkiln.papers.source.arxiv import fetch\n"
        "from paperkiln.papers.source.reference import parse_reference\n"
        "fetch(parse_reference('1706.03762v1'), Path(sys.argv[2]), base_url=sys.argv[1],\n"
        "      progress=lambda done, total: print(done, flush=True))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, server.url, str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout
    assert int(process.stdout.readline()) > 0
    process.send_signal(signal.SIGINT)
    process.stdout.close()
    assert process.wait(timeout=10) != 0
    assert 0 < (tmp_path / "1706.03762v1.part").stat().st_size < len(BIG)
    server.replies["/src/1706.03762v1"] = [Reply(BIG, headers=ETAG)]
    assert Reader(server, tmp_path)("1706.03762v1").data == BIG
    assert "range" in server.asked[-1][2]


# --- why there is no source ---------------------------------------------------------------------

NO_SOURCE: dict[str, tuple[str, dict[str, Reply], str]] = {
    "withdrawn, with an earlier version": (
        "2101.10016",
        {"/abs/2101.10016": page(9, "This paper has been withdrawn"), "/src/2101.10016v7": Reply()},
        "2101.10016 was withdrawn; the latest version with source is v7: ask for 2101.10016v7",
    ),
    "withdrawn for good": (
        "2101.10016v2",
        {"/abs/2101.10016v2": page(2)},
        "2101.10016v2 has no source (was it withdrawn?); versions v1 to v1 have no source either",
    ),
    "withdrawn at once": (
        "2101.10016",
        {"/abs/2101.10016": page(1, "withdrawn")},
        "2101.10016 was withdrawn; there is no earlier version to fall back on",
    ),
    "no such version": (
        "2101.10016v10",
        {"/abs/2101.10016": page(8)},
        "there is no such version as 2101.10016v10; the newest is 2101.10016v8",
    ),
    "no such paper": ("2101.99999", {}, "there is no paper 2101.99999 on arXiv; check the id"),
    "no such paper, with a version": ("2101.99999v2", {}, "there is no paper 2101.99999v2"),
    "PDF only": (
        "1809.00949",
        {"/src/1809.00949": Reply(PDF, headers={
            "Content-Type": "application/pdf",
            "Content-Disposition": 'attachment; filename="arXiv-1809.00949v1.pdf"'})},
        "1809.00949v1 has no LaTeX: PDF only; there is no earlier version to fall back on",
    ),
    "PDF only by now": (
        "2303.15343",
        {"/src/2303.15343": Reply(PDF), "/abs/2303.15343": page(4),
         "/src/2303.15343v3": Reply(PDF), "/src/2303.15343v2": Reply()},
        "2303.15343v4 has no LaTeX: PDF only; the latest version with source is v2",
    ),
    "a web page": (
        "1706.03762v1",
        {"/src/1706.03762v1": Reply(
            b"<!DOCTYPE html><title>\n Are you a\x1b robot? </title>", headers={
                "Content-Type": "text/html"})},
        "arXiv answered with a web page ('Are you a\\x1b robot?') instead of the source",
    ),
    "nothing": ("1706.03762v1", {"/src/1706.03762v1": Reply(b"")}, "arXiv sent an empty file"),
    "something else": (
        "1706.03762v1",
        {"/src/1706.03762v1": Reply(b'{"a": 1}', headers={"Content-Type": "application/json"})},
        "arXiv sent 'application/json' instead of a paper's source",
    ),
    "an image": (
        "1706.03762v1",
        {"/src/1706.03762v1": Reply(b"\x89PNG\r\n", headers={"Content-Type": "image/png"})},
        "arXiv sent 'image/png' instead of a paper's source",
    ),
    "a refusal": ("1706.03762v1", {"/src/1706.03762v1": Reply(b"", 403)}, "to answer (403)"),
    "a teapot": ("1706.03762v1", {"/src/1706.03762v1": Reply(b"", 418)}, "arXiv answered 418"),
    "cut short": ("1706.03762v1", {"/src/1706.03762v1": Reply(SOURCE[:-20])},
                  "the source of 1706.03762v1 is cut short; fetch it again"),
    "no TeX inside": (
        "1706.03762v1",
        {"/src/1706.03762v1": Reply(gzip.compress(b'{"a": 1}'))},
        "the source of 1706.03762v1 is text, but holds no LaTeX",
    ),
    "another host": (
        "1706.03762v1",
        {"/src/1706.03762v1": Reply(b"", 302, {"Location": "http://login.example.com/"})},
        "leads to 'login.example.com', which is not arXiv",
    ),
    "an address that is none": (
        "1706.03762v1",
        {"/src/1706.03762v1": Reply(b"", 302, {"Location": "http://["})},
        "cannot be asked (ValueError)",
    ),
    "a circle": (
        "1706.03762v1",
        {"/src/1706.03762v1": Reply(b"", 302, {"Location": "/src/1706.03762v1"})},
        "redirects in a circle",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NO_SOURCE)
def test_each_reason_has_its_own_line(server: Server, reader: Reader, case: str) -> None:
    text, replies, part = NO_SOURCE[case]
    server.replies |= {path: [reply] for path, reply in replies.items()}
    assert part in reader.refused(text)
    assert not list(reader.cache.glob("*.source"))
    assert not list(reader.cache.glob("*.part*"))
    assert sum(reader.clock.slept) == 3 * (len(server.asked) - 1)


def test_a_version_before_the_withdrawal_works(server: Server, reader: Reader) -> None:
    server.replies["/src/2101.10016v7"] = [Reply()]
    assert reader("2101.10016v7").data == SOURCE


@pytest.mark.parametrize("content_type", ["application/gzip", "text/html", "image/png", ""])
def test_the_bytes_count_and_not_what_they_are_called(
    server: Server, reader: Reader, content_type: str
) -> None:
    server.replies["/src/1706.03762v1"] = [Reply(headers={"Content-Type": content_type})]
    assert reader("1706.03762v1").data == SOURCE


def test_a_lone_tex_and_a_packed_transfer(server: Server, reader: Reader) -> None:
    server.replies |= {
        "/src/1706.03762v1": [Reply(TEX, headers={"Content-Type": "text/x-tex"})],
        "/src/1706.03762v2": [Reply(gzip.compress(SOURCE), headers={"Content-Encoding": "gzip"})],
    }
    assert reader("1706.03762v1").data == TEX
    assert list(open_source(reader("1706.03762v2").data, "p")) == ["ms.tex"]


def unbound() -> str:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as free:
        return f"http://127.0.0.1:{free.server_address[1]}"


@pytest.mark.parametrize(
    ("address", "part"),
    [
        (unbound, "cannot be reached; is there a network? --offline opens papers"),
        (lambda: "http://no-such-host.invalid", "cannot be reached; is there a network?"),
        (lambda: "nonsense", "cannot be asked"),
        (lambda: "ftp://127.0.0.1", "cannot be asked"),
        (lambda: "http://", "cannot be asked"),
    ],
)
def test_no_network(tmp_path: Path, address: Callable[[], str], part: str) -> None:
    clock = FakeClock()
    with pytest.raises(PaperkilnError) as caught:
        fetch(parse_reference("1706.03762"), tmp_path, base_url=address(), clock=clock)
    assert part in str(caught.value)
    assert clock.slept == []  # at once


def test_a_server_without_a_certificate(server: Server, tmp_path: Path) -> None:
    url = server.url.replace("http:", "https:")
    with pytest.raises(PaperkilnError, match="trouble with the certificate"):
        fetch(parse_reference("1706.03762"), tmp_path, base_url=url, clock=FakeClock())


def test_requests_is_loaded_only_to_ask(tmp_path: Path) -> None:
    code = (
        "import sys, json\nfrom pathlib import Path\n"
        "from paperkiln.errors import PaperkilnError\n"
        "from paperkiln.papers.source.arxiv import fetch\n"
        "from paperkiln.papers.source.reference import parse_reference\n"
        "try: fetch(parse_reference('1706.03762'), Path(sys.argv[1]), offline=True)\n"
        "except PaperkilnError: print(json.dumps(sorted({'requests', 'numpy'} & set(sys.modules))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []
