"""The real embedder, many texts at a time, and what it made kept in a file for the next run.

Vectors of one text do not depend on what else is in its batch (to about 1e-7), so measuring need not be as slow as
one question after another.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from semmem.memory import Vector
from semmem.ports.embedder import Embedder

AT_A_TIME = 1000


class PrefetchedEmbedder:
    """An Embedder that remembers every vector; ``prefetch`` makes many, anything else is made when it is asked for.

    ``cache``: a folder for a file per embedding signature; None keeps nothing. Texts are kept only as digests.
    """

    def __init__(self, inner: Embedder, *, cache: Path | None = None) -> None:
        self._inner = inner
        self._cache = cache
        self._vectors: dict[str, Vector] = {}
        self._is_changed = False

    @property
    def dimension(self) -> int:
        return self._inner.dimension

    @property
    def signature(self) -> str:
        return self._inner.signature

    async def open(self) -> None:
        await self._inner.open()
        self._vectors = await asyncio.to_thread(self._read)

    async def close(self) -> None:
        await asyncio.to_thread(self._write)
        await self._inner.close()

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        key = _key(text)
        if key not in self._vectors:
            self._vectors[key] = await self._inner.embed(text, within_s=math.inf)  # nothing else is to be done
            self._is_changed = True
        return self._vectors[key]

    def at_hand(self, text: str) -> Vector | None:
        return self._vectors.get(_key(text))

    async def prefetch(self, texts: Iterable[str], on_progress: Callable[[int, int], None]) -> None:
        """Texts of like length share a batch, since a batch costs as much as its longest text in each row."""
        wanted = sorted({text for text in texts if _key(text) not in self._vectors}, key=len)
        for start in range(0, len(wanted), AT_A_TIME):
            some = wanted[start : start + AT_A_TIME]
            await asyncio.gather(*map(self.embed, some))
            on_progress(start + len(some), len(wanted))
        await asyncio.to_thread(self._write)

    def _file(self) -> Path | None:
        name = hashlib.sha256(self.signature.encode()).hexdigest()[:16]
        return None if self._cache is None else self._cache / f"{name}.npz"

    def _read(self) -> dict[str, Vector]:
        file = self._file()
        if file is None or not file.exists():
            return {}
        try:
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as kept:
                return dict(zip(kept["keys"].tolist(), kept["vectors"].astype(np.float32), strict=True))
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            return {}  # cut short or of another kind: made again

    def _write(self) -> None:
        file = self._file()
        if file is None or not self._is_changed:
            return
        self._is_changed = False
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, suffix=".npz")
        with os.fdopen(handle, "wb") as stream:
            np.savez(stream, keys=np.array(list(self._vectors)), vectors=np.stack(list(self._vectors.values())))
        Path(name).replace(file)


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
