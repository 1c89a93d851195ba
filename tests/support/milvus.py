"""A real Milvus server on this machine, which may be killed and started again at the same address."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.kernel import children
from bench.own_milvus import MILVUS_VENV, SERVER
from demo.processes import Child
from demo.stack import HOME
from tests.support.ports import free_port

START_S = 150.0


class MilvusServer:
    """The standalone server of the PyPI package ``milvus`` (``make .venv-milvus/.ready``), its data in ``folder``.

    ``asks_for_token``: it takes only who says ``root:Milvus``. ``tls``: a folder with ``server.pem`` and
    ``server.key``, and where clients need a certificate too, ``ca.pem``.
    """

    def __init__(self, folder: Path, *, asks_for_token: bool = False, tls: Path | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._port = free_port()
        self._tls = tls
        self._options = ["--authorization"] if asks_for_token else []
        self._options += ["--tls", str(tls)] if tls else []
        self._child: Child | None = None

    @property
    def uri(self) -> str:
        return f"{'https://localhost' if self._tls else 'http://127.0.0.1'}:{self._port}"

    def start(self) -> None:
        """Return when it serves. Raises Failed."""
        python = str(MILVUS_VENV / "bin" / "python")
        argv = [python, "-P", str(SERVER), str(self._folder), "--port", str(self._port), *self._options]
        log = self._folder / "launcher.log"
        self._child = Child("milvus", argv, log=log, cwd=HOME, environ=os.environ)
        self._child.wait_for(r"^milvus ready", timeout_s=START_S)

    def signal(self, number: int) -> None:
        """To the server itself, not to what started it."""
        assert self._child is not None
        for pid in children(self._child.pid):
            os.kill(pid, number)

    def kill(self) -> None:
        if self._child is not None:
            self.signal(signal.SIGKILL)
            self._child.wait(30)
            self._child = None


@contextmanager
def running_milvus(folder: Path, *, asks_for_token: bool = False, tls: Path | None = None) -> Iterator[MilvusServer]:
    server = MilvusServer(folder, asks_for_token=asks_for_token, tls=tls)
    try:
        server.start()
        yield server
    finally:
        server.kill()
