"""What goes away while users talk, and comes back."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.canary.run import Say
from tests.fleet.stack import Fleet

LOOK_S = 0.1
AFTERMATH_S = 5.0
"""So long after something is back, an answer of the API may still be an error."""

Done = Callable[[], float]
"""The share of the turns that are done."""


@asynccontextmanager
async def away(fleet: Fleet) -> AsyncIterator[None]:
    fleet.away += 1
    try:
        yield
        await asyncio.sleep(AFTERMATH_S)
    finally:
        fleet.away -= 1


async def lose_valkey(fleet: Fleet, done: Done, say: Say) -> None:
    async with away(fleet):
        await asyncio.to_thread(fleet.valkey.kill)
        say("Valkey is killed")
        await reached(done, 0.4)
        await asyncio.to_thread(fleet.valkey.start)
        say("Valkey is back, and empty")


async def lose_replica(fleet: Fleet, _done: Done, say: Say) -> None:
    """One is killed, and started again at once."""
    victim = fleet.replicas[-1]
    async with away(fleet):
        fleet.troubles.kills.append(time.monotonic())
        await asyncio.to_thread(victim.kill)
        fleet.troubles.kills.append(time.monotonic())  # it died in between
        say("a replica is killed")
        await asyncio.to_thread(victim.start)
        await asyncio.to_thread(fleet.wait_healthy)
        say("it is back")


async def lose_postgres(fleet: Fleet, _done: Done, say: Say) -> None:
    if (postgres := fleet.postgres) is None:
        return
    async with away(fleet):
        began = time.monotonic()
        fleet.troubles.outages.append((began, math.inf))
        await asyncio.to_thread(postgres.stop)
        say("PostgreSQL is down")
        await asyncio.to_thread(postgres.start)
        fleet.troubles.outages[-1] = (began, time.monotonic())
        say(f"PostgreSQL is back after {time.monotonic() - began:.1f} s")


Lose = Callable[[Fleet, Done, Say], Awaitable[None]]

FAULTS: tuple[tuple[float, Lose], ...] = (
    (0.25, lose_valkey),
    (0.5, lose_replica),
    (0.7, lose_postgres),
)
"""By the share of the turns after which they begin."""


async def all_faults(fleet: Fleet, done: Done, tell: Say) -> None:
    def say(event: str) -> None:
        fleet.troubles.say(event)
        tell(event)

    async def one(share: float, lose: Lose) -> None:
        await reached(done, share)
        await lose(fleet, done, say)

    await asyncio.gather(*(one(share, lose) for share, lose in FAULTS))


async def reached(done: Done, share: float) -> None:
    while done() < share:
        await asyncio.sleep(LOOK_S)
