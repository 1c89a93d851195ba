"""What lies in files, as somebody sees it who takes the disk out: raw, and inside Parquet and Arrow."""

from __future__ import annotations

import io
import secrets
import string
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

LOOKS = 10
"""How often is looked again, where a running store flushed and took a file away meanwhile."""


def files_holding(folder: Path, canaries: Iterable[str]) -> set[tuple[str, str]]:
    """(file, canary) for every canary in any file below ``folder``, compressed or not."""
    wanted = list(canaries)
    for _ in range(LOOKS - 1):
        with suppress(FileNotFoundError):
            return _looked(folder, wanted)
        time.sleep(0.2)
    return _looked(folder, wanted)


def _looked(folder: Path, wanted: Sequence[str]) -> set[tuple[str, str]]:
    """Raises FileNotFoundError."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    assert paths, f"nothing below {folder}"
    return {
        (str(path.relative_to(folder)), canary)
        for path in paths
        for seen in [b"\n".join(views(path))]
        for canary in wanted
        if canary.encode() in seen or canary.encode("utf-16-le") in seen or _escaped(canary) in seen
    }


def _escaped(text: str) -> bytes:
    return text.encode("ascii", "backslashreplace")


def views(path: Path) -> Iterator[bytes]:
    """A file's bytes, and what they say when they are Parquet or Arrow."""
    raw = path.read_bytes()
    yield raw
    table: pa.Table | None = None
    with suppress(pa.ArrowException, OSError):
        table = pq.read_table(io.BytesIO(raw)) if path.suffix == ".parquet" else _arrow(raw)
    if table is not None:
        yield str(table.to_pylist()).encode("utf-8", "surrogatepass")


def _arrow(raw: bytes) -> pa.Table:
    return pa.ipc.open_stream(io.BytesIO(raw)).read_all()


def lone_word() -> str:
    """A word that is nowhere else. Of letters alone: of one text in two hundred with other digits each time the write
    screen thinks that it tells a model what to do."""
    return "canary" + "".join(secrets.choice(string.ascii_lowercase) for _ in range(12))
