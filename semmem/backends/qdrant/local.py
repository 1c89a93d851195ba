"""The client's local mode, in one thread of its own: it is synchronous Python, and SQLite belongs to a thread.

A folder belongs to one process. Its files are Python pickles: whoever may write there may run code here."""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, ClassVar, TypeVar

from qdrant_client import QdrantClient

from semmem.backends.disk_room import require_room
from semmem.backends.qdrant.errors import opening, our_errors
from semmem.ports.errors import StoreDamaged, StoreError, StoreUnavailable

LOCK_NAME = ".lock"
REMEDY = "put it back from a backup, or move it away to begin empty"

Result = TypeVar("Result")


@dataclass(eq=False, repr=False)
class LocalQdrant:
    """In ``folder`` (made with mode 0700), with any number of collections. At most ``waiting_max`` calls wait for the
    thread, ``open_timeout_s`` bounds opening as a whole."""

    is_server: ClassVar[bool] = False
    folder: Path
    _: KW_ONLY
    open_timeout_s: float = 30.0
    waiting_max: int = 256
    _thread: ThreadPoolExecutor | None = field(init=False, default=None)
    _client: QdrantClient | None = field(init=False, default=None)
    _opened: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._places = BoundedSemaphore(self.waiting_max)

    async def open(self) -> None:
        """Idempotent. Raises StoreUnavailable while another process has the folder, StoreDamaged when a file in it
        cannot be read; may then be called again."""
        if self._opened:
            return
        self._thread = self._thread or ThreadPoolExecutor(1, "qdrant-local")
        async with opening(self.open_timeout_s, self.close):
            await self._submit(self._connected)
        self._opened = True

    async def close(self) -> None:
        self._opened = False
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.wrap_future(thread.submit(self._disconnect))
            await asyncio.to_thread(thread.shutdown)

    async def ask(self, operation: str, **arguments: Any) -> Any:
        """One call of the client. Raises StoreUnavailable when it is not open, and whatever the client raises."""
        return await self._once_open(lambda: getattr(self._connected(), operation)(**arguments))

    async def drop(self, name: str) -> None:
        """A collection with all that it holds. Calls wait for it. Raises as ``ask``."""
        await self._once_open(lambda: self._drop(name))

    async def purge(self, name: str) -> bool:
        """Rewrite that collection's file without what was removed, and forget it in memory too. Calls wait for it."""
        await self._once_open(lambda: self._purge(name))
        return True

    async def check_room(self) -> None:
        await require_room(self.folder)

    async def _once_open(self, work: Callable[[], Result]) -> Result:
        if not self._opened:
            raise StoreUnavailable("the Qdrant store is closed")
        return await self._submit(work)

    async def _submit(self, work: Callable[[], Result]) -> Result:
        """A caller whose deadline passes leaves; what has begun goes on to its end."""
        if self._thread is None:
            raise StoreUnavailable("the Qdrant store is closed")
        if not self._places.acquire(blocking=False):
            raise StoreUnavailable(f"qdrant: {self.waiting_max} calls wait for the local mode already")
        future = self._thread.submit(work)
        future.add_done_callback(lambda _done: self._places.release())
        return await asyncio.wrap_future(future)

    # --- in the thread -----------------------------------------------------------------------------------------------

    def _connected(self) -> QdrantClient:
        """Also opens again what a purge could not."""
        if self._client is not None:
            return self._client
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_free(self.folder / LOCK_NAME)
            self._client = QdrantClient(path=str(self.folder))
            return self._client
        except (BlockingIOError, RuntimeError):
            raise StoreUnavailable(f"{self.folder} is in use by another process") from None
        except OSError as error:
            raise StoreUnavailable(f"{self.folder} cannot be opened: {error.strerror}") from None
        except Exception as error:  # damaged JSON, SQLite and pickles raise anything
            raise StoreDamaged(f"{self.folder} cannot be read ({type(error).__name__}): {REMEDY}") from None

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _drop(self, name: str) -> None:
        """The client keeps the file of what it drops open, and so on the disk, for as long as it lives. So it drops an
        empty one: killed in between, that is what is there."""
        self._disconnect()
        shutil.rmtree(self.folder / "collection" / name, ignore_errors=True)
        self._connected().delete_collection(name)

    def _purge(self, name: str) -> None:
        file = self.folder / "collection" / name / "storage.sqlite"
        self._disconnect()
        try:
            with our_errors("purge"):
                _rewrite(file)
        finally:
            self._connected()


def _check_free(lock: Path) -> None:
    """Raises BlockingIOError when another process holds it. The client asks too, but only after it has read the whole
    collection, and leaves the file open."""
    if lock.exists():
        with lock.open("r+") as file:
            flock(file, LOCK_EX | LOCK_NB)


def _rewrite(file: Path) -> None:
    """Killed at any moment the file is as it was, or as it shall be. The copy is made in memory, in no other file."""
    if not file.exists():
        raise StoreError(f"{file} is missing")
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA secure_delete = ON")
        database.execute("PRAGMA temp_store = MEMORY")
        database.execute("VACUUM")
