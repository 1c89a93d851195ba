"""One collection of one Milvus: connect, make or check the collection, keep it loaded, map every error.

Data calls go through pymilvus' asyncio client. Schema work and iterators use the blocking client in a thread, because
the asyncio one lacks iterators and cannot create collections on Milvus Lite."""

import asyncio
import errno
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import grpc
from pymilvus import AsyncMilvusClient, MilvusClient, MilvusException

from semmem.backends.milvus.background import OwnedTasks
from semmem.backends.milvus.indexes import INDEXES, check_server_has
from semmem.backends.milvus.rows import VECTOR_FIELD, schema
from semmem.ports.errors import StoreError, StoreFull, StoreTimeout, StoreUnavailable
from semmem.ports.store import check_same

SCHEMA_VERSION = 1
METRIC = "COSINE"
CONNECT_FAILED = 2
NO_COLLECTION = 100
NOT_LOADED = 101
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
"""How Milvus Lite's messages begin when the system refused a write."""
SCAN_BATCH = 1000
OTHERS_POLLS = 20
OTHERS_POLL_S = 0.1

_GRPC_OPTIONS = {
    # pymilvus pings every 10 s by default, which Lite's server answers with GOAWAY (too_many_pings).
    "grpc.keepalive_time_ms": 60_000,
    "grpc.keepalive_permit_without_calls": False,
    # gRPC's own pauses between attempts to connect grow to two minutes.
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1000,
    # What one attempt may take, despite its name: TCP, TLS and the first answer of a server that is far away or busy.
    "grpc.min_reconnect_backoff_ms": 5000,
}

RELOAD_TIMEOUT_S = 5.0
"""A load that a dying server took with it is not waited for: every call waits with it, and the next one tries anew."""
_call_timeout_s: ContextVar[float] = ContextVar("of the calls within")


def server_options(
    uri: str, *, token: str = "", database: str = "", ca_file: str = "", cert_file: str = "", **others: Any
) -> dict[str, Any]:
    """A server's address and what it asks for, as pymilvus takes it. ``others``: ``secure``, ``client_key_path`` and
    ``server_name``. Files are PEM; without a certificate of ours pymilvus looks for the authority in
    ``server_pem_path`` only."""
    authority = "ca_pem_path" if cert_file else "server_pem_path"
    tls = {authority: ca_file, "client_pem_path": cert_file, **others}
    return {"uri": uri, "token": token, "db_name": database, **{name: value for name, value in tls.items() if value}}


def client_options(server: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
    """What both pymilvus clients take."""
    return {**server, "dedicated": True, "grpc_options": _GRPC_OPTIONS, "timeout": timeout_s}


@dataclass(eq=False, repr=False)
class MilvusConnection:
    """``server``: see ``server_options``. Raises ValueError for a uri or an index of another kind."""

    _: KW_ONLY
    server: Mapping[str, Any]
    collection: str
    dimension: int
    signature: str
    index: str
    num_partitions: int
    open_timeout_s: float
    _client: AsyncMilvusClient | None = field(init=False, default=None)
    _loading: asyncio.Task[None] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if not self.server["uri"].startswith(("http://", "https://")) or self.server["uri"].endswith(".db"):
            raise ValueError("a Milvus uri is http://host:port or https://host:port")
        if self.index not in INDEXES:
            raise ValueError(f"index must be one of {', '.join(INDEXES)}")
        self._options = client_options(self.server, self.open_timeout_s)
        self._tasks = OwnedTasks("milvus")
        # pymilvus logs every failed call with its filter, which holds user ids; the errors raised here say enough.
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)

    @property
    def is_open(self) -> bool:
        return self._client is not None

    async def open(self) -> str:
        """Connect, make or check the collection and load it. Returns the server's version. Raises StoreUnavailable when
        the server does not answer in time, StoreMismatch when the collection does not fit."""
        try:
            async with self.within("open", self.open_timeout_s):
                version = await asyncio.to_thread(self._prepare)
                client = AsyncMilvusClient(**self._options)
                # The first call connects. It is made here, alone: two at once would make two connections.
                with _cancellable():
                    await client.get_server_version(timeout=self.open_timeout_s)
        except StoreTimeout as error:
            raise StoreUnavailable(str(error)) from None
        self._client = client
        return version

    async def close(self) -> None:
        client, self._client = self._client, None
        await self._tasks.close()
        if client is not None:
            with our_errors("close"):
                await client.close()

    @asynccontextmanager
    async def within(self, operation: str, timeout_s: float) -> AsyncIterator[None]:
        """A deadline for everything inside, and for each call; Milvus' errors as ours."""
        token = _call_timeout_s.set(timeout_s)
        try:
            with our_errors(operation):
                async with asyncio.timeout(timeout_s):
                    yield
        finally:
            _call_timeout_s.reset(token)

    async def call(self, operation: str, **arguments: Any) -> Any:
        """One data call on the collection, inside ``within``. A collection that is not loaded is loaded first. It has
        the deadline's time for itself as well: without, a call on a hung server never ends by itself."""
        try:
            return await self._call_once(operation, **arguments)
        except MilvusException as error:
            if error.code != NOT_LOADED:
                raise
        # After a restart. Many calls may find out at once: one load serves them all, and outlives a caller whose
        # deadline passes, so that a later call finds the collection loaded.
        if self._loading is None or self._loading.done():
            self._loading = self._tasks.spawn(self._load())
        await asyncio.shield(self._loading)
        return await self._call_once(operation, **arguments)

    async def _call_once(self, operation: str, **arguments: Any) -> Any:
        if self._client is None:
            raise StoreUnavailable("the Milvus store is closed")
        call = getattr(self._client, operation)
        with _cancellable():
            return await call(self.collection, timeout=_call_timeout_s.get(), **arguments)

    async def scan(self, filter: str, fields: list[str], *, timeout_s: float) -> AsyncGenerator[list[Any]]:
        """Batches of every row that matches, whoever's it is."""
        asked = {"filter": filter, "output_fields": fields, "batch_size": SCAN_BATCH, "timeout": timeout_s}
        with our_errors("scan"):
            client = await asyncio.to_thread(MilvusClient, **self._options)
            try:
                iterator = await asyncio.to_thread(client.query_iterator, self.collection, **asked)
                while rows := await asyncio.to_thread(iterator.next):
                    yield rows
                await asyncio.to_thread(iterator.close)
            finally:
                await asyncio.to_thread(client.close)

    async def _load(self) -> None:
        if self._client is not None:
            timeout_s = min(self.open_timeout_s, RELOAD_TIMEOUT_S)
            with _cancellable():
                await self._client.load_collection(self.collection, timeout=timeout_s)

    # --- in a thread -------------------------------------------------------------------------------------------------

    def _prepare(self) -> str:
        name, timeout_s = self.collection, self.open_timeout_s
        with closing(MilvusClient(**self._options)) as client:
            version = str(client.get_server_version(timeout=timeout_s))
            check_server_has(self.index, version)
            ensure(lambda: client.has_collection(name, timeout=timeout_s), lambda: self._create_collection(client))
            ensure(lambda: bool(client.list_indexes(name, timeout=timeout_s)), lambda: self._create_index(client))
            self._check(client)
            try:
                client.load_collection(name, timeout=timeout_s)
            except MilvusException as error:
                if error.code != NOT_LOADED:  # seen once in a while from load_collection itself
                    raise
                client.load_collection(name, timeout=timeout_s)
            return version

    def _create_collection(self, client: MilvusClient) -> None:
        client.list_collections(timeout=self.open_timeout_s)  # which names a missing database
        client.create_collection(
            self.collection,
            schema=schema(self.dimension),
            num_partitions=self.num_partitions,
            num_shards=1,  # rows of one user in one shard, so that a read sees them at one moment
            consistency_level="Bounded",
            properties={"semmem.schema": str(SCHEMA_VERSION), "semmem.signature": self.signature},
            timeout=self.open_timeout_s,
        )

    def _create_index(self, client: MilvusClient) -> None:
        parameters = client.prepare_index_params()
        parameters.add_index(
            VECTOR_FIELD, index_type=self.index, metric_type=METRIC, params=INDEXES[self.index].creation
        )
        # Of a collection that has no rows yet there is nothing to wait for; pymilvus would sleep half a second.
        client.create_index(self.collection, parameters, timeout=self.open_timeout_s, sync=False)

    def _check(self, client: MilvusClient) -> None:
        """Raises StoreMismatch."""
        collection = client.describe_collection(self.collection, timeout=self.open_timeout_s)
        vectors = [field for field in collection["fields"] if field["name"] == VECTOR_FIELD]
        index = client.describe_index(self.collection, VECTOR_FIELD, timeout=self.open_timeout_s) or {}
        properties, dimension = collection["properties"], str(vectors[0]["params"]["dim"]) if vectors else ""
        wanted_and_found = {
            "schema version": (str(SCHEMA_VERSION), properties.get("semmem.schema", "")),
            "embedding signature": (self.signature, properties.get("semmem.signature", "")),
            "dimension": (str(self.dimension), dimension),
            "metric": (METRIC, index.get("metric_type", "")),
            "index": (self.index, index.get("index_type", "")),
        }
        remedy = "Configure what it was made with, reindex it, or name another collection."
        check_same(f"the Milvus collection {self.collection}", wanted_and_found, remedy)


def ensure(present: Callable[[], bool], make: Callable[[], None]) -> None:
    """Make what is not there. When another replica is making it at the same time, wait until that one is ready."""
    if present():
        return
    try:
        make()
    except MilvusException:
        for _ in range(OTHERS_POLLS):
            if present():
                return
            time.sleep(OTHERS_POLL_S)
        raise


@contextmanager
def _cancellable() -> Iterator[None]:
    """pymilvus waits by ``asyncio.wait_for``, which until Python 3.12 swallows a cancellation that comes together with
    the answer: a task that is cancelled once and then waited for would go on for ever."""
    task = asyncio.current_task()
    assert task is not None
    asked = task.cancelling()
    try:
        yield
    finally:
        if task.cancelling() > asked:
            raise asyncio.CancelledError


@contextmanager
def our_errors(operation: str) -> Iterator[None]:
    """Milvus' own messages are left out, of chained exceptions too: they quote filters, and so user ids."""
    try:
        yield
    except MilvusException as error:
        if error.code == CONNECT_FAILED and _refuses_token(error):
            raise StoreError(f"milvus {operation}: the server refuses the token (memory.milvus.token)") from None
        raise _ours(operation, error.code, str(error.message)) from None
    except grpc.RpcError as error:
        code = error.code() if callable(getattr(error, "code", None)) else None
        details = error.details() if callable(getattr(error, "details", None)) else None
        raise _ours(operation, code, str(details)) from None
    except TimeoutError:
        raise StoreTimeout(f"milvus {operation} did not end within its deadline") from None
    except OSError as error:
        raise StoreError(f"milvus {operation} failed: {type(error).__name__} (a TLS file?)") from None


def _refuses_token(error: MilvusException) -> bool:
    """pymilvus says of every first call that fails that the server cannot be reached; what gRPC said lies beneath."""
    beneath = error.__cause__ or error.__context__
    return isinstance(beneath, grpc.RpcError) and beneath.code() is grpc.StatusCode.UNAUTHENTICATED


def _ours(operation: str, code: object, message: str) -> StoreError:
    text = f"{code} {message}"
    if code is grpc.StatusCode.PERMISSION_DENIED:
        return StoreError(f"milvus {operation}: the token's user lacks a right to the collection")
    if "database not found" in message:
        return StoreError(f"milvus {operation}: the server has no such database (memory.milvus.database)")
    if code == NO_COLLECTION:
        return StoreError(f"milvus {operation}: the collection is gone; semmem makes a new one when it starts")
    if code == CONNECT_FAILED or "UNAVAILABLE" in text:
        return StoreUnavailable(f"milvus {operation}: the server cannot be reached")
    if "DEADLINE_EXCEEDED" in text or "Retry timeout" in text:
        return StoreTimeout(f"milvus {operation} did not end within its deadline")
    if code == NOT_LOADED:
        return StoreUnavailable(f"milvus {operation}: the collection is not loaded yet")
    if any(f"[Errno {number}]" in text for number in NO_ROOM):
        return StoreFull(f"milvus {operation}: the store cannot write to its disk (full, over quota, or read-only)")
    number = code if isinstance(code, int) else getattr(code, "name", "unknown")
    return StoreError(f"milvus {operation} failed with code {number}")
