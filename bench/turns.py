"""What a turn costs the journal: ``python -m bench.turns [URL of an empty PostgreSQL database]``; without one, SQLite.

So many turns of 200 characters with an answer of 800, from users who each say ten, are written as the recorder writes
them: fifty halves in one transaction. Bytes are the database's, indexes included, and what a write-ahead log still held
is in them.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg

from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Scope, Turn, TurnEnding
from semmem.ports.recording import TurnClosed

TURNS = 20_000
AT_A_TIME = 50
PER_USER = 10
TEXT_CHARS, ANSWER_CHARS = 200, 800
NOW = 1_800_000_000.0


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="semmem-turns-") as folder:
        place = sys.argv[1] if len(sys.argv) > 1 else str(Path(folder) / "journal.db")
        before = _bytes(place)
        took = asyncio.run(_write(place))
        print(
            f"{TURNS} turns: {(_bytes(place) - before) / TURNS:.0f} bytes and {1e6 * took / TURNS:.0f} us each,"
            f" {TURNS / took:.0f} a second by one writer"
        )
    return 0


async def _write(place: str) -> float:
    journal = SqlJournal(place)
    await journal.open()
    try:
        await journal.record(*_halves(-AT_A_TIME, 0))
        began = time.perf_counter()
        for first in range(0, TURNS, AT_A_TIME):
            opened, closed = _halves(first, first + AT_A_TIME)
            await journal.record(opened, ())
            await journal.record((), closed)
        return time.perf_counter() - began
    finally:
        await journal.close()


def _halves(first: int, last: int) -> tuple[Sequence[Turn], Sequence[TurnClosed]]:
    random_of = random.Random(first)
    opened, closed = [], []
    for number in range(first, last):
        turn_id = f"{number:032x}.0"
        scope = Scope(f"user-{number // PER_USER:08}", session=f"session-{number // PER_USER:08}")
        opened.append(Turn(turn_id, scope, 0, _text(random_of, TEXT_CHARS), NOW + number, message_id=f"{number:032x}"))
        answer = _text(random_of, ANSWER_CHARS)
        closed.append(TurnClosed(turn_id, TurnEnding.ANSWERED, NOW + number, answer=answer, finish_reason="stop"))
    return opened, closed


def _text(random_of: random.Random, chars: int) -> str:
    return "".join(random_of.choices("abcdefghijklmnopqrstuvwxyz     ", k=chars))


def _bytes(place: str) -> int:
    if not place.startswith("postgresql"):
        return sum(each.stat().st_size for each in Path(place).parent.iterdir())
    with psycopg.connect(place, autocommit=True) as server:
        server.execute("CHECKPOINT")
        found = server.execute("SELECT pg_database_size(current_database())").fetchone()
    return int(found[0]) if found else 0


if __name__ == "__main__":
    sys.exit(main())
