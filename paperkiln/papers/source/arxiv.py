"""A paper's source from arXiv: cached, resumed, and every way in which there is none explained."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from paperkiln.cache import cache_folder
from paperkiln.errors import PaperkilnError
from paperkiln.papers.source.archive import HEAD, kind_of
from paperkiln.papers.source.cache import PaperCache, Part, told
from paperkiln.papers.source.client import INTERVAL, Client, Clock, Dropped
from paperkiln.papers.source.files import open_source
from paperkiln.papers.source.reference import Reference

if TYPE_CHECKING:
    import requests

BASE_URL = "https://export.arxiv.org"  # the host that arXiv sets apart for programs
MAX_SOURCE = 256 << 20  # bytes; arXiv takes 50 MiB without asking
_MAX_PAGE = 1 << 20  # bytes of a paper's page
_TITLE_WITHIN = 1 << 14  # bytes of a page
_MAX_LOOKS = 5  # earlier versions that are tried for their source

_NOT_SOURCE = {"pdf", "html", "postscript", "png", "jpeg"}
_TITLE = re.compile(r"<title>\s*([^<]{1,80})", re.IGNORECASE)


@dataclass(frozen=True)
class Fetched:
    """A paper's source as arXiv gave it; `reference` has the version, if arXiv told it."""

    data: bytes
    reference: Reference
    cached: bool


def papers_folder() -> Path:
    """Return the folder in which sources are kept."""
    return cache_folder() / "papers"


def fetch(
    reference: Reference,
    cache: Path | None = None,
    *,
    base_url: str = BASE_URL,
    offline: bool = False,
    refresh: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
    notice: Callable[[str], None] | None = None,
    interval: float = INTERVAL,
    clock: Clock | None = None,
) -> Fetched:
    """Return a paper's source from the cache, else from arXiv.

    `progress` is told the bytes that have come and those to come in all, if known; `notice` is
    told in words of everything that makes the user wait. One process at a time talks to arXiv.
    Raises PaperkilnError if there is no source, or it cannot be had now.
    """
    store = PaperCache(cache or papers_folder())
    notice = notice or (lambda text: None)
    if offline:
        return _fetch_offline(store, reference, refresh, notice)
    if not refresh and (hit := store.find(reference)):
        return Fetched(hit[1], hit[0], cached=True)
    with _alone(store.folder, notice):
        if not refresh and (hit := store.find(reference)):  # another process was asked the same
            return Fetched(hit[1], hit[0], cached=True)
        stamp = store.folder / "last-request"
        with (
            told(store.folder),
            Client(base_url, stamp, notice, interval, clock or Clock()) as client,
        ):
            part = store.part(reference)
            resolved = _download(client, reference, part, progress or (lambda done, total: None))
            data = part.path.read_bytes()
            part.clear()
        open_source(data, f"the source of {resolved}")  # what cannot be opened is not kept
        store.keep(reference, resolved, data)
    return Fetched(data, resolved, cached=False)


def _fetch_offline(
    store: PaperCache, reference: Reference, refresh: bool, notice: Callable[[str], None]
) -> Fetched:
    if refresh:
        raise PaperkilnError("--offline and --refresh contradict each other; leave one out")
    hit = store.find_any(reference)
    if hit is None:
        raise PaperkilnError(
            f"{reference} is not in the cache, and --offline forbids asking arXiv; "
            "fetch it once without --offline"
        )
    if reference.version is None and hit[0].version is not None:
        notice(f"{hit[0]} is the newest version in the cache")
    return Fetched(hit[1], hit[0], cached=True)


@contextlib.contextmanager
def _alone(folder: Path, notice: Callable[[str], None]) -> Iterator[None]:
    """Hold the right to talk to arXiv, which takes one connection at a time from each user."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / "arxiv.lock")
    with told(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            notice("another paperkiln is asking arXiv; waiting for it to finish")
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


# --- download -----------------------------------------------------------------------------------


def _download(
    client: Client, reference: Reference, part: Part, progress: Callable[[int, int | None], None]
) -> Reference:
    """Bring the source into `part`, over as many tries as it takes; return its version."""
    while True:
        before = part.size
        try:
            with client.open(f"/src/{reference}", part.resume_headers()) as response:
                status = response.status_code
                version = reference.version or _version_told(response, reference)
                content_type = response.headers.get("Content-Type", "")
                fits = _fits(response, part)
                if fits:
                    _receive(client, response, part, progress)
        except Dropped:
            if part.size > before:
                client.progressed()
            client.back_off("dropped the connection")
            continue
        if fits:
            break
        if status not in (206, 416):
            _explain_status(client, reference, status)
        part.clear()
        client.back_off("sent another part of the file than was asked for")
    kind = kind_of(part.start(HEAD))
    if kind in _NOT_SOURCE or not part.size or not _may_be_source(kind, content_type):
        start = part.start(_TITLE_WITHIN)
        part.clear()
        if kind == "pdf":
            _explain_pdf(client, reference, version)
        _explain_content(kind, start, content_type)
    return reference.at(version)


def _fits(response: requests.Response, part: Part) -> bool:
    """Whether an answer is the file, or goes on where `part` ends."""
    if response.status_code == 206:
        return response.headers.get("Content-Range", "").startswith(f"bytes {part.size}-")
    return response.status_code == 200


def _receive(
    client: Client,
    response: requests.Response,
    part: Part,
    progress: Callable[[int, int | None], None],
) -> None:
    """Append an answer to `part`; of a PDF, which is not wanted, only the beginning."""
    headers = response.headers
    if response.status_code == 200:
        etag = headers.get("ETag", "")
        strong = etag if not etag.startswith("W/") else ""
        part.begin(strong or headers.get("Last-Modified", ""))
    done = part.size
    length = headers.get("Content-Length", "")
    total = done + int(length[:18]) if length.isascii() and length.isdigit() else None
    _check_size(total or 0)
    with open(part.path, "ab", buffering=0) as file:
        for chunk in client.chunks(response):
            file.write(chunk)
            done += len(chunk)
            _check_size(done)
            progress(done, total)
            if done - len(chunk) < HEAD and kind_of(part.start(HEAD)) == "pdf":
                return
    if total is not None and done != total:
        raise Dropped


def _check_size(size: int) -> None:
    if size > MAX_SOURCE:
        raise PaperkilnError(
            f"the source is larger than {MAX_SOURCE >> 20} MiB; download it and name the file"
        )


def _may_be_source(kind: str, content_type: str) -> bool:
    """Whether it is an archive, or bytes of no known kind that are said to be TeX."""
    return bool(kind or re.search(r"tex|text/plain|octet-stream", content_type))


def _version_told(response: requests.Response, reference: Reference) -> int | None:
    """Return the version that the answer's file name or address names."""
    number = re.escape(reference.id.rsplit("/")[-1])
    for text in (response.headers.get("Content-Disposition", ""), response.url):
        if match := re.search(rf"{number}v([1-9][0-9]{{0,2}})\b", text):
            return int(match[1])
    return None


# --- why there is no source ---------------------------------------------------------------------


def _explain_content(kind: str, start: bytes, content_type: str) -> NoReturn:
    if not start:
        raise PaperkilnError(
            "arXiv sent an empty file; try again later, or an earlier version of the paper"
        )
    if kind != "html":
        raise PaperkilnError(
            f"arXiv sent {content_type[:60]!a} instead of a paper's source; try again later"
        )
    title = _TITLE.search(start.decode("utf-8", "replace"))
    called = f" ({' '.join(title[1].split())!a})" if title else ""
    raise PaperkilnError(
        f"arXiv answered with a web page{called} instead of the source, perhaps to see whether a "
        "person is asking; open arxiv.org in a browser on this network, or try again in an hour"
    )


def _explain_status(client: Client, reference: Reference, status: int) -> NoReturn:
    if status in (400, 404, 410):
        _explain_missing(client, reference)
    if status in (401, 403):
        raise PaperkilnError(
            f"arXiv refuses to answer ({status}), as it does after too many requests from one "
            "network; try again in an hour"
        )
    raise PaperkilnError(f"arXiv answered {status} for the source of {reference}; try again later")


def _explain_missing(client: Client, reference: Reference) -> NoReturn:
    """Say which it is: no such paper, no such version, or one that was withdrawn."""
    page = _page(client, reference)
    if page is None and reference.version is not None:
        page = _page(client, reference.at(None))
        if page is not None:
            newest = _newest(page)
            known = f"; the newest is {reference.at(newest)}" if newest else ""
            raise PaperkilnError(f"there is no such version as {reference}{known}")
    if page is None:
        raise PaperkilnError(f"there is no paper {reference} on arXiv; check the id")
    gone = "was withdrawn" if "withdrawn" in page.lower() else "has no source (was it withdrawn?)"
    earlier = _earlier_source(client, reference, reference.version or _newest(page))
    raise PaperkilnError(f"{reference} {gone}; {earlier}")


def _explain_pdf(client: Client, reference: Reference, version: int | None) -> NoReturn:
    if version is None:
        version = _newest(_page(client, reference) or "")
    earlier = _earlier_source(client, reference, version)
    raise PaperkilnError(f"{reference.at(version)} has no LaTeX: PDF only; {earlier}")


def _earlier_source(client: Client, reference: Reference, version: int | None) -> str:
    """Say which version before `version` has its source, the latest of at most _MAX_LOOKS."""
    if version is None or version == 1:
        return "there is no earlier version to fall back on"
    client.notice(f"{reference.at(version)} has no source; looking for an earlier version that has")
    lowest = max(1, version - _MAX_LOOKS)
    for earlier in range(version - 1, lowest - 1, -1):
        if _has_source(client, reference.at(earlier)):
            return f"the latest version with source is v{earlier}: ask for {reference.at(earlier)}"
    return f"versions v{lowest} to v{version - 1} have no source either"


def _has_source(client: Client, reference: Reference) -> bool:
    with client.open(f"/src/{reference}", {"Range": f"bytes=0-{HEAD - 1}"}) as response:
        if response.status_code not in (200, 206):
            return False
        head = _first_bytes(client, response, HEAD)
    return bool(head) and kind_of(head) not in _NOT_SOURCE


def _page(client: Client, reference: Reference) -> str | None:
    """Return the paper's page, or None if there is none."""
    with client.open(f"/abs/{reference}") as response:
        if response.status_code != 200:
            return None
        return _first_bytes(client, response, _MAX_PAGE).decode("utf-8", "replace")


def _first_bytes(client: Client, response: requests.Response, limit: int) -> bytes:
    data = b""
    with contextlib.suppress(Dropped):
        for chunk in client.chunks(response):
            data += chunk
            if len(data) >= limit:
                break
    return data[:limit]


def _newest(page: str) -> int | None:
    """Return the highest version in a page's submission history."""
    return max((int(v) for v in re.findall(r"\[v([1-9][0-9]{0,2})\]", page)), default=None)
