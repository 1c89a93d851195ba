"""Who stays in process when there is not room for all: those who come back, whoever else passes by meanwhile.

S3-FIFO (Yang, Zhang, Qiu, Yue and Rashmi, "FIFO queues are all you need for cache eviction", SOSP 2023), with sizes. A
user comes in by a small queue. Whoever was here again before its turn to go comes is a regular and moves to the main
queue; who was not, goes, and only a trace stays for a while: whoever comes back by that is a regular at once. So a walk
over all users, each once, leaves the main queue alone, where plain LRU keeps the last users of the walk and nobody
else. Packages with this policy count entries, where one user may take a thousand times the room of another."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

SMALL_SHARE = 0.1
"""Of all room: the small queue's, once there is no room for all."""
AGAIN_S = 60.0
"""A user who comes back sooner is still here for the first time: a tool loop asks five times in a minute."""
VISITS_MAX = 3
"""So often a regular who does not come any more is passed over."""
TRACES_MIN = 1000
"""Traces are kept of as many users as are here, at least of so many; a trace is two numbers. With many more, a second
walk over the same users would find them all to have come back."""

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Room:
    """Of how much there is room for, or what somebody takes: bytes, memories, and users."""

    bytes: float
    memories: float = math.inf
    users: float = math.inf

    def holds(self, other: Room) -> bool:
        return other.bytes <= self.bytes and other.memories <= self.memories and other.users <= self.users

    def plus(self, other: Room, sign: int = 1) -> Room:
        return Room(
            self.bytes + sign * other.bytes, self.memories + sign * other.memories, self.users + sign * other.users
        )


@dataclass(slots=True)
class _Entry(Generic[V]):
    value: V
    size: Room
    visited_at: float
    visits: int = 0
    is_regular: bool = False


class _Queue(OrderedDict[str, _Entry[V]]):
    """By name, in the order in which they came. ``taken``: what all of them take."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = Room(0, 0, 0)

    def add(self, user: str, entry: _Entry[V]) -> None:
        self[user] = entry
        self.taken = self.taken.plus(entry.size)

    def take(self, user: str) -> _Entry[V] | None:
        if (entry := self.pop(user, None)) is not None:
            self.taken = self.taken.plus(entry.size, -1)
        return entry


class Regulars(Generic[V]):
    """What is kept of users, by name, within ``room``. Times are in seconds of one clock."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self._small_room = Room(*(SMALL_SHARE * most for most in (room.bytes, room.memories, room.users)))
        self._small, self._main = _Queue[V](), _Queue[V]()
        self._traces = OrderedDict[int, float]()

    @property
    def taken(self) -> Room:
        return self._main.taken.plus(self._small.taken)

    def __len__(self) -> int:
        return len(self._main) + len(self._small)

    def __contains__(self, user: object) -> bool:
        return user in self._main or user in self._small

    def get(self, user: str) -> V | None:
        entry = self._entry(user)
        return None if entry is None else entry.value

    def visit(self, user: str, now: float) -> None:
        """The user has come."""
        entry = self._entry(user)
        if entry is not None and now - entry.visited_at >= AGAIN_S:
            entry.visits, entry.visited_at = min(entry.visits + 1, VISITS_MAX), now

    def put(self, user: str, value: V, size: Room, now: float, *, is_regular: bool = False) -> bool:
        """In place of what was there. False, and nothing is kept of the user, where there will never be room."""
        entry = self._taken_out(user)
        if not self.room.holds(size):
            return False
        came_before = now - self._traces.pop(hash(user), math.inf) >= AGAIN_S
        if entry is None:
            entry = _Entry(value, size, now, is_regular=is_regular or came_before)
        entry.value, entry.size = value, size
        while not self.fits(size):
            self._make_room()
        self._queue_of(entry).add(user, entry)
        return True

    def grow(self, user: str, bytes_more: int) -> None:
        """What is kept of the user takes so much more by now."""
        if (entry := self._entry(user)) is None:
            return
        queue, more = self._queue_of(entry), Room(bytes_more, 0, 0)
        entry.size, queue.taken = entry.size.plus(more), queue.taken.plus(more)
        while not self.room.holds(self.taken):
            self._make_room()

    def fits(self, size: Room) -> bool:
        """Whether there is room for it without anybody's going."""
        return self.room.holds(self.taken.plus(size))

    def drop(self, user: str) -> None:
        """What is kept is no use any more. A regular comes back as one."""
        entry = self._taken_out(user)
        if entry is not None and (entry.is_regular or entry.visits):
            self._trace(user, -math.inf)

    def _make_room(self) -> None:
        """Somebody goes, moves to the main queue, or is passed over once."""
        if self._main and self._small_room.holds(self._small.taken):
            user, entry = next(iter(self._main.items()))
            if entry.visits:
                entry.visits -= 1
                self._main.move_to_end(user)
            else:
                self._main.take(user)
            return
        user, entry = next(iter(self._small.items()))
        self._small.take(user)
        if entry.visits:
            entry.is_regular, entry.visits = True, 0
            self._main.add(user, entry)
        else:
            self._trace(user, entry.visited_at)

    def _trace(self, user: str, at: float) -> None:
        """By a number that does not tell whose it is."""
        self._traces[hash(user)] = at
        while len(self._traces) > max(len(self), TRACES_MIN):
            self._traces.popitem(last=False)

    def _entry(self, user: str) -> _Entry[V] | None:
        return self._main.get(user) or self._small.get(user)

    def _taken_out(self, user: str) -> _Entry[V] | None:
        return self._main.take(user) or self._small.take(user)

    def _queue_of(self, entry: _Entry[V]) -> _Queue[V]:
        return self._main if entry.is_regular else self._small
