"""News by Redis or Valkey: publish and subscribe on one channel. Nothing is kept there."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from semmem.ports.errors import NewsError


class RedisNews:
    """A ListeningBus. ``url``: redis://host:port, rediss:// with TLS (``ca_file``: authorities to believe, empty for
    the system's) or unix://path. ``timeout_s`` bounds connecting and each answer; a listener that heard nothing for
    ``quiet_s`` asks whether the server is still there. Nothing is tried twice here."""

    def __init__(
        self,
        url: str,
        *,
        password: str = "",
        ca_file: str = "",
        channel: str = "semmem",
        timeout_s: float = 1.0,
        quiet_s: float = 2.0,
    ) -> None:
        given: dict[str, Any] = {"password": password} if password else {}
        if ca_file:
            given["ssl_ca_certs"] = ca_file
        self._client: Redis = Redis.from_url(
            url,
            socket_connect_timeout=timeout_s,
            socket_timeout=timeout_s,
            retry=Retry(NoBackoff(), 0),  # who is cut off has to know that words were missed
            client_name="semmem",
            max_connections=4,
            **given,
        )
        self._channel = channel
        self._timeout_s = timeout_s
        self._quiet_s = quiet_s

    async def say(self, word: str) -> None:
        with _our_errors():
            async with asyncio.timeout(self._timeout_s):
                await self._client.publish(self._channel, word)

    async def listen(self, heard: Callable[[str], None], connected: Callable[[], None]) -> None:
        with _our_errors():
            async with self._client.pubsub() as subscription:
                async with asyncio.timeout(2 * self._timeout_s):
                    await subscription.subscribe(self._channel)
                await self._hear(subscription, heard, connected)

    async def _hear(self, subscription: PubSub, heard: Callable[[str], None], connected: Callable[[], None]) -> None:
        asked = False
        while True:
            message = await subscription.get_message(timeout=self._timeout_s if asked else self._quiet_s)
            if message is None and asked:
                raise NewsError("Redis is silent")
            asked = message is None
            if message is None:
                await subscription.ping()
            elif message["type"] == "subscribe":
                connected()
            elif message["type"] == "message":
                heard(message["data"].decode("ascii", "replace"))

    async def close(self) -> None:
        with _our_errors():
            await self._client.aclose()


@contextmanager
def _our_errors() -> Iterator[None]:
    """Redis' own messages are left out: they may hold the address, and with it a password."""
    try:
        yield
    except (RedisError, OSError) as error:  # asyncio's TimeoutError is an OSError
        raise NewsError(f"Redis: {type(error).__name__}") from None
