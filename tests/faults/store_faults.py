"""The store, the embedder and the journal fail."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from tests.faults.counts import NotProven, proven
from tests.faults.forms import JSON, Form
from tests.faults.house import House, Trial
from tests.faults.proxy import Proxy
from tests.faults.sidecar import stopped, switched
from tests.support.harness import eventually

STORE_WORDS = ("store_down", "store_timeout")


def store_killed(house: House, form: Form) -> Trial:
    plain = house.ask(form, plain=True)
    fired = house.outcome(*STORE_WORDS)
    store = house.sidecar.store_pid()
    os.kill(store, signal.SIGKILL)
    trial = Trial(plain, house.ask(form), fired())
    eventually(lambda: house.sidecar.store_pid() != store, within_s=30, what="semmem starts its store again")
    house.recovered()
    return trial


def store_stopped(house: House, form: Form) -> Trial:
    plain = house.ask(form, plain=True)
    fired = house.outcome("store_timeout")
    with stopped(house.sidecar.store_pid()):
        trial = Trial(plain, house.ask(form), fired())
    house.recovered()
    return trial


def store_of_another_dimension(house: House, form: Form) -> Trial:
    """Where it may not make new ones itself, semmem refuses to start on vectors that it could not compare; clients then
    have their answers without it."""
    plain = house.ask(form, plain=True)
    house.sidecar.end()
    narrower = {"milvus": {"dimension": 128}, "embedding": {"dimension": 128}, "reindex": {"start": "manual"}}
    other = house.sidecar.launch({"memory": narrower})
    try:
        faulted = house.ask(form)
        code = other.process.wait(60)
    finally:
        other.terminate()
        other.wait(10)
    said = "384 numbers each, and the configuration names"
    house.sidecar.start()
    house.recovered()
    if code != 1 or said not in other.printed():
        raise NotProven(f"exit status {code}: {other.printed()[-400:]}")
    return Trial(plain, faulted, f'exit status 1, "{said}"')


# --- a store at an address, behind a proxy ---------------------------------------------------------------------------


@contextmanager
def behaving(house: House, proxy: Proxy, mode: str) -> Iterator[None]:
    house.loop.run(proxy.behave(mode))
    try:
        yield
    finally:
        house.loop.run(proxy.behave("pass"))


def store_behind(proxy: Proxy, mode: str, *words: str) -> Callable[[House, Form], Trial]:
    """A fault of the way to the store."""

    def run(house: House, form: Form) -> Trial:
        plain = house.ask(form, plain=True)
        fired = house.outcome(*words)
        touched = proxy.touched
        with behaving(house, proxy, mode):
            trial = Trial(plain, house.ask(form), fired())
        if mode in ("hang", "slow") and proxy.touched == touched:
            raise NotProven("the proxy had nothing to mistreat")
        house.recovered()
        return trial

    return run


def store_down_at_start(proxy: Proxy) -> Callable[[House, Form], Trial]:
    def run(house: House, form: Form) -> Trial:
        plain = house.ask(form, plain=True)
        with behaving(house, proxy, "refuse"):
            house.started_anew()
            fired = house.outcome("store_down")
            trial = Trial(plain, house.ask(form), fired())
        house.recovered()
        return trial

    return run


# --- embedder --------------------------------------------------------------------------------------------------------


def embedder_raises(house: House, form: Form) -> Trial:
    return _embedder(house, form, "raises", "degraded")


def embedder_slow(house: House, form: Form) -> Trial:
    return _embedder(house, form, "slow", "embedder_busy", "timeout")


def embedder_breaks(house: House, form: Form) -> Trial:
    """An error that nobody expects: the door's last resort."""
    plain = house.ask(form, plain=True)
    fired, counted = house.rises("semmem_extproc_errors_total", role="mutate"), house.no_outcome()
    with switched(house.sidecar, "breaks"):
        trial = Trial(plain, house.ask(form), f"{fired()}, {counted()}")
    house.recovered()
    return trial


def embedder_and_store_down(house: House, form: Form) -> Trial:
    """Without a vector the user's memories are found by their words; in process, where they are by then."""
    plain = house.ask(form, plain=True)
    fired = house.outcome(*STORE_WORDS, "timeout", "degraded")
    with stopped(house.sidecar.store_pid()), switched(house.sidecar, "raises"):
        trial = Trial(plain, house.ask(form), fired())
    house.recovered()
    return trial


def _embedder(house: House, form: Form, word: str, *outcomes: str) -> Trial:
    plain = house.ask(form, plain=True)
    fired = house.outcome(*outcomes)
    with switched(house.sidecar, word):
        trial = Trial(plain, house.ask(form), fired())
    house.recovered()
    return trial


# --- journal ---------------------------------------------------------------------------------------------------------


def journal_locked(house: House, form: Form) -> Trial:
    """Another process holds the write lock; the turn waits in memory and is committed when the lock is gone."""
    plain = house.ask(form, plain=True)
    user = f"{house.user}-{os.urandom(3).hex()}"
    queue = "semmem_journal_queue"
    with closing(sqlite3.connect(house.sidecar.data_dir / "journal.db", isolation_level=None)) as other:
        eventually(lambda: other.execute("BEGIN EXCLUSIVE") is not None, within_s=60, what="the lock is ours")
        faulted = house.ask(form, user=user)
        proof = proven(lambda: house.sidecar.semmem.metric(queue) >= 1, f"{queue} > 0")
        waited = len(house.sidecar.semmem.turns(user))
        other.execute("ROLLBACK")
    if waited:
        raise NotProven("the turn was committed although the journal was locked")
    eventually(lambda: house.sidecar.semmem.turns(user), within_s=60, what="the turn is committed after all")
    return Trial(plain, faulted, f"{proof}, committed later")


def journal_full(house: House, form: Form) -> Trial:
    """The journal's file has reached its limit: nothing more is accepted, and nobody notices."""
    metric = "semmem_journal_commit_seconds_count"
    plain = house.ask(form, plain=True)
    fired = house.rises(metric, status="error", more=True)
    text = "I collect " + "very " * 8000 + "old stamps."
    for _ in range(20):
        if house.sidecar.semmem.metric(metric, status="error"):
            break
        house.ask(JSON, body=JSON.question(text + os.urandom(4).hex()))
    return Trial(plain, house.ask(form), fired() + ", no room")
