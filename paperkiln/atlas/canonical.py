"""The one JSON text of a value, so that a hash of it means something."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, UTF-8, finite numbers only."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def digest(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hex."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()
