"""Where files that can be made again are kept: tokens, compiled kernels."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """Return $PAPERKILN_CACHE, or paperkiln's folder in the user's cache."""
    return Path(os.environ.get("PAPERKILN_CACHE") or platformdirs.user_cache_dir("paperkiln"))
