"""The class BM25 of bm25s, imported without scipy.

bm25s takes scipy's matrices where scipy happens to be installed, which other libraries bring along; this project uses
numpy's. Importing them in vain is 24 MB of every process and a tenth of a second of its start. Nor is there anybody to
show tqdm's progress bars to.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _as_if_absent(name: str) -> Iterator[None]:
    """Inside, importing the module fails as if it were not installed. What is imported already stays."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # Python's own way of saying so
    try:
        yield
    finally:
        del sys.modules[name]


with _as_if_absent("scipy"), _as_if_absent("tqdm"):
    from bm25s import BM25

__all__ = ["BM25"]
