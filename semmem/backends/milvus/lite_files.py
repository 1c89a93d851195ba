"""Milvus Lite's files, inside the child process that runs it: damaged ones are found before the engine opens them, and
removed rows are taken out of them.

The engine itself says neither which file it could not read nor, of some, that it could not: a broken manifest is
replaced by the one before it, and the files that only the newer one names are then deleted as unknown; without a list
of removed rows, those rows are back.

A delete leaves the row where it is, in a Parquet file that is never changed, and writes its id to another file. Lite
drops such rows only when it merges files: four of like size in one of its 16 partitions, after a flush. Here every
file that holds a removed row is written again without it, one at a time; then the lists of removed ids have done
their work and go too.

Killed at any moment this loses no row: a new file is on disk before the manifest names it, and the old one goes
after that. Reads go on, and wait for one file at most. The caller lets nobody write meanwhile."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from milvus_lite.adapter.grpc.errors import success_status_kwargs, to_status_kwargs
from milvus_lite.adapter.grpc.servicer import MilvusServicer
from milvus_lite.db import MilvusLite
from milvus_lite.engine import compaction
from milvus_lite.engine.recovery import _cleanup_orphan_files
from milvus_lite.storage.data_file import read_data_file
from pymilvus.grpc_gen import common_pb2, milvus_pb2

from semmem.backends.milvus.lite_engine import Method, wrap

DAMAGED = "damaged: "
MISSING = "missing: "
"""What the lines of the child's log begin with that name a file."""


class DamagedFiles(Exception):
    """Some files cannot be read; printed to the log by then."""


def install() -> None:
    """Have the files looked through before they are used, and make pymilvus' ``compact`` a purge, which Lite itself
    answers and does nothing."""
    wrap(MilvusLite, "__init__", _checked)
    wrap(compaction, "write_data_file", _on_disk)
    MilvusServicer.ManualCompaction = _manual_compaction


def _checked(init: Method, self: Any, data_dir: str) -> None:
    """Once the folder is locked; the engine has the files only when all can be read. Prints a line for each that is
    damaged or missing. Raises DamagedFiles unless the rest can be served."""
    init(self, data_dir)
    lines = list(problems(Path(data_dir)))
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


def _manual_compaction(servicer: Any, request: Any, context: Any) -> Any:
    try:
        purge(servicer._get_collection(request, context))
        status = success_status_kwargs()
    except Exception as error:  # as every other call of the servicer: the client is told
        status = to_status_kwargs(error)
    return milvus_pb2.ManualCompactionResponse(status=common_pb2.Status(**status))


def purge(collection: Any) -> None:
    """Rewrite one collection's files without its removed rows. Raises OSError when there is no room to."""
    collection._trigger_flush()  # an empty buffer too: its log may hold rows that came and went
    collection._wait_for_bg()
    manifest, applied = collection._manifest, collection._next_seq
    for partition in manifest.list_partitions() if len(collection._delta_index) else ():
        for name in manifest.get_data_files(partition):
            with collection._maintenance_lock:
                _rewrite(collection, partition, name)
    with collection._maintenance_lock:
        # No file holds a row any more that deletions below this number hide.
        collection._delta_index.gc_below(applied)
        collection._compaction_mgr._gc_delta_files(manifest, applied)
        manifest.save()  # the files that it does not name go next
        _cleanup_orphan_files(collection._data_dir, manifest)
    collection._schedule_bg_maintenance()  # removes and builds indexes
    collection._wait_for_bg()


def _rewrite(collection: Any, partition: str, name: str) -> None:
    """As Lite merges several files; for which there must be room (lite_engine)."""
    manifest, deleted, merging = collection._manifest, collection._delta_index, collection._compaction_mgr
    folder = os.path.join(collection._data_dir, "partitions", partition)
    if name not in manifest.get_data_files(partition) or not os.path.exists(os.path.join(folder, name)):
        return  # merged with others meanwhile, or missing
    table = read_data_file(os.path.join(folder, name))
    if merging._filter_deleted(table, deleted).num_rows < table.num_rows:
        merging._compact_files(partition, folder, [name], manifest, deleted)
        collection._refresh_segment_cache()


def _on_disk(write_data_file: Method, table: Any, folder: str, *args: Any, **named: Any) -> str:
    """What the manifest is about to name is on the disk by then."""
    name = str(write_data_file(table, folder, *args, **named))
    for path in (os.path.join(folder, name), os.path.join(folder, os.path.dirname(name))):
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
    return name
