"""semmem in a process of its own, with a watch on its event loop. Each line of standard input is answered by one of
JSON: how late the loop was since the line before, in milliseconds."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import uvloop

from semmem.background import Tasks
from semmem.config import load
from semmem.wiring.app import App

INTERVAL_S = 0.002


class Watch:
    """Wakes up again and again, and notes how much later than it wanted."""

    def __init__(self) -> None:
        self.late_ms: list[float] = []

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            wanted = loop.time() + INTERVAL_S
            await asyncio.sleep(INTERVAL_S)
            self.late_ms.append(max(0.0, 1000 * (loop.time() - wanted)))

    def take(self) -> dict[str, float]:
        late, self.late_ms = sorted(self.late_ms) or [0.0], []
        return {
            "p50": late[len(late) // 2],
            "p99": late[len(late) * 99 // 100],
            "p99.9": late[len(late) * 999 // 1000],
            "max": late[-1],
        }


async def serve(config: Path) -> None:
    app, watch, tasks = App(load(config, os.environ)), Watch(), Tasks()
    async with app.running() as addresses:
        tasks.spawn("watch", watch.run())
        print(json.dumps({"grpc": addresses.grpc, "api": addresses.api, "health": addresses.health}), flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(watch.take()), flush=True)
        await tasks.cancel()


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1])))
