"""What tells other replicas whose memories changed, and hears it from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class NewsBus(Protocol):
    """Words to all who listen, this process among them, and words from them. What is said while nobody listens, or
    while a listener's connection is broken, is lost."""

    async def say(self, word: str) -> None:
        """Raises NewsError when it is not known to be said."""


class ListeningBus(NewsBus, Protocol):
    """A bus with a connection of its own for what it hears."""

    async def listen(self, heard: Callable[[str], None], connected: Callable[[], None]) -> None:
        """Calls ``connected`` once, then ``heard`` with each word. Raises NewsError when the connection is lost."""

    async def close(self) -> None:
        """Release everything. Idempotent."""
