"""SIGHUP, by which a running semmem is told to read its configuration again."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial


class Hangups:
    """From when it is made SIGHUP never ends the process: what comes before there is anybody to ask is kept, what comes
    after is dropped."""

    def __init__(self) -> None:
        self._ask: Callable[[], object] | None = None
        self._early = False
        signal.signal(signal.SIGHUP, self._heard)

    def tell(self, loop: asyncio.AbstractEventLoop, ask: Callable[[], None]) -> None:
        """Call ``ask`` for each one, and once for those that came before."""
        self._ask = partial(loop.call_soon_threadsafe, ask)
        if self._early:
            ask()

    def end(self) -> None:
        """The interpreter takes its own handlers back before it ends."""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def _heard(self, _number: int, _frame: object) -> None:
        if self._ask is None:
            self._early = True
        else:
            with suppress(RuntimeError):  # the loop is closed
                self._ask()
