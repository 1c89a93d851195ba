"""semmem with parts that can be broken from outside, so that semmem itself needs no switches for tests.

    python -m tests.faults.broken_semmem --config config.yaml --switch FILE [--journal-bytes-max N]

The embedder is the tests' bag of words: it starts at once and needs no model. While ``FILE`` exists its one word says
how the embedder misbehaves: ``opening`` (it is not open yet), ``raises``, ``slow`` (a second for each text) or
``breaks`` (an error nobody expects). ``clock SECONDS`` instead puts the wall clock wrong by so much.
"""

# ruff: noqa: E402
from __future__ import annotations

import argparse
import asyncio
import sys
import threading
import time
from pathlib import Path

RIGHT_TIME = time.time
OFF_S = [0.0]


def _clock() -> float:
    """The time for everybody but gRPC: its deadlines meet a clock of the operating system, which would be off too."""
    caller = str(sys._getframe(1).f_globals.get("__name__"))
    return RIGHT_TIME() if caller.startswith("grpc") else RIGHT_TIME() + OFF_S[0]


time.time = _clock

from semmem.backends.sql.journal import SqlJournal
from semmem.cli import main as semmem
from semmem.config.settings import Settings
from semmem.memory import Vector
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError
from semmem.wiring import stores
from tests.support.fakes import HashEmbedder
from tests.support.serve import use_embedder

SLOW_S = 1.0
LOOKS_S = 0.02
"""How often the switch is looked at for the clock's sake."""


class BreakableEmbedder(HashEmbedder):
    """A HashEmbedder that obeys the switch."""

    def __init__(self, dimension: int, switch: Path) -> None:
        super().__init__(dimension)
        self._switch = switch

    async def open(self) -> None:
        while _read(self._switch) == "opening":
            await asyncio.sleep(LOOKS_S)
        await super().open()

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        match _read(self._switch):
            case "raises" | "opening":
                raise EmbedderError("the switch says so")
            case "breaks":
                raise ZeroDivisionError("the switch says so")
            case "slow":
                await asyncio.sleep(SLOW_S)
        return await super().embed(text)


def obey_clock(switch: Path) -> None:
    """Put the clock as the switch says, for ever."""
    while True:
        word, _, seconds = _read(switch).partition(" ")
        OFF_S[0] = float(seconds) if word == "clock" else 0.0
        time.sleep(LOOKS_S)


def _read(switch: Path) -> str:
    try:
        return switch.read_text()
    except FileNotFoundError:
        return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.broken_semmem")
    parser.add_argument("--config", required=True)
    parser.add_argument("--switch", type=Path, required=True)
    parser.add_argument("--journal-bytes-max", type=int, default=None)
    options = parser.parse_args()

    def embedder(settings: Settings) -> Embedder:
        return BreakableEmbedder(settings.memory.embedding.dimension, options.switch)

    def journal(settings: Settings) -> SqlJournal:
        path = Path(settings.data_dir) / settings.journal.path
        return SqlJournal(path, size_bytes_max=options.journal_bytes_max)

    threading.Thread(target=obey_clock, args=(options.switch,), daemon=True).start()
    use_embedder(embedder)
    stores.journal = journal
    return semmem(["serve", "--config", options.config])


if __name__ == "__main__":
    sys.exit(main())
