"""The fingerprint of a model: a hash of its weights and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

SCHEME = "paperkiln-weights/1"


def fingerprint(tensors: Mapping[str, np.ndarray]) -> str:
    """Return `paperkiln-weights/1:` and a SHA-256 in hex.

    Hashed, for each tensor in the order of the names' UTF-8 bytes: the name, a zero byte, the
    numpy dtype string (as `<f4`), a zero byte, the shape in decimal joined by commas, a zero
    byte, and the values in little-endian row-major order. No time, path or host enters, so the
    same weights have the same fingerprint wherever and whenever they were written.
    """
    digest = hashlib.sha256()
    for name in sorted(tensors, key=lambda n: n.encode()):
        array = np.ascontiguousarray(tensors[name])
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        shape = ",".join(str(n) for n in array.shape)
        digest.update(f"{name}\0{array.dtype.str}\0{shape}\0".encode())
        digest.update(array.tobytes())
    return f"{SCHEME}:{digest.hexdigest()}"
