"""``python -m tests.server [pytest options]``: the contract of stores, and what is a server's own, on a real Milvus.

One server is started for all tests (some 15 s), and one each where a test kills it or wants a token from it. The last
line says how many tests there were. Exit status 1 when one failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.own_milvus import MILVUS_VENV
from demo.processes import signals_raise
from demo.stack import HOME
from tests.support.junit import counted
from tests.support.milvus import running_milvus

PARTS = {
    "contract": ["tests/integration/backends/test_store_contract.py", "-k", "milvus_server"],
    "server": ["tests/integration/backends/test_milvus_server.py"],
}
WORKERS = "4"
"""Tests that mostly wait for a server's time ticks."""


def main() -> int:
    if not (MILVUS_VENV / ".ready").exists():
        print("no Milvus server: make .venv-milvus/.ready", file=sys.stderr)
        return 2
    began = time.monotonic()
    with signals_raise(), tempfile.TemporaryDirectory(prefix="semmem-server-") as temporary:
        folder = Path(temporary)
        with running_milvus(folder / "milvus") as server:
            counts = {name: _run(name, arguments, server.uri, folder) for name, arguments in PARTS.items()}
    failed = sum(bad for _, bad in counts.values())
    tests = ", ".join(f"{number} {name}" for name, (number, _) in counts.items())
    print(f"server: {tests} tests on a Milvus server, {failed} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed or not all(number for number, _ in counts.values()) else 0


def _run(name: str, arguments: list[str], uri: str, folder: Path) -> tuple[int, int]:
    """How many tests there were, and how many of them failed."""
    report = folder / f"{name}.xml"
    argv = [sys.executable, "-m", "pytest", "-q", "-n", WORKERS, "--junitxml", str(report), *arguments, *sys.argv[1:]]
    subprocess.run(argv, cwd=HOME, env={**os.environ, "MILVUS_TEST_URI": uri}, check=False)
    return counted(report)


if __name__ == "__main__":
    sys.exit(main())
