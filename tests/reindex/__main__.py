"""``python -m tests.reindex [--memories 20000] [--kills 2] [--backend qdrant]``: another embedding model under
traffic, killed meanwhile. Of Milvus Lite, or of Qdrant's local mode, which should not have more than some thousand.

Exit status 1 when an answer was wrong, a memory missing, or an erased one came back.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from demo.processes import signals_raise
from tests.reindex.story import play

THINGS = 50
"""Memories of each person."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reindex", description=__doc__)
    parser.add_argument("--memories", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between two calls of each of three threads")
    parser.add_argument("--backend", choices=["milvus", "qdrant"], default="milvus", help="whose embedded form")
    options = parser.parse_args()
    persons = max(1, options.memories // THINGS)
    with signals_raise(), tempfile.TemporaryDirectory(prefix="semmem-reindex-") as folder:
        told = play(
            Path(folder),
            persons=persons,
            things=THINGS,
            kills=options.kills,
            pause_s=options.pause,
            backend=options.backend,
        )
    print("\n".join(told.lines))
    print(f"{told.seconds:.0f} s with its restarts, killed {told.kills} times while it was filling")
    counted = told.counted
    print(
        f"reindex: {told.memories} memories, {counted.wrong} wrong, {counted.missing} missing,"
        f" {counted.came_back} came back"
    )
    return 0 if told.is_right else 1


if __name__ == "__main__":
    sys.exit(main())
