"""The stand-in model, overheard: what reaches it is judged before it answers."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.requests import Request

from demo.model import Received, StandIn, server_for
from tests.canary.ledger import Fact, Ledger
from tests.support.harness import eventually

BLOCK = re.compile(r"<semmem-memory\b.*?</semmem-memory>", re.DOTALL)
"""semmem's block, wherever it stands in a request and whatever its opening carries besides its name."""

Heard = Callable[[Received], None]


def memory_in(body: str) -> str:
    """What semmem has put into a request's body; all else are the client's own words."""
    return "\n".join(BLOCK.findall(body.replace("\\u003c", "<").replace("\\u003e", ">")))


def whole(received: Received) -> str:
    """A request as text, headers included."""
    headers = "\n".join(f"{name}: {value}" for name, value in received.headers)
    return f"{received.path}\n{headers}\n\n{received.body.decode('utf-8', 'replace')}"


@dataclass(slots=True)
class Asked:
    """A request to the model, and the fact that it tells. ``received``: what the model got of it, None when it was not
    asked; ``shown``: numbers of the user's facts that semmem added; ``outcome``: semmem's word in the answer;
    ``failure``: what is wrong with the answer."""

    user: int
    began: float
    fact: Fact | None
    received: Received | None = None
    shown: frozenset[int] = frozenset()
    outcome: str | None = None
    failure: str = ""


class Prompts:
    """Judges what the model gets, by the requests that are ``under_way`` (by their x-request-id)."""

    def __init__(self, ledger: Ledger) -> None:
        self.under_way: dict[str, Asked] = {}
        self._ledger = ledger

    def heard(self, received: Received) -> None:
        """In the model's thread."""
        asked = self.under_way.get(received.header("x-request-id") or "")
        if asked is None:  # its client has left
            return
        if asked.fact is not None:
            asked.fact.settled = min(asked.fact.settled, time.monotonic())
        own = memory_in(received.body.decode("utf-8", "replace"))
        where = f"a prompt to {received.path}"
        asked.received = received
        asked.shown = frozenset(self._ledger.saw(asked.user, whole(received), began=asked.began, where=where, own=own))


class Overheard(StandIn):
    """``heard`` is told of each request before it is answered. Only the last few are kept."""

    def __init__(self, heard: Heard, *, token_delay_s: float) -> None:
        super().__init__(requests_max=8, token_delay_s=token_delay_s)
        self._heard = heard

    async def keep(self, request: Request) -> Received:
        received = await super().keep(request)
        self._heard(received)
        return received


@contextmanager
def overheard_model(heard: Heard, *, token_delay_s: float = 0.001) -> Iterator[str]:
    """The URL of a running model, which lives in a thread of this process."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    server = server_for(Overheard(heard, token_delay_s=token_delay_s))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        eventually(lambda: server.started, within_s=60, what="the stand-in model listens")
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
