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
from typing import Any

from milvus_lite.adapter.grpc.errors import success_status_kwargs, to_status_kwargs
from milvus_lite.adapter.grpc.servicer import MilvusServicer
from milvus_lite.engine import compaction
from milvus_lite.engine.recovery import _cleanup_orphan_files
from milvus_lite.storage.data_file import read_data_file
from pymilvus.grpc_gen import common_pb2, milvus_pb2

from semmem.backends.milvus.lite_engine import Method, wrap


def install() -> None:
    """Make pymilvus' ``compact`` a purge: Lite itself answers it and does nothing."""
    MilvusServicer.ManualCompaction = _manual_compaction
    wrap(compaction, "write_data_file", _on_disk)


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


def _on_disk(write_data_file: Method) -> Method:
    """What the manifest is about to name is on the disk by then."""

    def _write_data_file(table: Any, folder: str, *args: Any, **named: Any) -> str:
        name = str(write_data_file(table, folder, *args, **named))
        _sync(os.path.join(folder, name))
        _sync(os.path.join(folder, os.path.dirname(name)))
        return name

    return _write_data_file


def _sync(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
