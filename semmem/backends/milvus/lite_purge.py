"""Takes removed rows out of Milvus Lite's files, inside the child process that runs it.

A delete leaves the row where it is, in a Parquet file that is never changed, and writes its id to another file. Lite
drops such rows only when it merges files: four of like size in one of its 16 partitions, after a flush. Here every
file that holds a removed row is written again without it, one at a time; then the lists of removed ids have done
their work and go too.

Killed at any moment this loses no row: a new file is on disk before the manifest names it, and the old one goes
after that. Reads go on, and wait for one file at most. The caller lets nobody write meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from milvus_lite.adapter.grpc.errors import success_status_kwargs, to_status_kwargs
from milvus_lite.adapter.grpc.servicer import MilvusServicer
from milvus_lite.engine.recovery import _cleanup_orphan_files
from milvus_lite.storage.data_file import parse_seq_range, read_data_file, write_data_file
from pymilvus.grpc_gen import common_pb2, milvus_pb2

from semmem.backends.disk_room import check_room
from semmem.backends.milvus.lite_engine import ROOM_SPARE_BYTES


def install() -> None:
    """Make pymilvus' ``compact`` a purge: Lite itself answers it and does nothing."""
    MilvusServicer.ManualCompaction = _manual_compaction


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
    applied = collection._next_seq
    for partition in collection._manifest.list_partitions() if len(collection._delta_index) else ():
        for name in collection._manifest.get_data_files(partition):
            with collection._maintenance_lock:
                _rewrite(collection, partition, name)
    with collection._maintenance_lock:
        _drop_deletions(collection, applied)
        _cleanup_orphan_files(collection._data_dir, collection._manifest)
    collection._schedule_bg_maintenance()  # removes and builds indexes
    collection._wait_for_bg()


def _rewrite(collection: Any, partition: str, name: str) -> None:
    manifest = collection._manifest
    if name not in manifest.get_data_files(partition):
        return  # merged with others meanwhile
    folder = os.path.join(collection._data_dir, "partitions", partition)
    if not os.path.exists(os.path.join(folder, name)):
        return
    table = read_data_file(os.path.join(folder, name))
    kept = _living(table, collection)
    if len(kept) == table.num_rows:
        return
    check_room(collection._data_dir, os.path.getsize(os.path.join(folder, name)) + ROOM_SPARE_BYTES)
    new = [_write(collection, folder, table.take(pa.array(kept, type=pa.int64())))] if kept else []
    _replace(manifest, partition, name, new)
    collection._refresh_segment_cache()
    os.unlink(os.path.join(folder, name))


def _living(table: pa.Table, collection: Any) -> list[int]:
    ids, numbers = (table.column(column).to_pylist() for column in (collection._pk_name, "_seq"))
    deleted = collection._delta_index.is_deleted
    return [row for row, (id, number) in enumerate(zip(ids, numbers, strict=True)) if not deleted(id, number)]


def _write(collection: Any, folder: str, table: pa.Table) -> str:
    numbers = table.column("_seq").to_pylist()
    # The name must be free: the old file may have the same numbers.
    low, high = collection._compaction_mgr._pick_unique_seq_range(folder, min(numbers), max(numbers))
    name = str(write_data_file(table, folder, low, high))
    _sync(os.path.join(folder, name))
    _sync(os.path.join(folder, os.path.dirname(name)))
    return name


def _sync(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _replace(manifest: Any, partition: str, old: str, new: Iterable[str]) -> None:
    manifest.remove_data_files(partition, [old])
    for name in new:
        manifest.add_data_file(partition, name)
    try:
        manifest.save()
    except BaseException:
        manifest.remove_data_files(partition, list(new))
        manifest.add_data_file(partition, old)
        raise


def _drop_deletions(collection: Any, applied: int) -> None:
    """Forget deletions numbered below ``applied``: no file holds a row that they hide."""
    manifest = collection._manifest
    old = {
        partition: [name for name in names if parse_seq_range(name)[1] < applied]
        for partition, names in manifest.get_all_delta_files().items()
    }
    for partition, names in old.items():
        manifest.remove_delta_files(partition, names)
    manifest.save()
    collection._delta_index.gc_below(applied)
    for partition, names in old.items():
        for name in names:
            with suppress(FileNotFoundError):
                Path(collection._data_dir, "partitions", partition, name).unlink()
