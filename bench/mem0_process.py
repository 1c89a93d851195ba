"""mem0's process, as whoever asks it sees it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from bench.facts import Fact
from bench.figures import Json
from demo.processes import Failed
from semmem.backends.embedding.weights import resolve_weights
from semmem.config.backends_section import EmbeddingSection

WORKER = Path(__file__).with_name("mem0_worker.py")
OPEN_S, ADD_S, ANSWER_S, END_S = 300.0, 900.0, 60.0, 20.0
FACTS_AT_ONCE = 50


class Mem0:
    """One mem0 over one store. Raises Failed for whatever does not work there."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    async def open(self, store: str, uri: str, folder: Path, collection: str, embedding: EmbeddingSection) -> Json:
        """With the weights that semmem has. What it runs with: versions, whether it searches by words as well."""
        weights = await asyncio.to_thread(resolve_weights, embedding.model)
        where = {"store": store, "uri": uri, "folder": str(folder), "collection": collection}
        return await self._ask(OPEN_S, do="open", **where, model=weights.source, dimension=embedding.dimension)

    async def add(self, facts: Sequence[Fact]) -> float:
        """Seconds that mem0 took for all of them; then what its store keeps in a buffer is flushed."""
        seconds = 0.0
        for start in range(0, len(facts), FACTS_AT_ONCE):
            some = [[fact.number, fact.user, fact.content] for fact in facts[start : start + FACTS_AT_ONCE]]
            seconds += float((await self._ask(ADD_S, do="add", facts=some))["seconds"])
        await self._ask(ADD_S, do="settle")
        return seconds

    async def search(self, text: str, user: str, limit: int) -> Json:
        """``numbers``, ``seconds``, ``embed_seconds``, ``cpu_seconds``."""
        return await self._ask(ANSWER_S, do="search", question=text, user=user, limit=limit)

    async def close(self) -> Json:
        return await self._ask(ANSWER_S, do="close")

    async def _ask(self, timeout_s: float, **asked: Any) -> Json:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        try:
            async with asyncio.timeout(timeout_s):
                await self._process.stdin.drain()
                line = await self._process.stdout.readline()
        except (TimeoutError, ConnectionError) as error:
            raise Failed(f"mem0 did not answer: {asked['do']}", self._log) from error
        answer: Json = json.loads(line or '{"ok": false, "error": "it ended"}')
        if not answer.pop("ok"):
            raise Failed(f"mem0, {asked['do']}: {answer['error']}", self._log)
        return answer


@asynccontextmanager
async def mem0_process(python: Path, folder: Path, name: str) -> AsyncIterator[Mem0]:
    """Closed at the end, or killed. Raises Failed."""
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            python,
            "-P",  # else modules of the benchmark stand in front of libraries of the same name
            WORKER,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=output,
            limit=2**24,
            env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        )
    mem0 = Mem0(process, log)
    try:
        yield mem0
    finally:
        with suppress(Failed):
            await mem0.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()
