"""Qdrant's errors, and those of what its client uses, as ours."""

import asyncio
import errno
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

import httpx
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from semmem.ports.errors import StoreDamaged, StoreError, StoreFull, StoreTimeout, StoreUnavailable

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
SQLITE_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)
NO_ROOM_WORDS = (b"No space left on device", b"out of disk space", b"not enough space")
"""What a server says in the text of a 500 (the first is the system's own)."""

call_timeout_s: ContextVar[float] = ContextVar("of the calls within")


@asynccontextmanager
async def within(operation: str, timeout_s: float) -> AsyncIterator[None]:
    """A deadline for everything inside, and for each call; Qdrant's errors as ours."""
    token = call_timeout_s.set(timeout_s)
    try:
        with our_errors(operation):
            async with asyncio.timeout(timeout_s):
                yield
    finally:
        call_timeout_s.reset(token)


@asynccontextmanager
async def opening(timeout_s: float, close: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """As ``within``, for the way in: whatever fails, it is closed again, and what is late is not there yet."""
    try:
        async with within("open", timeout_s):
            yield
    except BaseException as error:
        await close()
        if isinstance(error, StoreTimeout):
            raise StoreUnavailable(str(error)) from None
        raise


@contextmanager
def our_errors(operation: str) -> Iterator[None]:
    """Qdrant's own messages are left out, of chained exceptions too: they may quote filters, and so user ids."""
    try:
        yield
    except UnexpectedResponse as error:
        raise _of_response(operation, error) from None
    except ResponseHandlingException as error:
        raise _of_transport(operation, error.source) from None
    except QdrantException:  # status 429 with the time to wait
        raise StoreUnavailable(f"qdrant {operation}: the server has too much to do") from None
    except TimeoutError:
        raise StoreTimeout(f"qdrant {operation} did not end within its deadline") from None
    except sqlite3.Error as error:
        raise _of_file(operation, error) from None
    except OSError as error:
        kind = StoreFull if error.errno in NO_ROOM else StoreError
        raise kind(f"qdrant {operation} failed: {type(error).__name__} {error.strerror or ''}".rstrip()) from None
    except (ValueError, RuntimeError) as error:  # how the client says that it will not do something
        raise StoreError(f"qdrant {operation} failed: {type(error).__name__}") from None


def _of_response(operation: str, error: UnexpectedResponse) -> StoreError:
    status = error.status_code or 0
    if status in (401, 403):
        return StoreError(f"qdrant {operation}: the server refused the API key (status {status})")
    if any(words in error.content for words in NO_ROOM_WORDS) or status == 507:
        return StoreFull(f"qdrant {operation}: the server cannot write to its disk")
    if status == 408:
        return StoreTimeout(f"qdrant {operation} did not end within its deadline")
    if status == 429 or status >= 500:
        return StoreUnavailable(f"qdrant {operation}: the server answered with status {status}")
    return StoreError(f"qdrant {operation} failed with status {status}")


def _of_transport(operation: str, source: Exception) -> StoreError:
    if isinstance(source, httpx.TimeoutException):
        return StoreTimeout(f"qdrant {operation} did not end within its deadline")
    if isinstance(source, httpx.TransportError):
        return StoreUnavailable(f"qdrant {operation}: the server cannot be reached ({type(source).__name__})")
    return StoreError(f"qdrant {operation}: the answer cannot be read ({type(source).__name__})")


def _of_file(operation: str, error: sqlite3.Error) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in SQLITE_NO_ROOM:
        return StoreFull(f"qdrant {operation}: the store cannot write to its disk (full, over quota, or read-only)")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreDamaged(f"qdrant {operation}: the file of the collection cannot be read")
    return StoreError(f"qdrant {operation} failed: {type(error).__name__}")
