"""The store's server is stopped (SIGSTOP) while users ask: nobody's request waits for it, and memory returns by itself.

A sidecar of its own, with the deadlines that are shipped and a journal of its own, beside the replicas and before the
same store's server.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from demo.processes import Failed
from tests.fleet.milvus import StoreServer
from tests.support.harness import House, Reply, eventually, house, stand_in_model

Json = dict[str, Any]

FACT = "User's budget for the Hawaii trip is $10,000"
BODY = json.dumps({"model": "stand-in", "messages": [{"role": "user", "content": "What's my budget for the trip?"}]})
STRANGERS, KNOWN = 16, 4
"""Users whose memories have to be read from the store, and users whose memories are in the process already."""
CLIENTS = 4
PAUSE_S = 0.05
DEADLINE_S = 0.5
"""deploy/envoy.yaml's message_timeout: nobody waits longer for semmem."""
SHARE_MIN = 0.95
"""Of the requests within the deadline, for busy machines; p99 is printed."""
BACK_S = 60.0


@dataclass(slots=True)
class Stalled:
    """``altered``: requests without memory that did not reach the model as they were sent, and answers that did not
    reach the client as the model gave them. ``back_s``: None when memory did not return."""

    stopped_s: float
    base_s: float = 0.0
    seconds: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    altered: list[str] = field(default_factory=list)
    forgotten: int = 0
    back_s: float | None = None
    failed: str = ""

    @property
    def limit_s(self) -> float:
        """The deadline, and what the request takes without semmem waiting for anything."""
        return DEADLINE_S + self.base_s

    @property
    def in_time(self) -> float:
        return sum(each <= self.limit_s for each in self.seconds) / max(1, len(self.seconds))

    @property
    def wrong(self) -> list[str]:
        late = f"only {self.in_time:.1%} of the requests took less than {self.limit_s * 1000:.0f} ms"
        return [
            *([self.failed] if self.failed else []),
            *self.altered,
            *([] if self.seconds else ["nobody asked anything"]),
            *([late] if self.in_time < SHARE_MIN else []),
            *([f"{self.forgotten} users in the process were without their memories"] if self.forgotten else []),
            *([f"no memory {BACK_S:.0f} s after the server was there again"] if self.back_s is None else []),
        ]

    def __str__(self) -> str:
        back = "never" if self.back_s is None else f"{self.back_s:.1f} s after the server was there again"
        return (
            f"stopped for {self.stopped_s:.0f} s, {len(self.seconds)} requests ({_counted(self.outcomes)}),"
            f" {len(self.altered)} altered; p50 {_at(self.seconds, 0.5):.0f} ms, p99 {_at(self.seconds, 0.99):.0f} ms,"
            f" {self.in_time:.1%} within {self.limit_s * 1000:.0f} ms; memory is back {back}"
        )


def stall(folder: Path, store: StoreServer, *, program: str, stop_s: float) -> Stalled:
    """Whatever fails is among what is wrong. Blocking."""
    found = Stalled(stop_s)
    try:
        _stall(found, folder, store, program)
    except (AssertionError, Failed, OSError, LookupError, httpx.HTTPError) as error:
        found.failed = f"{type(error).__name__}: {error}"
    return found


def _stall(found: Stalled, folder: Path, store: StoreServer, program: str) -> None:
    override: Json = {"memory": {"backend": "milvus", "milvus": {"address": store.address, "collection": "stalled"}}}
    with stand_in_model() as model, house(folder, model, override, as_shipped=True, program=program) as pair:
        strangers = [f"stranger{number}" for number in range(STRANGERS)]
        known = [f"known{number}" for number in range(KNOWN)]
        for user in (*strangers, *known):
            pair.semmem.remember(user, FACT)
        eventually(lambda: all(_is_hot(pair, user) for user in known), within_s=60, what="some are in the process")
        found.base_s = sorted(_ask(pair, known[0]).seconds for _ in range(20))[10]
        pid = store.stop()
        try:
            _load(pair, found, [*strangers, *known], time.monotonic() + found.stopped_s)
        finally:
            store.revive(pid)
        found.back_s = _back(pair, strangers)


def _back(pair: House, users: list[str]) -> float | None:
    """Seconds until everybody has their memories again; None where that takes longer than BACK_S."""
    began = time.monotonic()
    while time.monotonic() < began + BACK_S:
        if all(_remembers(_ask(pair, user)) for user in users):
            return time.monotonic() - began
        time.sleep(PAUSE_S)
    return None


def _load(pair: House, found: Stalled, users: list[str], until: float) -> None:
    lock = threading.Lock()

    def client(mine: list[str]) -> None:
        while time.monotonic() < until:
            for user in mine:
                reply = _ask(pair, user)
                with lock:
                    _judge(found, user, reply)
                time.sleep(PAUSE_S)

    threads = [threading.Thread(target=client, args=(users[one::CLIENTS],)) for one in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _judge(found: Stalled, user: str, reply: Reply) -> None:
    outcome = reply.outcome or "none"
    found.seconds.append(reply.seconds)
    found.outcomes[outcome] += 1
    received = reply.received
    if reply.status != 200 or received is None or reply.body != received.answer:
        found.altered.append(f"{user}: status {reply.status}, {outcome}")
    elif not _remembers(reply) and received.body != BODY.encode():
        found.altered.append(f"{user}: {outcome}, and yet the model was asked something else")
    found.forgotten += user.startswith("known") and outcome.startswith("store")


def _is_hot(pair: House, user: str) -> bool:
    """Whether the user's memories are in the process, so that no store is asked."""
    return _ask(pair, user).outcome == "injected"


def _remembers(reply: Reply) -> bool:
    return reply.received is not None and FACT.encode() in reply.received.body


def _ask(pair: House, user: str) -> Reply:
    return pair.send(BODY.encode(), user=user)


def _at(seconds: Iterable[float], share: float) -> float:
    """In milliseconds."""
    ordered = sorted(seconds) or [0.0]
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _counted(outcomes: Counter[str]) -> str:
    return ", ".join(f"{word} {number}" for word, number in outcomes.most_common())
