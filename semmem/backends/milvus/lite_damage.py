"""Finds damaged files in Milvus Lite's folder, inside the child process, before the engine opens them.

The engine itself says neither which file it could not read nor, of some, that it could not: a broken manifest is
replaced by the one before it, and the files that only the newer one names are then deleted as unknown; without a list
of removed rows, those rows are back.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from milvus_lite.db import MilvusLite

from semmem.backends.milvus.lite_engine import wrap

DAMAGED = "damaged: "
MISSING = "missing: "
"""What the lines of the child's log begin with that name a file."""


class DamagedFiles(Exception):
    """Some files cannot be read; printed to the log by then."""


def install() -> None:
    """Look through the files once the folder is locked, and let the engine have them only when all can be read."""

    def checked(init: Any) -> Any:
        def __init__(self: Any, data_dir: str) -> None:
            init(self, data_dir)
            report(Path(data_dir))

        return __init__

    wrap(MilvusLite, "__init__", checked)


def report(data_dir: Path) -> None:
    """Print a line for each file that is damaged or missing. Raises DamagedFiles unless the rest can be served."""
    lines = list(problems(data_dir))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if any(line.startswith(DAMAGED) for line in lines):
        raise DamagedFiles


def problems(data_dir: Path) -> Iterator[str]:
    """Reads every data file once. A data file that is not there costs its own rows only, so it is no damage: somebody
    may have taken it away for that."""
    for folder in sorted(data_dir.glob("**/collections/*/")):
        has_rows = any(folder.glob("partitions/*/*/*.parquet"))  # one that was being made has neither file nor rows
        for path in (folder / "schema.json", folder / "manifest.json"):
            if _json(path) is None and (has_rows or path.exists()):
                yield f"{DAMAGED}{path}"
        yield from _problems_of(folder, _json(folder / "manifest.json") or {})


def _problems_of(folder: Path, manifest: dict[str, Any]) -> Iterator[str]:
    for partition, files in sorted(manifest.get("partitions", {}).items()):
        for kind in ("data_files", "delta_files"):
            for path in (folder / "partitions" / partition / name for name in files.get(kind, [])):
                if not path.exists():
                    yield f"{MISSING if kind == 'data_files' else DAMAGED}{path}"
                elif not _is_whole(path):
                    yield f"{DAMAGED}{path}"


def _json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _is_whole(path: Path) -> bool:
    try:
        pq.read_table(path).validate(full=True)
    except (OSError, ValueError, pa.ArrowException):
        return False
    return True
