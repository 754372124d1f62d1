"""Which arXiv paper is meant: an id, a link or a DOI, parsed strictly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from paperkiln.errors import PaperkilnError

ACCEPTED = (
    "give an arXiv id (1706.03762, 1706.03762v5, hep-th/9901001), an arxiv.org, huggingface.co "
    "or alphaxiv.org link to a paper, or its DOI (10.48550/arXiv.1706.03762)"
)

MAX_LENGTH = 300  # characters; no link to a paper is longer

# The archives of ids before April 2007.
# fmt: off
ARCHIVES = frozenset({
    "acc-phys", "adap-org", "alg-geom", "ao-sci", "astro-ph", "atom-ph", "bayes-an", "chao-dyn",
    "chem-ph", "cmp-lg", "comp-gas", "cond-mat", "cs", "dg-ga", "funct-an", "gr-qc", "hep-ex",
    "hep-lat", "hep-ph", "hep-th", "math", "math-ph", "mtrl-th", "nlin", "nucl-ex", "nucl-th",
    "patt-sol", "physics", "plasm-ph", "q-alg", "q-bio", "quant-ph", "solv-int", "supr-con",
})
# fmt: on

# Where a link to a paper leads, and the words that stand between the host and the id.
_LINKS = {
    "arxiv.org": {"abs", "pdf", "html", "src", "e-print", "format", "ps", "bibtex"},
    "huggingface.co": {"papers"},
    "hf.co": {"papers"},
    "alphaxiv.org": {"abs", "overview", "pdf"},
}
_DOI = re.compile(r"10\.48550/arxiv\.(.+)", re.IGNORECASE)

_VERSION = r"(?: ?v([1-9][0-9]{0,2}))?"
_NEW = re.compile(rf"([0-9]{{2}})([0-9]{{2}})\.([0-9]{{4,5}}){_VERSION}", re.IGNORECASE)
_OLD = re.compile(
    rf"([a-z-]{{2,8}})(?:\.[a-z]{{2}})?/([0-9]{{2}})([0-9]{{2}})([0-9]{{3}}){_VERSION}",
    re.IGNORECASE,
)
_PREFIX = re.compile(r"arxiv ?: ?", re.IGNORECASE)
_CATEGORY = re.compile(r" ?\[[a-z]{2,8}(?:[.-][a-z-]{2,8})?\]$", re.IGNORECASE)  # as in [cs.CL]
_SCHEME = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True, order=True)
class Reference:
    """A paper on arXiv; without a version the newest one is meant."""

    id: str
    version: int | None = None

    def __str__(self) -> str:
        return self.canonical

    @property
    def canonical(self) -> str:
        """The id with its version, as arXiv writes it: `1706.03762v5`, `hep-th/9901001`."""
        return self.id if self.version is None else f"{self.id}v{self.version}"

    @property
    def file_name(self) -> str:
        """The canonical id with the slash of old ids as `_`, which no id holds."""
        return self.canonical.replace("/", "_")

    @property
    def abs_url(self) -> str:
        """The paper's page."""
        return f"https://arxiv.org/abs/{self.canonical}"

    def at(self, version: int | None) -> Reference:
        """Return another version of the same paper."""
        return Reference(self.id, version)


class _ImpossibleId(Exception):
    """Why something that has the form of an id is none."""


def parse_reference(text: str) -> Reference:
    """Return the paper that an id, a link or a DOI names; a version that is given is kept.

    Raises PaperkilnError, which says what is accepted, for anything else.
    """
    stripped = text.strip()
    if not stripped:
        raise PaperkilnError(f"no paper is named; {ACCEPTED}")
    plain = " ".join(stripped.split())  # tabs and no-break spaces are stray spaces too
    if len(stripped) > MAX_LENGTH or len(stripped.splitlines()) > 1 or not plain.isprintable():
        raise _refusal(stripped)
    try:
        for spelling in _bare_ids(plain):
            if reference := _parse_id(spelling):
                return reference
    except _ImpossibleId as error:
        raise _refusal(stripped, str(error)) from None
    raise _refusal(stripped)


def from_file_name(name: str) -> Reference | None:
    """Return the reference whose `file_name` this is, else None."""
    try:
        return _parse_id(name.replace("_", "/"))
    except _ImpossibleId:
        return None


def _bare_ids(text: str) -> Iterator[str]:
    """Yield what may be an id inside the text: at most one, for each form that fits."""
    text = _CATEGORY.sub("", text)
    prefix = _PREFIX.match(text)
    yield text[prefix.end() :] if prefix else text
    text = re.sub(r"^doi ?: ?", "", text, flags=re.IGNORECASE)
    if doi := _DOI.fullmatch(unquote(text)):
        yield doi[1]
    yield from _linked_id(text)


def _linked_id(text: str) -> Iterator[str]:
    try:
        parts = urlsplit(text if _SCHEME.match(text) else f"https://{text}")
    except ValueError:  # no address at all, such as http://[
        return
    host = (parts.netloc or "").lower().removesuffix(":443").removesuffix(":80")
    host = host.removeprefix("www.")
    path = unquote(parts.path).strip("/")
    if host in ("doi.org", "dx.doi.org"):
        if doi := _DOI.fullmatch(path):
            yield doi[1]
        return
    # Mirrors and services: export.arxiv.org, ar5iv.labs.arxiv.org.
    words = _LINKS["arxiv.org"] if host.endswith(".arxiv.org") else _LINKS.get(host, set())
    word, _, rest = path.partition("/")
    if word.lower() in words:
        prefix = _PREFIX.match(rest)
        rest = rest[prefix.end() :] if prefix else rest
        yield re.sub(r"\.pdf$", "", rest, flags=re.IGNORECASE) if word.lower() == "pdf" else rest


def _parse_id(text: str) -> Reference | None:
    """Return the reference of a bare id, or None; raises _ImpossibleId for an impossible one."""
    if new := _NEW.fullmatch(text):
        year, month, number, version = new.groups()
        _check_month(year, month)
        if year + month < "0704":
            raise _ImpossibleId("ids of this form begin with 0704, in April 2007")
        digits = 5 if year >= "15" else 4
        if len(number) != digits:
            raise _ImpossibleId(f"an id of 20{year} has {digits} digits after the point")
        paper = f"{year}{month}.{number}"
    elif old := _OLD.fullmatch(text):
        archive, year, month, number, version = old.groups()
        _check_month(year, month)
        if archive.lower() not in ARCHIVES:
            raise _ImpossibleId(f"arXiv has no archive {archive}")
        if "0703" < year + month < "9107":
            raise _ImpossibleId("ids of this form run from July 1991 to March 2007")
        paper = f"{archive.lower()}/{year}{month}{number}"  # the class of math.GT/… names nothing
    else:
        return None
    if int(number) == 0:
        raise _ImpossibleId("papers are numbered from 1")
    return Reference(paper, int(version) if version else None)


def _check_month(year: str, month: str) -> None:
    if not "01" <= month <= "12":
        raise _ImpossibleId(f"{year}{month} names no month")


def _refusal(text: str, why: str = "") -> PaperkilnError:
    shown = ascii(text if len(text) <= 60 else text[:57] + "...")
    reason = f": {why}" if why else ""
    return PaperkilnError(f"{shown} is not an arXiv paper{reason}; {ACCEPTED}")
