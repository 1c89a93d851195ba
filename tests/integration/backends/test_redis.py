"""News by a real Valkey: what is heard, and how each way of losing it is noticed."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trustme

from semmem.backends.redis import RedisNews
from semmem.background import Tasks
from semmem.ports.errors import NewsError
from tests.support.servers import ValkeyServer, valkey_server

QUICK: dict[str, Any] = {"timeout_s": 3.0, "quiet_s": 0.2}
WORD = "changed a1b2 c3d4 everything"
PASSWORD = "the-safe-combination-is-4711"


def news(url: str, **options: Any) -> RedisNews:
    """With more time than a busy machine takes for an answer."""
    return RedisNews(url, **{"timeout_s": 20.0, **options})


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    with valkey_server(tmp_path_factory.mktemp("valkey")) as server:
        yield server


class Listener:
    """Who listens on a bus, and what came of it."""

    def __init__(self, bus: RedisNews) -> None:
        self._bus = bus
        self._tasks = Tasks()
        self.heard = asyncio.Queue[str]()
        self.connections = 0
        self.connected = asyncio.Event()
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> Listener:
        self._tasks.spawn("listen", self._listen())
        async with asyncio.timeout(60.0):
            await self.connected.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.cancel()
        await self._bus.close()

    async def _listen(self) -> None:
        try:
            await self._bus.listen(self.heard.put_nowait, self._connect)
        except NewsError as error:
            self.lost.set_result(str(error))

    def _connect(self) -> None:
        self.connections += 1
        self.connected.set()

    async def next_word(self) -> str:
        return await asyncio.wait_for(self.heard.get(), 60.0)


async def test_all_who_listen_hear_every_word_in_turn_and_on_their_channel_alone(valkey: ValkeyServer) -> None:
    speaking = news(valkey.url)
    async with (
        Listener(news(valkey.url)) as one,
        Listener(news(valkey.url)) as other,
        Listener(news(valkey.url, channel="another")) as stranger,
    ):
        words = [f"{WORD} {number}" for number in range(100)]
        for word in words:
            await speaking.say(word)
        for listener in (one, other):
            assert [await listener.next_word() for _ in words] == words
        assert stranger.heard.empty()
    await speaking.close()


async def test_a_quiet_channel_is_no_lost_one(valkey: ValkeyServer) -> None:
    async with Listener(news(valkey.url, **QUICK)) as listener:
        await asyncio.sleep(1.5)  # it has asked several times
        assert not listener.lost.done()
        bus = news(valkey.url)
        await bus.say(WORD)
        assert (await listener.next_word(), listener.connections) == (WORD, 1)
        await bus.close()


async def test_what_is_no_text_of_ours_does_not_end_the_listening(valkey: ValkeyServer) -> None:
    from redis.asyncio import Redis

    async with Listener(news(valkey.url)) as listener, Redis.from_url(valkey.url) as anybody:
        for said in (b"\xff\xfe\x00", b"", WORD):
            await anybody.publish("semmem", said)
        assert [await listener.next_word() for _ in range(3)][2] == WORD


@pytest.mark.parametrize("end", ["kill", "hang"])
async def test_a_server_that_dies_or_falls_silent_is_noticed_and_named_without_its_address(
    tmp_path: Path, end: str
) -> None:
    with valkey_server(tmp_path) as server:
        bus = news(server.url, **QUICK)
        async with Listener(news(server.url, **QUICK)) as listener:
            await bus.say(WORD)
            assert await listener.next_word() == WORD
            getattr(server, end)()
            lost = await asyncio.wait_for(listener.lost, 60.0)
            with pytest.raises(NewsError) as error:
                await bus.say(WORD)
        for told in (lost, str(error.value)):
            assert told.startswith("Redis")
            assert str(server.port) not in told
        if end == "kill":
            server.start()
            await bus.say(WORD)  # the next word goes through a new connection
        await bus.close()


async def test_a_password_is_given_and_never_told(tmp_path: Path) -> None:
    with valkey_server(tmp_path, PASSWORD) as server:
        bus = news(server.url, password=PASSWORD)
        async with Listener(news(server.url, password=PASSWORD)) as listener:
            await bus.say(WORD)
            assert await listener.next_word() == WORD
        for wrong in ("", "not-" + PASSWORD):
            refused = news(server.url, password=wrong)
            with pytest.raises(NewsError) as error:
                await refused.say(WORD)
            assert PASSWORD not in str(error.value)
            await refused.close()
        await bus.close()


@asynccontextmanager
async def with_tls(port: int, certificate: trustme.LeafCert) -> AsyncIterator[int]:
    """The port of what ends TLS in front of a server that has none."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    tasks = Tasks()

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(65536):
                writer.write(piece)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        tasks.spawn("pour", pour(inner_reader, writer))
        await pour(reader, inner_writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    yield server.sockets[0].getsockname()[1]
    server.close()
    await tasks.cancel()


async def test_over_tls_only_a_server_of_the_named_authority_is_believed(valkey: ValkeyServer, tmp_path: Path) -> None:
    authority, strangers = trustme.CA(), trustme.CA()
    for name, each in (("ca.pem", authority), ("strangers.pem", strangers)):
        each.cert_pem.write_to_path(str(tmp_path / name))
    async with with_tls(valkey.port, authority.issue_cert("127.0.0.1")) as port:
        url = f"rediss://127.0.0.1:{port}"
        bus = news(url, ca_file=str(tmp_path / "ca.pem"))
        async with Listener(news(url, ca_file=str(tmp_path / "ca.pem"))) as listener:
            await bus.say(WORD)
            assert await listener.next_word() == WORD
        await bus.close()
        for ca_file in ("", str(tmp_path / "strangers.pem")):
            doubting = news(url, ca_file=ca_file)
            with pytest.raises(NewsError):
                await doubting.say(WORD)
            await doubting.close()
