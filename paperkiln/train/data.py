"""Corpora: text files to a split, to a memory-mapped token file, to batches.

`batch(tokens, seed, step)` is a pure function: there is no position in the data to save or
to lose, and a resumed run sees exactly the batches it would have seen.
"""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

import paperkiln
from paperkiln.cache import cache_folder
from paperkiln.errors import PaperkilnError
from paperkiln.formats.atomic import new_file
from paperkiln.spec import DataSpec
from paperkiln.train.tokenizers import Tokenizer, byte_tokenizer, train_bpe, train_word


@dataclass(frozen=True)
class Corpus:
    """The training and validation text, and where each came from."""

    train: str
    validation: str
    split: str  # how the two were separated, in words

    @property
    def sha256(self) -> str:
        """The hash of both texts, which identifies the data of a run."""
        digest = hashlib.sha256()
        for text in (self.train, self.validation):
            data = text.encode("utf-8")
            digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()


def load_corpus(spec: DataSpec) -> Corpus:
    """Return the corpus that the spec names, read or generated, and its split.

    Raises PaperkilnError for a missing, empty or binary file.
    """
    if spec.corpus == "tinychat":
        from paperkiln.train import tinychat

        text = tinychat.corpus_text(spec.dialogues, spec.seed)
        source = f"tinychat, {spec.dialogues:,} dialogues"
    else:
        mend = "; name the text with --set data.corpus=PATH"
        text, source = read_text(Path(spec.corpus), mend), spec.corpus
    if spec.validation is not None:
        mend = "; name the text with --set data.validation=PATH"
        validation = read_text(Path(spec.validation), mend)
        return Corpus(text, validation, f"train {source}; validation {spec.validation}")
    # The cut is at a line's end, so that no sentence is in both parts, unless the line is so long
    # that more than twice the share would be held out.
    goal = int(len(text) * (1 - spec.val_fraction))
    line_end = text.rfind("\n", 0, goal) + 1
    cut = line_end if line_end > max(0, 2 * goal - len(text)) else goal
    percent = 100 * (1 - cut / max(1, len(text)))
    return Corpus(text[:cut], text[cut:], f"last {percent:.1f} % of {source}")


def read_text(path: Path, mend: str = "") -> str:
    """Return the text of a file, or of a folder's .txt files in name order joined by newlines.

    UTF-8 with or without a byte-order mark; CRLF becomes LF. `mend` ends the message about a
    file that is not there.
    """
    if path.is_dir():
        files = sorted(path.rglob("*.txt"))
        if not files:
            raise PaperkilnError(f"{path}: no .txt files in this folder")
        return "\n".join(read_text(file) for file in files)
    if path.exists() and not path.is_file():
        raise PaperkilnError(f"{path}: a device or pipe has no end; give a file or a folder")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        where = "" if path.is_absolute() else f" in {Path.cwd()}"
        raise PaperkilnError(f"{path}: no such file or folder{where}{mend}") from None
    except OSError as error:
        raise PaperkilnError(f"{path}: cannot be read ({error.strerror})") from None
    if not data.removeprefix(codecs.BOM_UTF8).strip():
        raise PaperkilnError(f"{path}: the file is empty")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise PaperkilnError(f"{path}: UTF-16; convert it with iconv -f utf-16 -t utf-8")
    if b"\0" in data[: 1 << 16]:
        raise PaperkilnError(f"{path}: binary, not text; give a plain UTF-8 text file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PaperkilnError(
            f"{path}: not UTF-8 at byte {error.start:,}; convert it, for instance with "
            "iconv -f latin1 -t utf-8"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def train_tokenizer(spec: DataSpec, text: str) -> Tokenizer:
    """Return the tokenizer that the spec asks for, learned from the training text only.

    It is kept in the cache under the hash of all that it depends on, so it is learned once.
    """
    if spec.tokenizer == "byte":
        return byte_tokenizer()
    made_by = f"{spec.tokenizer} {spec.vocab_size} {paperkiln.__version__} {version('tokenizers')}"
    digest = hashlib.sha256(f"{made_by}\0{text}".encode())
    path = cache_folder() / "tokenizers" / f"{digest.hexdigest()[:32]}.json"
    try:
        return Tokenizer.load(path)
    except PaperkilnError:  # not there yet, or damaged
        tokenizer = (train_bpe if spec.tokenizer == "bpe" else train_word)(text, spec.vocab_size)
    with contextlib.suppress(PaperkilnError):  # a cache that cannot be written is no reason to stop
        tokenizer.save(path)
    return tokenizer


def encode_corpus(text: str, tokenizer: Tokenizer) -> np.ndarray:
    """Return the token ids of `text`, (N,) uint16 or uint32, memory-mapped from the cache.

    The file's name is the hash of the text and of the tokenizer, so it is made once.
    """
    digest = hashlib.sha256(text.encode("utf-8"))
    digest.update(json.dumps(tokenizer.to_json(), sort_keys=True).encode())
    path = cache_folder() / "tokens" / f"{digest.hexdigest()[:32]}.npy"
    try:
        return np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError):  # not there yet, or damaged
        dtype = np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.uint32
        ids = np.array(tokenizer.encode(text, specials=True), dtype=dtype)
    try:
        with new_file(path) as aside, open(aside, "wb") as file:
            np.save(file, ids)
        return np.load(path, mmap_mode="r")
    except (OSError, ValueError, PaperkilnError):
        return ids  # a cache that cannot be written is no reason not to train


def check_lengths(train: np.ndarray, validation: np.ndarray, context_length: int) -> None:
    """Raise PaperkilnError unless both parts hold at least one window."""
    if len(train) < context_length + 1:
        raise PaperkilnError(
            f"the training text has {len(train):,} tokens, but one window needs "
            f"context_length + 1 = {context_length + 1:,}; give more text or shorten "
            "arch.context_length"
        )
    if len(validation) < 2:
        raise PaperkilnError(
            f"the validation text has {len(validation)} tokens, at least 2 are needed; raise "
            "data.val_fraction or name a data.validation file"
        )


def batch(
    tokens: np.ndarray, seed: int, step: int, n_sequences: int, context_length: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return ids and targets, (n_sequences, T) int64: random windows drawn for this step."""
    stream = np.random.default_rng([seed, step, 0xBA7C4])
    starts = stream.integers(0, len(tokens) - context_length, n_sequences)
    windows = tokens[starts[:, None] + np.arange(context_length + 1)].astype(np.int64)
    return windows[:, :-1], windows[:, 1:]
