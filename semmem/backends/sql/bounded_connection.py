"""A connection to PostgreSQL that waits so long for an answer and no longer.

The limits that libpq and the server have do not hold where the server's process hangs and its machine does not: the
kernel goes on acknowledging what is sent, and nobody is there to end a statement.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

T = TypeVar("T")


@dataclass(slots=True)
class Patience:
    """Of all connections to one server. ``answer_s``: longest wait for one answer. ``ends_at`` (of time.monotonic):
    nobody waits beyond it. ``on_silence`` is called in the thread that has waited in vain."""

    answer_s: float
    on_silence: Callable[[], None]
    ends_at: float = math.inf


class BoundedConnection(psycopg.Connection[Any]):
    """``patience`` is given to it when it is connected. A connection that gave up is closed: an answer may still come,
    and nobody would know to what."""

    patience: Patience

    def wait(self, gen: PQGen[T], *options: Any, **named: Any) -> T:
        """As Connection says. Raises OperationalError also when there was no answer in time."""
        return super().wait(self._bounded(gen, self.patience), *options, **named)

    def _bounded(self, gen: PQGen[T], patience: Patience) -> PQGen[T]:
        until = time.monotonic() + patience.answer_s
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() >= min(until, patience.ends_at):
                    self._give_up(patience)
                wanted = gen.send(ready)
        except StopIteration as end:
            result: T = end.value
            return result

    def _give_up(self, patience: Patience) -> None:
        self.pgconn.finish()
        patience.on_silence()
        raise psycopg.OperationalError("the server does not answer")
