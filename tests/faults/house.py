"""What a fault is tried on: a client, the two-listener Envoy, a breakable semmem, and the model with its nonces."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.faults.client import Connection, Seen
from tests.faults.counts import OUTCOMES, TURNS, Ledger, NotProven, exactly, proven
from tests.faults.forms import JSON, Form
from tests.faults.front import CLOSE_S, Front, front
from tests.faults.loops import LoopThread
from tests.faults.sidecar import Sidecar
from tests.faults.upstream import Exchange, Script, Upstream
from tests.support.harness import eventually

FACT = "My budget for the Hawaii trip is $10,000"


@dataclass(frozen=True, slots=True)
class Trial:
    """The same request without semmem and with the fault, and what shows that the fault fired."""

    plain: Seen
    faulted: Seen
    proof: str
    extra: tuple[str, ...] = ()
    """Further differences that were found on the way."""


@dataclass
class House:
    """``user`` has one memory, which the usual question finds."""

    loop: LoopThread
    upstream: Upstream
    front: Front
    sidecar: Sidecar
    folder: Path
    user: str = field(default_factory=lambda: f"ute-{secrets.token_hex(4)}")
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.sidecar)

    # --- asking ------------------------------------------------------------------------------------------------------

    def ask(
        self,
        form: Form,
        *,
        plain: bool = False,
        body: bytes | None = None,
        arrives: bytes | None = None,
        script: Script | None = None,
        headers: Mapping[str, str] | None = None,
        raw: bytes = b"",
        user: str | None = None,
        chunked: bool = False,
        leave_after: int | None = None,
        meanwhile: Callable[[str], None] | None = None,
    ) -> Seen:
        """One request to its end. ``meanwhile`` runs beside it and is given the trial's name.

        ``arrives``: what the model should get, when that is not the ``body``; ``raw``: further header lines.
        """
        trial = secrets.token_hex(8)
        sent = form.question() if body is None else body
        seen = Seen(sent if arrives is None else arrives)
        semmems = self.sidecar.starts
        beside = threading.Thread(target=meanwhile, args=(trial,)) if meanwhile else None
        connection = Connection(self.front.plain_port if plain else self.front.port)
        try:
            if beside:
                beside.start()
            started = time.monotonic()
            told = self._headers(form, trial, script, headers, user)
            connection.send(form.path, sent, told, raw=raw, chunked=chunked)
            connection.read(seen, leave_after=leave_after)
            seen.seconds = time.monotonic() - started
        finally:
            connection.close()
            if beside:
                beside.join(60)
        seen.exchange = self.upstream.of(trial)
        if not plain:
            self.ledger.note(semmems, seen.outcome)
        return seen

    def websocket(self, path: str, frames: Sequence[bytes], *, plain: bool = False) -> Seen:
        """Frames to the model and back."""
        trial, seen = secrets.token_hex(8), Seen(b"")
        connection = Connection(self.front.plain_port if plain else self.front.port)
        try:
            connection.upgrade(path, self._headers(JSON, trial, None, None, None), frames, seen)
        finally:
            connection.close()
        seen.exchange = self.upstream.of(trial)
        return seen

    def _headers(
        self, form: Form, trial: str, script: Script | None, headers: Mapping[str, str] | None, user: str | None
    ) -> dict[str, str]:
        said = replace(script or Script(), sse=form.sse).write()
        name = user or self.user
        usual = {"content-type": "application/json", "authorization": f"Bearer demo-{name}"}
        return {**usual, "x-trial": trial, "x-stand-in": said, **(headers or {})}

    def leave(self, form: Form, *, plain: bool, after_s: float = 0.0, part: int | None = None, wait: bool) -> str:
        """Ask and go before any answer: when the model has the request (``wait``), or after a while. The trial."""
        trial = secrets.token_hex(8)
        connection = Connection(self.front.plain_port if plain else self.front.port)
        told = self._headers(form, trial, Script(think_ms=3000), None, None)
        connection.send(form.path, form.question(), told, part=part)
        if wait:
            self.exchange(trial)
        time.sleep(after_s)
        connection.close()
        if not plain:
            self.ledger.note(self.sidecar.starts, None)
        return trial

    def exchange(self, trial: str) -> Exchange:
        """The model's side of a trial, as soon as the model has the whole request."""
        found: Exchange = eventually(
            lambda: e if (e := self.upstream.of(trial)) is not None and e.whole else None,
            within_s=60,
            what="the model has the request",
        )
        return found

    def half_answered(self, trial: str) -> Exchange:
        """The same, as soon as some of the answer is under way."""
        exchange = self.exchange(trial)
        eventually(lambda: len(exchange.sent) > 3, within_s=60, what="the answer has begun")
        return exchange

    # --- proving -----------------------------------------------------------------------------------------------------

    def rises(self, name: str, by: float = 1, *, more: bool = False, **labels: str) -> Callable[[], str]:
        """Call the result to be told, in words, that a metric of semmem rose by so much since now (or by ``more``).

        It raises NotProven.
        """
        before = self.sidecar.semmem.metric(name, **labels)
        shown = f"{name}{{{','.join(labels.values())}}}"

        def risen() -> float:
            return self.sidecar.semmem.metric(name, **labels) - before

        def prove() -> str:
            proven(lambda: risen() >= by, f"{shown} +{by:g}")
            if (found := risen()) > by and not more:
                raise NotProven(f"{shown} +{found:g}, not +{by:g}")
            return f"{shown} +{found:g}"

        return prove

    def outcome(self, *words: str, times: int = 1) -> Callable[[], str]:
        """So many requests with one of these outcomes were counted since now, and no others."""
        return exactly(self.sidecar, OUTCOMES, words, times)

    def no_outcome(self) -> Callable[[], str]:
        """No request was counted since now."""
        return exactly(self.sidecar, OUTCOMES, (), 0)

    def turns(self, *words: str, times: int = 1) -> Callable[[], str]:
        """So many answers that ended in one of these ways were counted since now, and no others."""
        return exactly(self.sidecar, TURNS, words, times)

    def envoy_rises(self, *names: str) -> Callable[[], str]:
        """One of these counters of Envoy's mutate filter, or all, rose by one since now."""
        before = {name: self.front.mutate(name) for name in names}

        def prove() -> str:
            def risen() -> list[str]:
                return [name for name in names if self.front.mutate(name) > before[name]]

            proven(risen, f"Envoy's {' or '.join(names)}")
            if any(self.front.mutate(name) > before[name] + 1 for name in names):
                raise NotProven(f"Envoy's {' or '.join(names)} rose by more than one")
            return f"Envoy: {', '.join(f'{name} +{self.front.mutate(name) - before[name]}' for name in risen())}"

        return prove

    # --- well again --------------------------------------------------------------------------------------------------

    def remember(self) -> None:
        """Give the user the memory that the usual question finds."""
        self.front.wait_healthy()
        created = {"user_id": self.user, "content": FACT}
        proven(lambda: self.sidecar.semmem.api("POST", "/v1/memory", json=created), "the memory is stored", 40)
        self.recovered()

    def started_anew(self) -> None:
        """End semmem and start it again, until it has seen a request. A start that is quicker than Envoy's look would
        be met by a request for the one that ended; and now and then Envoy lets the first one by that it could ask
        about."""
        self.sidecar.end()
        self.front.wait_healthy(False)
        self.sidecar.start()
        self.front.wait_healthy()
        eventually(lambda: self.ask(JSON).outcome is not None, within_s=60, what="semmem is asked again")

    def recovered(self) -> None:
        """Wait until the usual question finds its memory again: without anybody's help, in bounded time."""
        self.front.wait_healthy()
        eventually(lambda: self.ask(JSON).outcome == "injected", within_s=40, what="memory is back by itself")


@contextmanager
def house(
    loop: LoopThread,
    model: Upstream,
    folder: Path,
    override: Mapping[str, Any] | None = None,
    extra: Sequence[str] = (),
    *,
    close_s: str = CLOSE_S,
) -> Iterator[House]:
    """A running house with its own semmem and its own Envoy, which keeps an observed stream for ``close_s`` after its
    answer."""
    sidecar = Sidecar(folder, override or {}, extra)
    with ExitStack() as stack:
        stack.callback(sidecar.end)
        sidecar.start()
        envoy = stack.enter_context(
            front(folder / "envoy", semmem_port=sidecar.grpc_port, upstream=model.url, close_s=close_s)
        )
        running = House(loop, model, envoy, sidecar, folder)
        running.front.wait_healthy()
        yield running
