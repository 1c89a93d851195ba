"""A process that dies at a chosen call of one of its ports, or to which something happens then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from semmem.backends.sql.journal import SqlJournal

READS = frozenset("complete embed extract get list provisional search session_turns turn_state".split())
"""Calls of ports that leave nothing behind."""


class Crash(BaseException):
    """The process dies here; no handler of an expected failure may see it."""


def moments(calls: Sequence[str]) -> list[tuple[int, bool]]:
    """Before (False) or after (True) which call a process may die, as Fuse counts them: at the first, and after each
    that leaves something behind. Whoever dies at a call in between leaves the same."""
    return [(1, False), *((place, True) for place, name in enumerate(calls, 1) if name not in READS)]


class Fuse:
    """Counts the calls of all ports and blows at the k-th, before or after the call took effect."""

    def __init__(self, blows_at: int, *, after: bool) -> None:
        self.calls: list[str] = []
        self.unguarded = 0
        """Writes into a watched journal that are no call of a guarded port's, or one of READS."""
        self._blows_at, self._after = blows_at, after
        self._may_write = False

    @contextmanager
    def watching(self, journal: SqlJournal) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in ("write", "look"):
                patch.setattr(journal._database, name, self._counted(getattr(journal._database, name)))
            yield

    def _counted(self, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted(*arguments: Any) -> Any:
            self.unguarded += not self._may_write
            return await write(*arguments)

        return counted

    def guard(self, port: Any, *names: str) -> Any:
        return _Guarded(self, port, names)

    async def call(self, name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        self.calls.append(name)
        blows = len(self.calls) == self._blows_at
        if blows and not self._after:
            raise Crash
        self._may_write = name not in READS
        try:
            answer = await call()
        finally:
            self._may_write = False
        if blows:
            raise Crash
        return answer


class _Guarded:
    def __init__(self, fuse: Fuse, port: Any, names: tuple[str, ...]) -> None:
        self._fuse, self._port, self._names = fuse, port, names

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._port, name)
        if name not in self._names:
            return attribute
        return lambda *args, **named: self._fuse.call(name, lambda: attribute(*args, **named))


class Interrupted:
    """A port; when a chosen call of it is first made, something happens before that call takes effect."""

    def __init__(self, port: Any, name: str, what: Callable[[], Awaitable[object]]) -> None:
        self._port, self._name, self._what = port, name, what
        self.interrupted = False

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._port, name)
        if name != self._name or self.interrupted:
            return attribute

        async def call(*args: Any, **named: Any) -> Any:
            self.interrupted = True
            await self._what()
            return await attribute(*args, **named)

        return call
