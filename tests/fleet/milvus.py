"""The store's server: it can be stopped like a machine that hangs; then its supervisor ends it and begins it again.

Milvus 2.3.5 that merely goes on after half a minute finds its own leases run out: it ends itself, or stays and answers
nothing any more.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.own_milvus import MILVUS_VENV, SERVER, START_S
from demo.processes import Child
from demo.stack import HOME
from tests.support.ports import free_port
from tests.support.servers import shared_milvus_lite


@dataclass(slots=True)
class StoreServer:
    """``revive``: makes its process, which was stopped, or another one in its place serve again. Blocking."""

    address: str
    revive: Callable[[int], None]

    def stop(self) -> int:
        """Its process, which does nothing from here on."""
        pid = listening_at(int(self.address.rsplit(":", 1)[1]))
        os.kill(pid, signal.SIGSTOP)
        return pid


@dataclass(slots=True)
class _Milvus:
    folder: Path
    port: int = field(default_factory=free_port)
    child: Child | None = None
    starts: int = 0

    def revive(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        if self.child is not None:
            self.child.wait(20)
        self.start()

    def start(self) -> None:
        self.starts += 1
        python = MILVUS_VENV / "bin" / "python"
        argv = [str(python), "-P", str(SERVER), str(self.folder / "server"), "--port", str(self.port)]
        log = self.folder / f"milvus-{self.starts}.log"
        self.child = Child("milvus", argv, log=log, cwd=HOME, environ=os.environ)
        self.child.wait_for(r"^milvus ready http://(\S+)$", timeout_s=START_S)

    def end(self) -> None:
        if self.child is not None:
            self.child.terminate()
            self.child.wait(20)


@contextmanager
def milvus_lite(folder: Path) -> Iterator[StoreServer]:
    with shared_milvus_lite(folder) as address:
        yield StoreServer(address, lambda pid: os.kill(pid, signal.SIGCONT))


@contextmanager
def milvus_server(folder: Path) -> Iterator[StoreServer]:
    """A server of its own, whose data are in ``folder``. Raises Failed."""
    assert (MILVUS_VENV / ".ready").exists(), "no Milvus server: make .venv-milvus/.ready, or --lite"
    milvus = _Milvus(folder)
    try:
        milvus.start()
        yield StoreServer(f"127.0.0.1:{milvus.port}", milvus.revive)
    finally:
        milvus.end()


def listening_at(port: int) -> int:
    """The process on this machine that listens at a TCP port."""
    sockets = {f"socket:[{inode}]" for inode in _listening(port)}
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            if any(os.readlink(file) in sockets for file in folder.iterdir()):
                return int(folder.parent.name)
        except OSError:
            continue  # it ended, or is none of ours
    raise LookupError(f"nobody listens at port {port}")


def _listening(port: int) -> Iterator[str]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                yield fields[9]
