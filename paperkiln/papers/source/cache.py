"""Papers' sources on disk, by id and version; a damaged entry counts as absent.

An entry is one file, `1706.03762v7.<digest>.source`, whose name proves its content. Beside it
`1706.03762.newest` says which version arXiv gave when none was asked for.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paperkiln.errors import PaperkilnError
from paperkiln.formats.atomic import new_file
from paperkiln.papers.source.reference import Reference, from_file_name


@contextlib.contextmanager
def told(folder: Path) -> Iterator[None]:
    """Turn a cache that cannot be used into one clear line."""
    try:
        yield
    except OSError as error:
        raise PaperkilnError(
            f"the cache {folder} cannot be used ({error.strerror or error}); "
            "free some space or set PAPERKILN_CACHE to another folder"
        ) from error


@dataclass(frozen=True)
class PaperCache:
    """The folder in which sources are kept."""

    folder: Path

    def find(self, reference: Reference) -> tuple[Reference, bytes] | None:
        """Return the source that a fetch of `reference` gave, with its version if known."""
        with told(self.folder):
            if reference.version is None and (version := self._newest(reference)):
                reference = reference.at(version)
            for path in self._entries(reference):
                with contextlib.suppress(FileNotFoundError):  # another process put a newer one
                    data = path.read_bytes()
                    if path.name == _entry_name(reference, data):
                        return reference, data
        return None

    def find_any(self, reference: Reference) -> tuple[Reference, bytes] | None:
        """Return `find`, or when no version is asked for the highest one that is there."""
        if (found := self.find(reference)) or reference.version is not None:
            return found
        versions = sorted(r for r in self.listing() if r.id == reference.id and r.version)
        hits = (self.find(version) for version in reversed(versions))
        return next(filter(None, hits), None)

    def keep(self, asked: Reference, resolved: Reference, data: bytes) -> None:
        """Write what a fetch of `asked` gave, in place of an older copy."""
        path = self.folder / _entry_name(resolved, data)
        with new_file(path) as aside:
            aside.write_bytes(data)
        if asked.version is None and resolved.version is not None:
            with new_file(self.folder / f"{asked.file_name}.newest") as aside:
                aside.write_text(f"{resolved.version}\n", encoding="ascii")
        with told(self.folder):
            for old in self._entries(resolved):
                if old != path:
                    old.unlink(missing_ok=True)

    def listing(self) -> list[Reference]:
        """Return the papers that are here, in order."""
        with told(self.folder):
            names = [path.name.rsplit(".", 2)[0] for path in self.folder.glob("*.*.source")]
        found = {reference for name in names if (reference := from_file_name(name))}
        return sorted(found, key=lambda reference: (reference.id, reference.version or 0))

    def part(self, reference: Reference) -> Part:
        """Return the place of an unfinished download."""
        return Part(self.folder / f"{reference.file_name}.part")

    def _entries(self, reference: Reference) -> list[Path]:
        return list(self.folder.glob(f"{reference.file_name}.*.source"))

    def _newest(self, reference: Reference) -> int | None:
        try:
            text = (self.folder / f"{reference.file_name}.newest").read_text(encoding="ascii")
            return int(text)
        except (FileNotFoundError, ValueError):
            return None


@dataclass(frozen=True)
class Part:
    """A download under way, which a later one goes on with if the server's file is the same."""

    path: Path

    @property
    def _validator(self) -> Path:
        return self.path.with_name(f"{self.path.name}.etag")

    def resume_headers(self) -> dict[str, str]:
        """Return the headers that ask for the rest, if what the rest belongs to is known."""
        try:
            validator = self._validator.read_text(encoding="latin-1").strip()
        except FileNotFoundError:
            validator = ""
        if not validator or not self.size:
            return {}
        return {"Range": f"bytes={self.size}-", "If-Range": validator}

    @property
    def size(self) -> int:
        """Bytes that have come so far."""
        return self.path.stat().st_size if self.path.exists() else 0

    def start(self, length: int) -> bytes:
        """Return the first `length` bytes that have come."""
        with open(self.path, "rb") as file:
            return file.read(length)

    def begin(self, validator: str) -> None:
        """Start over with a file that `validator`, an ETag or a date, tells from others."""
        self.clear()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._validator.write_text(validator, encoding="latin-1")
        self.path.touch()

    def clear(self) -> None:
        """Forget the download."""
        self.path.unlink(missing_ok=True)
        self._validator.unlink(missing_ok=True)


def _entry_name(reference: Reference, data: bytes) -> str:
    return f"{reference.file_name}.{hashlib.sha256(data).hexdigest()[:16]}.source"
