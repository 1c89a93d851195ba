"""What semmem mends in Milvus Lite's engine, inside the child process that runs it.

Milvus Lite 3.2 assumes that a write to disk succeeds. When one does not,

- a flush has already put an empty buffer in place of the full one: the rows are gone from every read, and the next
  flush that succeeds deletes the log that still holds them;
- a log record is left half written: what is acknowledged after it is lost at the next start;
- a delete that failed is taken for done by pymilvus' asyncio client, which does not look at its status;
- an index file is left half written: the collection cannot be loaded any more, although an index is derived data.

So here a flush begins only when there is room for it, a torn log record is cut off and its file set aside, an index
that cannot be saved or read is built in memory, and a flush that fails all the same ends the process: at the next
start everything that was acknowledged is read from the log.

And its engine takes one writer at a time, while its server has ten threads. MilvusStore lets one write after the other;
but a call whose caller left, at its deadline or because it was cancelled, is still at work here when the next begins. A
flush between the log record and the buffer of such a row deletes the record, and the row lands in a buffer that nobody
reads any more, or only in this process' memory: gone at once, or with the next kill. So writers, flushes among them,
wait for each other here, and so does whoever drops the collection: a flush that comes later does nothing.

This touches private names of Milvus Lite; ``install`` raises AttributeError for a version that lacks one of them."""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from types import ModuleType
from typing import Any

import grpc
from milvus_lite.adapter.grpc.servicer import MilvusServicer
from milvus_lite.db import DEFAULT_DATABASE_NAME, MilvusLite
from milvus_lite.engine.collection import Collection
from milvus_lite.engine.compaction import CompactionManager
from milvus_lite.index.factory import build_index_from_spec
from milvus_lite.storage.segment import Segment
from milvus_lite.storage.wal import WAL

from semmem.backends.disk_room import check_room

ROOM_SPARE_BYTES = 4 * 1024 * 1024
"""What a flush may need beyond its rows: footers of some 30 small files, and the manifest."""

DROPPED = "_semmem_dropped"
"""Set at a collection whose files go, or are gone: there is nothing to flush any more."""

Method = Callable[..., Any]


def install(end: Callable[[], object]) -> None:
    """Mend the engine's classes. To be called once, before the engine opens anything. ``end`` ends the process."""
    wrap(Collection, "_apply", _whole_records)
    wrap(Collection, "_should_flush", _flush_if_room)
    wrap(Collection, "_trigger_flush", partial(_flush_or_end, end))
    wrap(CompactionManager, "_compact_files", _compact_with_room)
    wrap(Segment, "build_or_load_index", _index_in_any_case)
    wrap(MilvusServicer, "Delete", _refuse_aloud)
    wrap(MilvusLite, "drop_collection", _drop_alone)
    for name in ("insert", "upsert", "delete", "_trigger_flush"):
        wrap(Collection, name, _one_writer)


def wrap(owner: type | ModuleType, name: str, mended: Method) -> None:
    """Call ``mended`` in the place of a method or function, which it is given before its arguments. Raises
    AttributeError when none has that name."""
    method = getattr(owner, name)

    def call(*args: Any, **named: Any) -> Any:
        return mended(method, *args, **named)

    setattr(owner, name, call)


def _one_writer(write: Method, self: Any, *args: Any, **named: Any) -> Any:
    """A writer that flushes is one: the lock is had twice."""
    with _writer(self):
        return write(self, *args, **named)


def _writer(collection: Any) -> threading.RLock:
    lock: threading.RLock = collection.__dict__.setdefault("_semmem_writer", threading.RLock())
    return lock


def _drop_alone(drop: Method, self: Any, name: str, database_name: str = DEFAULT_DATABASE_NAME) -> None:
    """Its files go while nobody writes them."""
    real = self.resolve_collection_name(name, database_name=database_name)
    collection = self._collections.get((self._require_database(database_name), real))
    with nullcontext() if collection is None else _writer(collection):  # it may be that nobody has opened it
        if collection is not None:
            collection.__dict__[DROPPED] = True
        drop(self, name, database_name)


def _whole_records(apply: Method, self: Any, operation: Any) -> None:
    log = self._wal
    before = [0 if sink is None else os.fstat(sink.fileno()).st_size for sink in (log._data_sink, log._delta_sink)]
    try:
        apply(self, operation)
    except OSError:
        _set_aside(self, log, before)
        raise


def _set_aside(collection: Any, log: Any, sizes: Sequence[int]) -> None:
    """End this log with its last whole record and go on in a new one; a start reads both, a flush removes both."""
    for sink, size in zip((log._data_sink, log._delta_sink), sizes, strict=True):
        if sink is not None:
            os.ftruncate(sink.fileno(), size)
            # What the file object still buffers of the torn record must never reach the file.
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, sink.fileno())
            os.close(null)
    collection._recovered_wal_bytes += sum(sizes)
    collection._wal = WAL(log.wal_dir, log._wal_data_schema, log._wal_delta_schema, log.number + 1)


def _room_to_flush(collection: Any) -> None:
    check_room(collection._data_dir, collection._memtable.estimated_memory_bytes + ROOM_SPARE_BYTES)


def _flush_if_room(should_flush: Method, self: Any) -> bool:
    """Of its own accord the engine flushes only when that can succeed: the row that fills the buffer is written."""
    if not should_flush(self):
        return False
    try:
        _room_to_flush(self)
    except OSError:
        return False
    return True


def _flush_or_end(end: Callable[[], object], trigger_flush: Method, self: Any) -> None:
    if self.__dict__.get(DROPPED):
        return
    _room_to_flush(self)
    try:
        trigger_flush(self)
    except Exception:
        end()
        raise


def _compact_with_room(
    compact_files: Method, self: Any, partition: str, partition_dir: str, files: Sequence[str], *rest: Any
) -> None:
    """A merge that fails half-way leaves its file behind, and the next try leaves another."""
    sizes = sum(os.path.getsize(os.path.join(partition_dir, name)) for name in files)
    check_room(self._data_dir, sizes + ROOM_SPARE_BYTES)
    compact_files(self, partition, partition_dir, files, *rest)


def _refuse_aloud(delete: Method, self: Any, request: Any, context: Any) -> Any:
    """pymilvus' asyncio client does not look at the status of a delete: one that failed looks like one that is done."""
    answer = delete(self, request, context)
    if answer.status.code or answer.status.error_code:
        context.abort(grpc.StatusCode.INTERNAL, answer.status.reason)
    return answer


def _index_in_any_case(build_or_load_index: Method, self: Any, spec: Any, index_dir: str) -> None:
    try:
        build_or_load_index(self, spec, index_dir)
    except Exception:
        with suppress(OSError):
            os.unlink(self.index_file_path(index_dir, spec.index_type, spec.field_name))
        vectors, _ = self.vector_data(spec.field_name)
        self.attach_index(build_index_from_spec(spec, vectors), field_name=spec.field_name)
