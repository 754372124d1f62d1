"""Asking a server politely: spaced requests, honest name, patience when it is busy."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urljoin, urlsplit

from paperkiln import __version__
from paperkiln.errors import PaperkilnError, Unreachable

if TYPE_CHECKING:
    import requests

INTERVAL = 3.0  # seconds between requests, as arXiv's terms of use for programs ask
RETRIES = 4
MAX_WAIT = 300.0  # seconds; when the server asks for more, it is the user who decides
TOTAL = 900.0  # seconds for everything that one client does
TIMEOUTS = (10.0, 30.0)  # seconds to connect, and between two pieces of an answer
USER_AGENT = f"paperkiln/{__version__} (reads the LaTeX source of single papers; python-requests)"

_CHUNK = 1 << 16
_MAX_HOPS = 5
_REDIRECTS = {301, 302, 303, 307, 308}
_BUSY = {
    429: "has had too many requests (429)",
    500: "has a fault (500)",
    502: "is busy (502)",
    503: "is busy (503)",
    504: "is busy (504)",
}


class Clock:
    """The time; a test puts its own in its place."""

    wall = staticmethod(time.time)
    ticks = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)


class Dropped(Exception):
    """An answer that broke off."""


def seconds_asked(retry_after: str | None, now: float) -> float | None:
    """Return how long a Retry-After header, seconds or an HTTP date, asks to wait; else None."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


@dataclass
class Client:
    """One connection to one server; whoever holds it must be the only one to use `stamp`."""

    base_url: str
    stamp: Path
    """Where the time of the last request is written, for the processes that come after."""
    notice: Callable[[str], None]
    interval: float = INTERVAL
    clock: Clock = field(default_factory=Clock)
    _failures: int = 0

    def __enter__(self) -> Self:
        import requests

        self._session = requests.Session()
        self._session.headers.update({"User-Agent": USER_AGENT, "Accept-Encoding": "identity"})
        self._began = self.clock.ticks()
        return self

    def __exit__(self, *error: object) -> None:
        self._session.close()

    @contextlib.contextmanager
    def open(self, path: str, headers: dict[str, str] | None = None) -> Iterator[requests.Response]:
        """Yield the answer to a GET, its body unread, once the server has time for us.

        Raises PaperkilnError if it cannot be reached, stays busy, or leads elsewhere.
        """
        while True:
            try:
                response = self._follow(self.base_url.rstrip("/") + path, headers or {})
            except Dropped:
                self.back_off("dropped the connection")
                continue
            with response:
                if response.status_code not in _BUSY:
                    yield response
                    return
                asked = seconds_asked(response.headers.get("Retry-After"), self.clock.wall())
                why = _BUSY[response.status_code]
            self.back_off(why, asked)

    def chunks(self, response: requests.Response) -> Iterator[bytes]:
        """Yield an answer's bytes as they come, not decoded. Raises Dropped if it breaks off."""
        while chunk := self._read(response):
            self._check_total()
            yield chunk

    def back_off(self, why: str, asked: float | None = None) -> None:
        """Wait before the next try, as long as the server asks or twice as long as before.

        Raises PaperkilnError after RETRIES tries without progress, or if it asks for too long.
        """
        self._failures += 1
        host = urlsplit(self.base_url).netloc
        if self._failures > RETRIES:
            raise PaperkilnError(f"{host} {why}, {RETRIES + 1} times in a row; try again later")
        wait = self.interval * 2 ** (self._failures - 1) if asked is None else asked
        if wait > MAX_WAIT:
            raise PaperkilnError(
                f"{host} {why} and asks to wait {wait / 60:.0f} minutes; try again then"
            )
        self._check_total(wait)
        self.notice(f"{host} {why}; waiting {wait:.3g} s (try {self._failures} of {RETRIES + 1})")
        self.clock.sleep(wait)

    def progressed(self) -> None:
        """Count no failure from before: something has come through."""
        self._failures = 0

    def _follow(self, url: str, headers: dict[str, str]) -> requests.Response:
        """Return the answer at the end of redirects; each hop is a request and takes its turn."""
        for _ in range(_MAX_HOPS):
            self._take_turn()
            response = self._get(url, headers)
            location = response.headers.get("Location")
            if response.status_code not in _REDIRECTS or not location:
                return response
            response.close()
            url = urljoin(url, location)
            if not self._is_home(url):
                raise PaperkilnError(
                    f"the answer leads to {urlsplit(url).hostname!a}, which is not arXiv; "
                    "is a login page of this network in the way?"
                )
        raise PaperkilnError(f"{self.base_url} redirects in a circle; try again later")

    def _get(self, url: str, headers: dict[str, str]) -> requests.Response:
        import requests

        host = urlsplit(url).netloc
        try:
            return self._session.get(
                url, headers=headers, stream=True, timeout=TIMEOUTS, allow_redirects=False
            )
        except (requests.exceptions.SSLError, requests.exceptions.ProxyError) as error:
            what = "proxy" if isinstance(error, requests.exceptions.ProxyError) else "certificate"
            raise Unreachable(
                f"{host} cannot be reached: trouble with the {what}; check this network's settings"
            ) from None
        except (requests.ConnectionError, requests.Timeout) as error:
            if not _unreachable(error):
                raise Dropped from None
            raise Unreachable(
                f"{host} cannot be reached; is there a network? --offline opens papers fetched "
                "before"
            ) from None
        except (requests.RequestException, ValueError) as error:  # an address that is none, or
            # an answer that leads to one: requests looks at it although it is not to follow it
            raise PaperkilnError(f"{url!a} cannot be asked ({type(error).__name__})") from None

    def _read(self, response: requests.Response) -> bytes:
        from urllib3.exceptions import HTTPError

        try:
            return response.raw.read1(_CHUNK, decode_content=False)
        except (HTTPError, OSError):
            raise Dropped from None

    def _take_turn(self) -> None:
        """Wait until `interval` has passed since the last request of any process."""
        try:
            last = float(self.stamp.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            last = -math.inf
        wait = self.interval - (self.clock.wall() - last)
        if wait > 0:  # a clock set back must not make it longer than the interval
            self.clock.sleep(min(wait, self.interval))
        self._check_total()
        self.stamp.parent.mkdir(parents=True, exist_ok=True)
        self.stamp.write_text(repr(self.clock.wall()), encoding="ascii")

    def _check_total(self, wait: float = 0.0) -> None:
        if self.clock.ticks() - self._began + wait > TOTAL:
            raise PaperkilnError(
                f"gave up after {TOTAL / 60:.0f} minutes; what has come is kept, and the same "
                "command goes on from there"
            )

    def _is_home(self, url: str) -> bool:
        parts, base = urlsplit(url), urlsplit(self.base_url)
        host = parts.hostname or ""
        ours = parts.netloc == base.netloc or host == "arxiv.org" or host.endswith(".arxiv.org")
        return ours and parts.scheme in ("https", base.scheme)


def _unreachable(error: Exception) -> bool:
    """Whether no connection came about, as without a network; trying again would not help."""
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

    reason = getattr(error.args[0], "reason", None) if error.args else None
    return isinstance(reason, NewConnectionError | ConnectTimeoutError)
