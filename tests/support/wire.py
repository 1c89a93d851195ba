"""A bus between replicas in one process, which can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from semmem.lifecycle.change_news import ChangeNews
from semmem.ports.errors import NewsError


class Wire:
    """Who is on it hears every word at once, what he said himself among them."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.words: list[str] = []

    def line(self) -> Line:
        self.lines.append(Line(self))
        return self.lines[-1]


class Line:
    """A NewsBus. ``changes`` listens."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.changes: ChangeNews | None = None
        self.is_cut = False
        self.tries = 0

    async def say(self, word: str) -> None:
        self.tries += 1
        if self.is_cut:
            raise NewsError("cut")
        self._wire.words.append(word)
        for line in self._wire.lines:
            if not line.is_cut and line.changes is not None:
                line.changes.heard(word)

    def cut(self) -> None:
        if not self.is_cut and self.changes is not None:
            self.is_cut = True
            self.changes.lost("cut")

    def mend(self) -> None:
        if self.is_cut and self.changes is not None:
            self.is_cut = False
            self.changes.connected()

    async def listen(self, heard: Callable[[str], None], connected: Callable[[], None]) -> None:
        """As ListeningBus, for who is to listen by himself: until it is cut."""
        self.tries += 1
        if self.is_cut:
            raise NewsError("cut")
        connected()
        while not self.is_cut:
            await asyncio.sleep(0)
        raise NewsError("cut off")

    async def close(self) -> None: ...
