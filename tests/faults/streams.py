"""Thousands of answers at once, a token a second each, through one Envoy and one semmem."""

from __future__ import annotations

import asyncio
import itertools
import resource
import secrets
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.faults import answers
from tests.faults.counts import MEMORY, NotProven, proven
from tests.faults.forms import PATHS, QUESTION, SSE, Form, without_injection
from tests.faults.house import House, Trial
from tests.faults.upstream import Exchange

ASKING_MAX = 8
"""Requests that are not yet answered at one time, so that none is shed: it is the answers that come all at once."""
TOO_BUSY = ("store_timeout", "timeout")
"""What a busy machine makes of a search; clients are told, so that the ledger holds these against them as well."""
LATE_S = 2.0
"""How much later than a token's time the next one may come: above what a busy machine does to thousands."""
FILES_EACH = 4
"""Open files of one stream on both sides of this process, and some to spare."""
FORMS = tuple(Form(api, sse=True) for api in PATHS)


def raise_files_limit(streams: int) -> None:
    """Of this process and the ones it starts. Raises NotProven where the system does not allow it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = FILES_EACH * streams + 500
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise NotProven(f"{needed} open files are needed, {hard} are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))


@dataclass
class Client(asyncio.Protocol):
    """One request. ``arrivals``: when bytes came, as monotonic time."""

    request: bytes
    raw: bytearray = field(default_factory=bytearray)
    arrivals: list[float] = field(default_factory=list)
    begun_at: float = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        loop = asyncio.get_running_loop()
        self.begun, self.ended = loop.create_future(), loop.create_future()
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.raw += data
        self.arrivals.append(time.monotonic())
        if not self.begun.done():
            self.begun.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        for future in (self.begun, self.ended):
            if not future.done():
                future.set_result(None)

    @property
    def head(self) -> dict[str, str]:
        lines = self.raw.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
        return {"status": lines[0][9:12]} | {
            n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)
        }

    @property
    def body(self) -> bytes:
        """Of a chunked answer that came to its proper end; empty otherwise."""
        rest = bytes(self.raw.partition(b"\r\n\r\n")[2])
        pieces: list[bytes] = []
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            if size == b"0":
                return b"".join(pieces) if rest == b"\r\n" else b""
            pieces.append(rest[: int(size, 16)])
            rest = rest[int(size, 16) + 2 :]
        return b""

    @property
    def gap_s(self) -> float:
        """The longest wait between two pieces, once all were under way."""
        times = [moment for moment in self.arrivals if moment > self.begun_at]
        return max((after - before for before, after in itertools.pairwise(times)), default=0.0)


@dataclass
class Crowd:
    """``streams`` answers of ``tokens`` words, all of them open at once, a word every ``token_s`` seconds."""

    streams: int = 2000
    tokens: int = 20
    token_s: float = 1.0
    clients: list[Client] = field(default_factory=list)
    answering: dict[str, Exchange] = field(default_factory=dict)
    open_at_once: int = 0
    _everybody: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, exchange: Exchange, writer: asyncio.StreamWriter) -> None:
        """The model's side: the first piece at once, the others when everybody has had theirs."""
        words = [word(number, exchange.nonce) for number in range(self.tokens)]
        first, *rest = answers.pieces(exchange.path, exchange.nonce, words, sse=True)
        exchange.planned = b"".join([first, *rest])
        late_s = self.token_s * len(self.answering) / self.streams
        self.answering[exchange.nonce] = exchange
        kind = "content-type: text/event-stream\r\ntransfer-encoding: chunked"
        writer.write(f"HTTP/1.1 200 OK\r\n{kind}\r\nx-nonce: {exchange.nonce}\r\n\r\n".encode() + chunk(first))
        await self._everybody.wait()
        await asyncio.sleep(late_s)
        for piece in rest:
            writer.write(chunk(piece))
            await asyncio.sleep(self.token_s)
        writer.write(b"0\r\n\r\n")

    def text(self, number: int) -> str:
        return f"{QUESTION} I am client {number}."

    def body(self, number: int) -> bytes:
        return FORMS[number % len(FORMS)].question(self.text(number))

    async def come(self, port: int, user: str, session: str) -> None:
        """Everybody asks; when everybody's answer has begun, all of them go on, spread over a token's time."""
        free = asyncio.Semaphore(ASKING_MAX)
        self.clients = [Client(self._request(number, user, session)) for number in range(self.streams)]
        async with asyncio.TaskGroup() as group:
            for client in self.clients:
                group.create_task(_ask(client, port, free))
        self.open_at_once = sum(not client.ended.done() for client in self.clients)
        for client in self.clients:
            client.begun_at = time.monotonic()
        self._everybody.set()
        await asyncio.gather(*(client.ended for client in self.clients))

    def _request(self, number: int, user: str, session: str) -> bytes:
        form, body = FORMS[number % len(FORMS)], self.body(number)
        return (
            f"POST {form.path} HTTP/1.1\r\nhost: model.test\r\nconnection: close\r\nx-crowd: 1\r\n"
            f"authorization: Bearer demo-{user}\r\nx-session-id: {session}-{number}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        ).encode() + body

    def wrong(self) -> list[str]:
        """Where a client did not get what the model wrote for it, or the model not what the client asked."""
        found: Counter[str] = Counter()
        for number, client in enumerate(self.clients):
            head = client.head
            exchange = self.answering.get(head.get("x-nonce", ""))
            if exchange is None:
                found[f"status {head['status']}, and not the model's"] += 1
                continue
            found["not the bytes the model sent"] += client.body != exchange.planned
            found["the model got another prompt"] += without_injection(exchange.body) != self.body(number)
        nonces = {client.head.get("x-nonce") for client in self.clients}
        found["somebody else's answer"] += len(self.clients) - len(nonces)
        return [f"{text}: {count} of {self.streams}" for text, count in found.items() if count]


async def _ask(client: Client, port: int, free: asyncio.Semaphore) -> None:
    async with free:
        await asyncio.get_running_loop().create_connection(lambda: client, "127.0.0.1", port)
        await client.begun


def chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def word(number: int, nonce: str) -> str:
    return f"w{number}-{nonce} "


def many_streams(observed_max: int, **sizes: Any) -> Callable[[House, Form], Trial]:
    """More answers at once than semmem observes: each is answered whole; what is not captured is counted as shed."""

    def run(house: House, form: Form) -> Trial:
        crowd, session = Crowd(**sizes), f"crowd-{secrets.token_hex(4)}"
        fired = house.outcome(*MEMORY, *TOO_BUSY, times=crowd.streams)
        captured = house.turns("answered", times=min(crowd.streams, observed_max))
        shed = house.rises("semmem_extproc_streams_shed_total", by=crowd.streams - observed_max, role="observe")
        started = time.monotonic()
        house.upstream.crowd = crowd.answer
        house.loop.run(crowd.come(house.front.port, house.user, session), timeout_s=300)
        seconds = time.monotonic() - started
        for client in crowd.clients:
            house.ledger.note(house.sidecar.starts, client.head.get("x-semmem-outcome"))
        if crowd.open_at_once != crowd.streams:
            raise NotProven(f"{crowd.open_at_once} answers at once, not {crowd.streams}")
        proof = f"{crowd.open_at_once} at once for {seconds:.0f} s; {fired()}; {captured()}; {shed()}"
        kept = _kept(house, crowd, session, observed_max)
        gaps = sorted(client.gap_s for client in crowd.clients)
        late = sum(gap > crowd.token_s + LATE_S for gap in gaps)
        wrong = [*crowd.wrong(), *([f"{late} clients waited {LATE_S} s for a token"] if late else [])]
        said = f"{proof}; {kept}; longest wait for a token p50 {statistics.median(gaps):.2f} s, max {gaps[-1]:.2f} s"
        return Trial(house.ask(SSE, plain=True), house.ask(SSE), said, tuple(wrong))

    return run


def _kept(house: House, crowd: Crowd, session: str, answers_wanted: int) -> str:
    """Everybody's words are in the journal, once, and the answers of those that were observed, whole."""
    rows: list[tuple[str, str | None]] = []

    def all_there() -> bool:
        rows[:] = house.sidecar.semmem.turns(house.user, f"{session}-%")
        return len(rows) >= crowd.streams and sum(a is not None for _, a in rows) >= answers_wanted

    proven(all_there, f"{crowd.streams} turns and {answers_wanted} answers are journalled", 30)
    if Counter(text for text, _ in rows) != Counter(map(crowd.text, range(crowd.streams))):
        raise NotProven("the journal holds other words than were said")
    said = {crowd.text(number): client.head["x-nonce"] for number, client in enumerate(crowd.clients)}
    words = {
        text: "".join(word(number, nonce) for number in range(crowd.tokens)).strip() for text, nonce in said.items()
    }
    whole = [answer.strip() == words[text] for text, answer in rows if answer is not None]
    if whole != [True] * answers_wanted:
        raise NotProven(f"{sum(whole)} of {len(whole)} answers in the journal are whole, not {answers_wanted}")
    return f"the words of all {len(rows)} and {len(whole)} answers journalled"
