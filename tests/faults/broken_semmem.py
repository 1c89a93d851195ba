"""semmem with parts that can be broken from outside, so that semmem itself needs no switches for tests.

    python -m tests.faults.broken_semmem --config config.yaml --switch FILE [--journal-bytes-max N]

The embedder is the tests' bag of words: it starts at once and needs no model. While ``FILE`` exists its one word says
how the embedder misbehaves: ``raises``, ``slow`` (a second for each text) or ``breaks`` (an error nobody expects).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from semmem import assembly
from semmem.backends.sql import SqlJournal
from semmem.cli import main as semmem
from semmem.config.settings import Settings
from semmem.memory import Vector
from semmem.ports import Embedder, EmbedderError
from tests.fakes import HashEmbedder

SLOW_S = 1.0


class BreakableEmbedder(HashEmbedder):
    """A HashEmbedder that obeys the switch."""

    def __init__(self, dimension: int, switch: Path) -> None:
        super().__init__(dimension)
        self._switch = switch

    async def embed(self, text: str) -> Vector:
        match self._switch.read_text() if self._switch.exists() else "":
            case "raises":
                raise EmbedderError("the switch says so")
            case "breaks":
                raise ZeroDivisionError("the switch says so")
            case "slow":
                await asyncio.sleep(SLOW_S)
        return await super().embed(text)


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

    assembly.embedder = embedder
    assembly.journal = journal
    return semmem(["serve", "--config", options.config])


if __name__ == "__main__":
    sys.exit(main())
