"""A client that writes its own bytes, notes when each piece of the answer came, and may leave at any time."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.faults.forms import without_injection
from tests.faults.upstream import BODILESS, Exchange

ENVOYS_OWN = {"date", "x-nonce", "x-envoy-upstream-service-time", "x-semmem-outcome"}
"""Response headers that differ between any two answers, and semmem's own."""
OF_ONE_REQUEST = ("x-trial", "x-request-id", "authorization", "content-length", "transfer-encoding", "x-semmem-")
"""How request headers begin that may differ: names of the request and its user, its framing, and what semmem reads."""


@dataclass(slots=True)
class Seen:
    """An answer as its client saw it. ``arrivals``: (monotonic time, body bytes so far) of each piece.

    ``sent`` is what the model should get, but for what semmem puts in. ``informed``: answers of the 100s before it.
    ``error``: how the answer broke off, empty when it ended properly. ``exchange``: the model's side of it, None when
    the model was never asked.
    """

    sent: bytes
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    informed: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    body: bytes = b""
    trailers: list[tuple[str, str]] = field(default_factory=list)
    arrivals: list[tuple[float, int]] = field(default_factory=list)
    error: str = ""
    seconds: float = 0.0
    exchange: Exchange | None = None

    @property
    def outcome(self) -> str | None:
        return self.headers.get("x-semmem-outcome")

    @property
    def normal(self) -> bytes:
        """The body with the nonce of its own exchange blanked, also where the body breaks off amid one."""
        if self.exchange is None:
            return self.body
        planned = self.exchange.planned
        whole = planned if planned.startswith(self.body) else self.body
        nonce = self.exchange.nonce.encode()
        return whole.replace(nonce, b"*" * len(nonce))[: len(self.body)]

    @property
    def shown_headers(self) -> dict[str, str]:
        return {name: value for name, value in self.headers.items() if name not in ENVOYS_OWN}

    @property
    def gap_s(self) -> float:
        """The longest wait between two pieces of the answer."""
        times = [moment for moment, _ in self.arrivals]
        return max((after - before for before, after in itertools.pairwise(times)), default=0.0)

    @property
    def transit_s(self) -> float:
        """The longest that a piece was on its way from the model to the client."""
        sent = self.exchange.sent if self.exchange is not None else []
        waits = [next((m for m, n in self.arrivals if n >= size), 0.0) - moment for moment, size in sent]
        return max(waits, default=0.0)


class Connection:
    """One connection, one request."""

    def __init__(self, port: int, *, timeout_s: float = 60.0) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""

    def send(
        self,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        raw: bytes = b"",
        chunked: bool = False,
        part: int | None = None,
    ) -> None:
        """POST; ``raw``: further header lines, each with its end; ``part``: only so many bytes of the body."""
        framing = {"transfer-encoding": "chunked"} if chunked else {"content-length": str(len(body))}
        self._head(f"POST {path} HTTP/1.1", {**framing, **headers}, raw)
        if not chunked:
            self._socket.sendall(body[:part])
            return
        for start in range(0, len(body), 1 << 16):
            piece = body[start : start + (1 << 16)]
            self._socket.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
        self._socket.sendall(b"0\r\n\r\n")

    def upgrade(self, path: str, headers: Mapping[str, str], frames: Iterable[bytes], seen: Seen) -> None:
        """GET with an upgrade to a websocket; then each frame, when the one before it has come back."""
        upgrading = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
        self._head(f"GET {path} HTTP/1.1", {**upgrading, "sec-websocket-key": "c2VtbWVtIHNlbW1lbSE=", **headers})
        self.read(seen)
        if seen.status != 101:
            return
        for frame in frames:
            self._socket.sendall(frame)
            seen.body += self._exactly(len(frame))
            seen.arrivals.append((time.monotonic(), len(seen.body)))

    def _head(self, first: str, headers: Mapping[str, str], raw: bytes = b"") -> None:
        lines = [f"{name}: {value}\r\n" for name, value in {"host": "model.test", **headers}.items()]
        self._socket.sendall(b"%b\r\n%b%b\r\n" % (first.encode(), "".join(lines).encode(), raw))

    def read(self, seen: Seen, *, leave_after: int | None = None) -> None:
        """The whole answer; or, with ``leave_after``, that many bytes of its body."""
        try:
            self._read(seen, leave_after)
        except (ConnectionError, EOFError, TimeoutError) as error:
            seen.error = "timeout" if isinstance(error, TimeoutError) else "cut"

    def close(self) -> None:
        self._socket.close()

    def _read(self, seen: Seen, leave_after: int | None) -> None:
        self._read_head(seen)
        while 100 <= seen.status < 200 and seen.status != 101:
            seen.informed.append((seen.status, seen.headers))
            self._read_head(seen)
        if seen.status in BODILESS:
            return
        pieces, size = list[bytes](), 0
        try:
            for piece in self._body(seen):
                pieces.append(piece)
                size += len(piece)
                seen.arrivals.append((time.monotonic(), size))
                if leave_after is not None and size >= leave_after:
                    return
        finally:
            seen.body = b"".join(pieces)[:leave_after]

    def _read_head(self, seen: Seen) -> None:
        while b"\r\n\r\n" not in self._buffer:
            self._more()
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        seen.status = int(first.split(" ")[1])
        seen.headers = dict(map(_header, lines))

    def _body(self, seen: Seen) -> Iterator[bytes]:
        if seen.headers.get("transfer-encoding") == "chunked":
            while size := int(self._line(), 16):
                yield self._exactly(size)
                self._line()
            while line := self._line():
                seen.trailers.append(_header(line.decode("latin-1")))
            return
        left = int(seen.headers.get("content-length", "0"))
        while left:
            if not self._buffer:
                self._more()
            piece, self._buffer = self._buffer[:left], self._buffer[left:]
            left -= len(piece)
            yield piece

    def _line(self) -> bytes:
        while b"\r\n" not in self._buffer:
            self._more()
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        return line

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._more()
        piece, self._buffer = self._buffer[:size], self._buffer[size:]
        return piece

    def _more(self) -> None:
        piece = self._socket.recv(1 << 16)
        if not piece:
            raise EOFError
        self._buffer += piece


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.lower(), value.strip()


# --- comparing -------------------------------------------------------------------------------------------------------

LATER_S = 2.0
"""What a fault may cost before the first byte: Envoy's message_timeout of 0.5 s for headers and for body, and a busy
machine's share."""
TOKEN_S = 0.25
"""How much later than without semmem a token may come: far below any timeout, above what a busy machine does."""


def differences(plain: Seen, faulted: Seen, *, timed: bool = True) -> list[str]:
    """How the client's answer differs from the one without semmem, also in time if that is ``timed``; nothing is what
    is wanted."""
    found = []
    if faulted.status != plain.status:
        found.append(f"status {faulted.status}, not {plain.status}")
    if faulted.error != plain.error:
        found.append(f"ended {faulted.error or 'properly'}, not {plain.error or 'properly'}")
    if faulted.shown_headers != plain.shown_headers:
        found.append(f"headers {faulted.shown_headers}, not {plain.shown_headers}")
    if (faulted.informed, faulted.trailers) != (plain.informed, plain.trailers):
        found.append(
            f"{faulted.informed} before and {faulted.trailers} behind it, not {plain.informed}, {plain.trailers}"
        )
    if faulted.normal != plain.normal:
        found.append(f"body of {len(faulted.normal)} bytes, not the same {len(plain.normal)}")
    own = _own_answer(plain) + _own_answer(faulted)
    delays = late(plain, faulted) if timed else []
    return found + own + delays + _prompt(plain, faulted) + _prompts_head(plain, faulted)


def _own_answer(seen: Seen) -> list[str]:
    """The answer is the one that the model gave to this very request."""
    if seen.exchange is None:
        return [] if seen.headers.get("x-nonce") is None else ["an answer the model did not give to this request"]
    found = []
    if seen.status and seen.headers.get("x-nonce", seen.exchange.nonce) != seen.exchange.nonce:
        found.append("somebody else's nonce")
    if not seen.error and seen.headers.get("x-nonce") and seen.body != seen.exchange.answer[: len(seen.body)]:
        found.append("not the bytes the model sent")
    return found


def late(plain: Seen, faulted: Seen) -> list[str]:
    """What came later than without semmem."""
    found = []
    if faulted.seconds > plain.seconds + LATER_S:
        found.append(f"took {faulted.seconds:.2f} s, not {plain.seconds:.2f} s")
    if faulted.transit_s > plain.transit_s + TOKEN_S:
        found.append(f"a token took {faulted.transit_s:.3f} s to arrive, not {plain.transit_s:.3f} s")
    if faulted.gap_s > plain.gap_s + TOKEN_S:
        found.append(f"a gap of {faulted.gap_s:.3f} s between tokens, not {plain.gap_s:.3f} s")
    return found


def _prompt(plain: Seen, faulted: Seen) -> list[str]:
    """The model got what the client sent, byte for byte, but for one injected piece."""
    found = []
    for seen, name in ((plain, "plain"), (faulted, "semmem")):
        if seen.exchange is None or not seen.exchange.whole or seen.exchange.body == seen.sent:
            continue
        if name == "plain" or without_injection(seen.exchange.body) != seen.sent:
            found.append(f"{name}: the model got another prompt than the client sent")
    return found


def _prompts_head(plain: Seen, faulted: Seen) -> list[str]:
    """The model got the client's headers, and none of semmem's making."""
    if plain.exchange is None or faulted.exchange is None:
        return []
    wanted, got = _told(plain.exchange), _told(faulted.exchange)
    found = [f"the model got other headers: {sorted(wanted ^ got)}"] if wanted != got else []
    length = dict(faulted.exchange.headers).get("content-length")
    if faulted.exchange.whole and length not in (None, str(len(faulted.exchange.body))):
        found.append(f"the model got content-length {length} for {len(faulted.exchange.body)} bytes")
    return found


def _told(exchange: Exchange) -> set[tuple[str, str]]:
    return {header for header in exchange.headers if not header[0].startswith(OF_ONE_REQUEST)}
