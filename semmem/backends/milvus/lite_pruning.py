"""Lets Milvus Lite look at one user's rows where one user's rows are asked for, inside the child process that runs it,
and of a row at the fields that are asked for.

Lite 3.2 goes through every row of every user for each query and search, in Python, and copies every vector for a
query; rows that are not flushed yet it decodes one by one, with their vectors. A partition key changes nothing of that.
All of semmem's filters but those of housekeeping begin with ``user_id == "..."``. So here a read with such a filter
is given only the segments that hold a row of this user, and of the write buffer only this user's rows.

Nothing is left out by that. A segment is never changed, so the users in it are looked up once. Of several rows with
one key the one that was written last counts, wherever it lies, and the key names the user (``rows.row_id``): they are
all this user's. Removed rows are told by lists that are left whole.

This touches private names of Milvus Lite; ``install`` raises AttributeError for a version that lacks one of them."""

import threading
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from milvus_lite.engine.collection import Collection
from milvus_lite.search.filter.ast import And, CmpOp, FieldRef, StringLit
from milvus_lite.storage.memtable import MemTable
from milvus_lite.storage.segment import Segment

from semmem.backends.milvus.lite_engine import Method, wrap

_USERS, _NAMES = "_semmem_users", "_semmem_names"
"""Under which a collection keeps the users of each segment, and a write buffer those of each of its batches."""


class _Reading(threading.local):
    """The read that this thread is at. ``user`` None: of everybody, or not known yet. ``fields`` None: all."""

    is_on = False
    field = ""
    user: str | None = None
    fields: Sequence[str] | None = None


_reading = _Reading()


def install() -> None:
    """Mend the engine's classes. To be called once, before the engine opens anything."""
    wrap(Collection, "query", lambda read, *args, **named: _one_read(named.get("output_fields"), read, *args, **named))
    # All fields of a hit are read: there are few, and a search may look at more than it shows.
    wrap(Collection, "search", partial(_one_read, None))
    wrap(Collection, "_compile_filter", _filter_heard)
    wrap(Collection, "_read_snapshot", _segments_of_user)
    wrap(MemTable, "to_search_snapshot", _buffer_of_user)
    wrap(Segment, "row_to_dict", _fields_asked_for)


def _one_read(fields: Sequence[str] | None, read: Method, self: Any, *args: Any, **named: Any) -> Any:
    field = self._partition_key_field
    _reading.is_on, _reading.field, _reading.user, _reading.fields = field is not None, field or "", None, fields
    try:
        return read(self, *args, **named)
    finally:
        _reading.is_on, _reading.user, _reading.fields = False, None, None


def _filter_heard(compile_filter: Method, self: Any, *args: Any, **named: Any) -> Any:
    """The first filter of a read is the one that all its rows pass."""
    compiled = compile_filter(self, *args, **named)
    if _reading.is_on:
        _reading.user, _reading.is_on = user_of(compiled.ast, _reading.field), False
    return compiled


def user_of(filter: Any, field: str) -> str | None:
    """Whose rows alone can pass this filter; None where it names nobody, or may let others' pass."""
    for each in filter.operands if isinstance(filter, And) else (filter,):
        match each:
            case CmpOp(op="==", left=FieldRef(name=name), right=StringLit(value=str(user))) if name == field:
                return user
    return None


def _segments_of_user(read_snapshot: Method, self: Any) -> Any:
    segments, deleted = read_snapshot(self)
    if _reading.user is None:
        return segments, deleted
    users = _users_by_segment(self, segments)
    return tuple(each for each in segments if _reading.user in users[each.file_path][1]), deleted


def _users_by_segment(collection: Any, segments: Any) -> dict[str, tuple[Any, frozenset[str]]]:
    """By file; another segment in a file of the same name is told by its numbers, which are another array."""
    known = collection.__dict__.get(_USERS, {})
    users = {}
    for each in segments:
        found = known.get(each.file_path)
        if found is None or found[0] is not each.seqs:
            found = (each.seqs, frozenset(each.table.column(_reading.field).unique().to_pylist()))
        users[each.file_path] = found
    collection.__dict__[_USERS] = users  # those of segments that are gone go with them
    return users


def _fields_asked_for(row_to_dict: Method, self: Any, row: int) -> Any:
    """Of a row of a file only what the read wants, and its key: a vector takes as long as all the others together."""
    names, fields = self.table.schema.names, _reading.fields
    if fields is None or "$meta" in names or not set(fields) <= set(names):
        return row_to_dict(self, row)
    return {name: self.table.column(name)[row].as_py() for name in {*fields, self._pk_field}}


def _buffer_of_user(to_search_snapshot: Method, self: Any, *args: Any, **named: Any) -> Any:
    """As much of the write buffer as its own method reads, with the index of this user's rows alone."""
    if (user := _reading.user) is None:
        return to_search_snapshot(self, *args, **named)
    with self._lock:
        batches = list(self._insert_batches)
        names = self.__dict__.setdefault(_NAMES, [])
        names += [batch.column(_reading.field).to_pylist() for batch in batches[len(names) :]]
        index = {key: place for key, place in self._pk_index.items() if names[place[0]][place[1]] == user}
    mine = SimpleNamespace(_lock=self._lock, _insert_batches=batches, _pk_index=index, _data_schema=self._data_schema)
    return to_search_snapshot(mine, *args, **named)
