"""Files and folders that are either the old ones or the new ones, never half of each."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

from paperkiln.errors import PaperkilnError


def _writer() -> str:
    """Return what tells two writers of one path apart: the process and the thread."""
    return f"{os.getpid()}-{threading.get_ident()}"


@contextlib.contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path beside `path` to write to; on success it takes the place of `path`.

    Raises PaperkilnError if the disk is full or the folder cannot be written.
    """
    path = Path(path)
    if path.is_dir():
        raise PaperkilnError(f"{path} is a folder; name a file in it")
    aside = path.with_name(f".{path.name}.{_writer()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield aside
        with open(aside, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError as error:
        raise _not_written(path, error, "; what was there is untouched") from error
    finally:
        with contextlib.suppress(OSError):
            aside.unlink()


@contextlib.contextmanager
def new_folder(path: str | os.PathLike[str], holds: Collection[str]) -> Iterator[Path]:
    """Yield an empty folder beside `path`; on success it takes the place of `path`.

    An existing folder is replaced only if every name in it is one of `holds`, so that a mistyped
    path cannot delete other people's files.
    Raises PaperkilnError if it holds anything else, or if it cannot be written.
    """
    path = Path(path).absolute()
    aside = path.with_name(f".{path.name}.{_writer()}.partial")
    old = path.with_name(f".{path.name}.{_writer()}.old")
    try:
        if path.exists():
            foreign = sorted(set(os.listdir(path)) - set(holds)) if path.is_dir() else [path.name]
            if foreign:
                raise PaperkilnError(
                    f"{path} exists and holds {foreign[0]}, which an export would delete; "
                    "choose a new or empty folder"
                )
        aside.mkdir(parents=True)
        yield aside
        if path.exists():
            os.replace(path, old)
        os.replace(aside, path)
    except OSError as error:
        raise _not_written(path, error) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _not_written(path: Path, error: OSError, rest: str = "") -> PaperkilnError:
    if isinstance(error, FileExistsError | NotADirectoryError):
        parent = next(p for p in path.absolute().parents if p.exists())
        return PaperkilnError(f"{path} could not be written: {parent} is no folder{rest}")
    return PaperkilnError(
        f"{path} could not be written ({error.strerror or error}); "
        f"free some space or choose another place{rest}"
    )
