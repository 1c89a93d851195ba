"""A Qdrant server or cluster, over its REST interface."""

import math
import re
import ssl
import warnings
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import httpx
from qdrant_client import AsyncQdrantClient
from qdrant_client.http.exceptions import ResponseHandlingException

from semmem.backends.qdrant.errors import call_timeout_s, opening, our_errors
from semmem.ports.errors import StoreError, StoreUnavailable

VERSION_MIN = (1, 16)
"""The first one that writes under a condition. An older one would not say that it does not, and lose versions."""
CONNECTIONS_MAX = 16


@dataclass(frozen=True, slots=True)
class Tls:
    """Paths of PEM files; empty: the system's authorities, no certificate of our own."""

    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""


@dataclass(eq=False, repr=False)
class QdrantServer:
    """At ``url`` (http(s)://host:port), with any number of collections. Proxies of the environment are not used.
    ``open_timeout_s`` bounds opening as a whole. A call that lost its connection is made once more: all are such that
    doing them twice changes nothing."""

    is_server: ClassVar[bool] = True
    """Indexes, quantisation and read consistency mean something to it."""
    url: str
    _: KW_ONLY
    api_key: str = ""
    tls: Tls = Tls()
    open_timeout_s: float = 30.0
    _client: AsyncQdrantClient | None = field(init=False, default=None)
    _opened: bool = field(init=False, default=False)

    async def open(self) -> None:
        """Idempotent. Raises StoreError, and may then be called again."""
        if self._opened:
            return
        with our_errors("open (a TLS file?)"):
            self._client = self._connected()
        async with opening(self.open_timeout_s, self.close):
            _check_version((await self._ask("info")).version)
        self._opened = True

    async def close(self) -> None:
        self._opened = False
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def drop(self, name: str) -> None:
        """A collection with all that it holds. Inside ``within``; raises as ``ask``."""
        await self.ask("delete_collection", collection_name=name, timeout=math.ceil(call_timeout_s.get()))

    async def purge(self, name: str) -> bool:
        """False: it takes removed points out of its files when it optimises, as it likes."""
        return False

    async def check_room(self) -> None:
        """It has its own disk."""

    async def ask(self, operation: str, **arguments: Any) -> Any:
        """One call of the client. Raises StoreUnavailable when it is not open, and whatever the client raises."""
        if not self._opened:
            raise StoreUnavailable("the Qdrant store is closed")
        return await self._ask(operation, **arguments)

    async def _ask(self, operation: str, **arguments: Any) -> Any:
        try:
            return await self._ask_once(operation, **arguments)
        except ResponseHandlingException as error:
            if not isinstance(error.source, httpx.NetworkError | httpx.RemoteProtocolError):
                raise
        return await self._ask_once(operation, **arguments)

    async def _ask_once(self, operation: str, **arguments: Any) -> Any:
        if self._client is None:
            raise StoreUnavailable("the Qdrant store is closed")
        return await getattr(self._client, operation)(**arguments)

    def _connected(self) -> AsyncQdrantClient:
        options: dict[str, Any] = {"verify": _context(self.tls)} if self.url.startswith("https://") else {}
        with warnings.catch_warnings():  # a key over plain text: whoever configured it says so
            warnings.simplefilter("ignore")
            return AsyncQdrantClient(
                url=self.url,
                port=None,
                api_key=self.api_key or None,
                timeout=math.ceil(self.open_timeout_s),
                check_compatibility=False,  # it would ask in a thread of its own; open() asks
                limits=httpx.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX),
                trust_env=False,
                follow_redirects=False,
                **options,
            )


def _context(tls: Tls) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=tls.ca_file or None)
    if tls.cert_file:
        context.load_cert_chain(tls.cert_file, tls.key_file or None)
    return context


def _check_version(version: str) -> None:
    found = re.match(r"v?(\d+)\.(\d+)", version)
    if found is None or (int(found[1]), int(found[2])) < VERSION_MIN:
        wanted = ".".join(map(str, VERSION_MIN))
        raise StoreError(f"the Qdrant server has version {version[:20]}; semmem needs {wanted} or later")
