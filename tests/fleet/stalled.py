"""The store's server is stopped (SIGSTOP) while users ask: nobody's request waits for it, and memory returns by itself.

A sidecar of its own, with the deadlines that are shipped and a journal of its own, beside the replicas and before the
same store's server.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
SHARE_MIN = 0.99
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
            *self.altered,
            *([] if self.seconds else ["nobody asked anything"]),
            *([late] if self.in_time < SHARE_MIN else []),
            *([f"{self.forgotten} users in the process were without their memories"] if self.forgotten else []),
            *([f"no memory {BACK_S:.0f} s after the server went on"] if self.back_s is None else []),
        ]

    def __str__(self) -> str:
        back = "never" if self.back_s is None else f"after {self.back_s:.1f} s"
        return (
            f"stopped for {self.stopped_s:.0f} s, {len(self.seconds)} requests ({_counted(self.outcomes)}),"
            f" {len(self.altered)} altered; p50 {_at(self.seconds, 0.5):.0f} ms, p99 {_at(self.seconds, 0.99):.0f} ms,"
            f" {self.in_time:.1%} within {self.limit_s * 1000:.0f} ms; memory is back {back}"
        )


def stall(folder: Path, address: str, *, program: str, stop_s: float) -> Stalled:
    """``address``: URI of the store's server, which is on this machine. Blocking."""
    found = Stalled(stop_s)
    override: Json = {"memory": {"backend": "milvus", "milvus": {"address": address, "collection": "stalled"}}}
    with stand_in_model() as model, house(folder, model, override, as_shipped=True, program=program) as pair:
        strangers = [f"stranger{number}" for number in range(STRANGERS)]
        known = [f"known{number}" for number in range(KNOWN)]
        for user in (*strangers, *known):
            pair.semmem.remember(user, FACT)
        eventually(lambda: all(_is_hot(pair, user) for user in known), within_s=60, what="some are in the process")
        found.base_s = sorted(_ask(pair, known[0]).seconds for _ in range(20))[10]
        with stopped(listening_at(int(address.rsplit(":", 1)[1]))):
            _load(pair, found, [*strangers, *known], time.monotonic() + stop_s)
        began = time.monotonic()
        while found.back_s is None and time.monotonic() < began + BACK_S:
            if all(_remembers(_ask(pair, user)) for user in strangers):
                found.back_s = time.monotonic() - began
    return found


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
    found.forgotten += user.startswith("known") and not _remembers(reply)


def _is_hot(pair: House, user: str) -> bool:
    """Whether the user's memories are in the process, so that no store is asked."""
    return _ask(pair, user).outcome == "injected"


def _remembers(reply: Reply) -> bool:
    return reply.received is not None and FACT.encode() in reply.received.body


def _ask(pair: House, user: str) -> Reply:
    return pair.send(BODY.encode(), user=user)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def listening_at(port: int) -> int:
    """The process on this machine that listens at a TCP port."""
    sockets = {f"socket:[{inode}]" for inode in _listening(port)}
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            if any(os.readlink(file) in sockets for file in folder.iterdir()):
                return int(folder.parent.name)
        except OSError:
            continue  # it ended, or is none of ours
    raise LookupError(f"nobody listens at port {port}")


def _listening(port: int) -> Iterator[str]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                yield fields[9]


def _at(seconds: Iterable[float], share: float) -> float:
    """In milliseconds."""
    ordered = sorted(seconds) or [0.0]
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _counted(outcomes: Counter[str]) -> str:
    return ", ".join(f"{word} {number}" for word, number in outcomes.most_common())
