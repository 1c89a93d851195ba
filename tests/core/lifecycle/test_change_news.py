"""What replicas tell each other of changes: who is told, of whom, how much at a time; what a silence is taken for."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.backends.in_process import InProcessStore
from semmem.background import Tasks
from semmem.lifecycle import change_news
from semmem.lifecycle.change_news import USERS_PER_WORD, WORD_CHARS_MAX, AttentiveStore, ChangeNews, Reading
from semmem.memory import Memory, MemoryType, Scope
from semmem.ports.events import ChangesTold, Event, NewsBack, NewsLost
from semmem.ports.store import StoreCall, StoreWrapper
from semmem.retrieval.index.hot_memories import HotMemories
from semmem.retrieval.index.kept import ALL_DOUBT_S
from semmem.retrieval.ledger.ledger import Ledger
from semmem.telemetry.metering import ObservedStore
from semmem.telemetry.metrics import Metrics
from semmem.wiring.replicas import Kept
from tests.support.examples import examples
from tests.support.wire import Line, Wire

KEY = b"a key that all replicas have in common"
LAG_S = 5.0
USERS = ("ada", "bob")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Told:
    """Copies that write down what they are told."""

    def __init__(self, *held: str) -> None:
        self.held = set(held)
        self.in_use = set[str]()
        self.users: list[str] = []
        self.everything = 0

    def holds(self, user: str) -> bool:
        return user in self.held

    def changed_elsewhere(self, user: str) -> bool:
        self.users.append(user)
        return user in self.in_use

    def all_changed_elsewhere(self) -> None:
        self.everything += 1


class Station:
    """News on a wire, and all that came of them."""

    def __init__(self, wire: Wire, *, key: bytes = KEY, users_max: int = 2000, interval_s: float = 0.0) -> None:
        self.line, self.copies, self.events, self.clock = wire.line(), Told(), list[Event](), Clock()
        self.news = ChangeNews(
            self.line,
            key,
            interval_s=interval_s,
            users_max=users_max,
            again_s=0.0,
            retry_s=0.001,
            announce=self.events.append,
            clock=self.clock,
        )
        self.news.of(self.copies)
        self.line.changes = self.news
        self.news.connected()
        self.copies.everything = 0

    def counted(self, result: str) -> int:
        return sum(event.users for event in self.events if isinstance(event, ChangesTold) and event.result == result)

    def outages(self) -> list[type[Event]]:
        return [type(event) for event in self.events if isinstance(event, NewsLost | NewsBack)]


@pytest.fixture
def wire() -> Wire:
    return Wire()


async def test_another_replica_is_told_whose_memories_changed_and_nobody_of_the_rest(wire: Wire) -> None:
    one, other = Station(wire), Station(wire)
    for user in ("ada", "bob"):
        other.news.reading(user)
        one.news.reading(user)
    one.news.changed("ada", "mem_1")
    assert await one.news.tell()
    assert (other.copies.users, one.copies.users) == (["ada"], [])
    assert [station.news.reading("ada") for station in (other, one)] == [Reading.AS_OF_NOW, Reading.ANYHOW]
    assert other.news.reading("bob") is Reading.ANYHOW
    assert (one.counted("told"), other.counted("heard"), one.counted("heard")) == (1, 1, 0)


async def test_a_change_is_told_at_once_and_the_next_ones_together(wire: Wire) -> None:
    one, tasks = Station(wire, interval_s=0.2), Tasks()
    tasks.spawn("news", one.news.run())
    began = asyncio.get_running_loop().time()
    for number, user in enumerate(("ada", "bob", "cleo")):
        one.news.changed(user)
        while not wire.words:
            await asyncio.sleep(0.001)
        assert number > 0 or asyncio.get_running_loop().time() - began < 0.1
    while len(wire.words) < 2:
        await asyncio.sleep(0.001)
    await tasks.cancel()
    assert asyncio.get_running_loop().time() - began > 0.15
    assert one.counted("told") == 3


async def test_what_is_heard_is_complete_unless_something_cannot_be_heard_or_understood(wire: Wire) -> None:
    one, stranger = Station(wire), Station(wire, key=b"another key")
    seen = [one.news.is_complete]
    one.news.lost("away")
    seen.append(one.news.is_complete)
    one.news.connected()
    seen.append(one.news.is_complete)  # others may not have told yet what they could not
    one.clock.now += change_news.BACK_S
    seen.append(one.news.is_complete)
    stranger.news.changed("ada")
    assert await stranger.news.tell()
    seen.append(one.news.is_complete)
    one.clock.now += change_news.FOREIGN_S
    assert [*seen, one.news.is_complete] == [True, False, False, True, False, True]


def test_an_outage_is_doubted_for_longer_than_others_wait_before_they_tell_again() -> None:
    assert change_news.BACK_S > change_news.RETRY_MAX_S


async def test_who_finds_another_one_gone_has_everything_doubted(wire: Wire) -> None:
    one, other = Station(wire), Station(wire)
    one.news.everything()
    assert await one.news.tell()
    assert (one.copies.everything, other.copies.everything) == (0, 1)


async def test_who_was_not_read_here_before_is_read_as_of_now_once(wire: Wire) -> None:
    one, other = Station(wire), Station(wire)
    one.news.changed("ada")
    await one.news.tell()
    assert other.copies.users == []
    assert [other.news.reading("ada") for _ in range(2)] == [Reading.AS_OF_NOW, Reading.ANYHOW]
    one.news.changed("ada")
    await one.news.tell()
    other.clock.now += 5.1
    assert other.news.reading("ada") is Reading.ANYHOW  # every store shows it by now


@pytest.mark.parametrize(("in_use", "how"), [(True, Reading.AS_OF_NOW), (False, Reading.TWICE)])
async def test_whom_a_request_waits_for_is_read_as_it_is_and_again_soon(wire: Wire, in_use: bool, how: Reading) -> None:
    one, other = Station(wire), Station(wire)
    other.news.reading("ada")
    other.copies.held = {"ada"}
    other.copies.in_use = {"ada"} if in_use else set()
    one.news.changed("ada")
    await one.news.tell()
    assert other.news.reading("ada") is how
    other.news.read_again("ada")
    assert other.copies.users == ["ada"]
    await asyncio.sleep(0.01)
    assert other.copies.users == ["ada", "ada"]


class Lagging(StoreWrapper):
    """Says when it is told of others' writes, and what it was asked."""

    def __init__(self) -> None:
        super().__init__(InProcessStore())
        self.calls: list[str] = []

    def written_elsewhere(self, user: str) -> None:
        self.calls.append(f"fresh {user}")

    @contextmanager
    def around(self, call: StoreCall) -> Iterator[None]:
        self.calls.append(call.operation)
        yield


@pytest.mark.parametrize(
    ("in_use", "held", "calls"),
    [
        (True, True, ["fresh ada", "list", "list"]),
        (False, True, ["list", "fresh ada", "list"]),
        (False, False, ["fresh ada", "list", "list"]),
    ],
)
async def test_a_store_that_lags_is_told_of_others_writes_before_a_reading_that_nobody_waits_for(
    wire: Wire, in_use: bool, held: bool, calls: list[str]
) -> None:
    one, other, inner = Station(wire), Station(wire), Lagging()
    await inner.open()
    inner.calls.clear()
    store = AttentiveStore(inner, other.news)
    other.news.reading("ada")
    other.copies.held, other.copies.in_use = {"ada"} if held else set(), {"ada"} if in_use else set()
    one.news.changed("ada")
    await one.news.tell()
    for _ in range(2):
        await store.list(Scope("ada"))
    assert inner.calls == calls


@pytest.mark.parametrize("operation", ["get", "count"])
async def test_the_api_reads_as_of_now_whatever_is_held(wire: Wire, operation: str) -> None:
    one, other, inner = Station(wire), Station(wire), Lagging()
    await inner.open()
    inner.calls.clear()
    other.copies.held = {"ada"}
    store = AttentiveStore(inner, other.news)
    one.news.changed("ada")
    await one.news.tell()
    await (store.get(Scope("ada"), "mem_1") if operation == "get" else store.count(Scope("ada")))
    assert inner.calls == ["fresh ada", operation]


async def test_no_word_holds_a_name_and_another_key_gives_another_digest(wire: Wire) -> None:
    one, stranger, other = Station(wire), Station(wire, key=b"another key"), Station(wire)
    for station in (stranger, other):
        station.news.reading("zoe@example.org")
    one.news.changed("zoe@example.org")
    stranger.news.changed("zoe@example.org")
    await one.news.tell()
    await stranger.news.tell()
    assert "zoe" not in " ".join(wire.words)
    assert wire.words[0].split()[3] != wire.words[1].split()[3]
    assert (other.copies.users, stranger.copies.users) == (["zoe@example.org"], [])
    assert (other.counted("foreign"), stranger.counted("foreign")) == (1, 1)


async def test_changes_are_gathered_and_told_together(wire: Wire) -> None:
    one, tasks = Station(wire, interval_s=0.02), Tasks()
    tasks.keep("news", one.news.run)
    for number in range(50):
        one.news.changed(f"user {number % 5}", f"mem_{number}")
    await asyncio.sleep(0.1)
    assert (len(wire.words), one.counted("told")) == (1, 5)
    await tasks.cancel()


async def test_many_users_make_several_words_each_short_enough_for_any_server(wire: Wire) -> None:
    one, other = Station(wire), Station(wire)
    names = [f"user {number}" for number in range(2 * USERS_PER_WORD + 1)]
    for name in names:
        other.news.reading(name)
        one.news.changed(name)
    await one.news.tell()
    assert sorted(other.copies.users) == sorted(names)
    assert len(wire.words) == 3
    assert max(map(len, wire.words)) < WORD_CHARS_MAX


async def test_too_many_users_are_told_of_as_everything(wire: Wire) -> None:
    one, other = Station(wire, users_max=3), Station(wire)
    for number in range(100):
        one.news.changed(f"user {number}")
    await one.news.tell()
    assert (len(wire.words), other.copies.everything, one.copies.everything) == (1, 1, 0)
    assert (one.counted("told_everything"), other.counted("heard_everything")) == (1, 1)
    one.news.changed("ada")
    await one.news.tell()
    assert len(wire.words[-1]) > len(wire.words[0])  # and then names again


async def test_what_could_not_be_told_is_told_as_everything_when_that_is_possible(wire: Wire) -> None:
    one, other, tasks = Station(wire), Station(wire), Tasks()
    one.line.is_cut = True
    tasks.keep("news", one.news.run)
    one.news.changed("ada")
    while one.line.tries < 4:
        await asyncio.sleep(0.001)
    assert (one.outages(), one.news.is_up) == ([NewsLost], False)
    one.line.is_cut = False
    while not one.news.is_up:
        await asyncio.sleep(0.001)
    assert other.copies.everything == 1
    assert one.outages() == [NewsLost, NewsBack]
    assert one.counted("untold") >= 3
    await tasks.cancel()


async def test_pauses_between_tries_grow_and_begin_anew(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(delay: float) -> None:
        pauses.append(delay)
        if len(pauses) in (6, 8):
            one.line.is_cut = not one.line.is_cut
        await real(0)

    real = asyncio.sleep
    one, tasks = Station(wire), Tasks()
    one.line.cut()
    monkeypatch.setattr(change_news, "RETRY_MAX_S", 0.004)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    listening = tasks.spawn("listen", one.news.listen(lambda: one.line.listen(one.news.heard, one.news.connected)))
    while len(pauses) < 7:
        await real(0)
    listening.cancel()
    grown = [pause for pause in pauses if pause]
    assert grown[:6] == [0.001, 0.002, 0.004, 0.004, 0.004, 0.004]


async def test_an_outage_is_said_once_however_often_it_is_tried_and_whichever_way_it_hurts(wire: Wire) -> None:
    one = Station(wire)
    for _ in range(3):
        one.line.cut()
        one.news.lost("cut")
        one.news.changed("ada")
        assert not await one.news.tell()
    assert one.outages() == [NewsLost]
    one.line.mend()
    assert one.outages() == [NewsLost]  # it hears, and has not told yet
    assert await one.news.tell()
    assert one.outages() == [NewsLost, NewsBack]


async def test_after_a_gap_anything_may_have_changed(wire: Wire) -> None:
    one, other = Station(wire), Station(wire)
    other.line.cut()
    one.news.changed("ada")
    await one.news.tell()
    assert (other.copies.everything, other.news.is_up) == (0, False)
    other.line.mend()
    assert (other.copies.everything, other.news.is_up) == (1, True)


@pytest.mark.parametrize(
    "word", ["", "due", "changed", "changed a b", "changed  ", "x" * 9000, "changed a b c\n", "\x00"]
)
async def test_a_word_that_is_none_is_passed_over(wire: Wire, word: str) -> None:
    one = Station(wire)
    one.news.reading("ada")
    one.news.heard(word)
    assert (one.copies.users, one.copies.everything) == ([], 0)


async def test_nobody_is_known_for_ever_but_who_is_held(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_news, "KNOWN_LEAST", 10)
    one, other = Station(wire), Station(wire)
    other.copies.held = {"user 3", "user 999"}
    for number in range(20_000):
        other.news.reading(f"user {number}")
    assert len(other.news._known) < 15_000
    for number in (3, 4, 999):
        one.news.changed(f"user {number}")
    await one.news.tell()
    assert sorted(other.copies.users) == ["user 3", "user 999"]


# --- replicas on one store -------------------------------------------------------------------------------------------


class View(StoreWrapper):
    """The store as one process sees it: what others wrote in the last LAG_S is missing until it is told of them."""

    def __init__(self, store: Shared, clock: Clock) -> None:
        super().__init__(store)
        self._shared, self._clock = store, clock
        self._fresh: set[str] = set()
        self._seen: set[tuple[str, int]] = set()

    def written_elsewhere(self, user: str) -> None:
        self._fresh.add(user)

    async def put(self, scope: Scope, *memories: Memory) -> None:
        await super().put(scope, *memories)
        for memory in memories:
            self._seen.add((memory.id, memory.version))
            self._shared.written[memory.id, memory.version] = self._clock.now

    async def list(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        found = await super().list(scope, types=types, limit=limit, offset=offset, vectors=vectors)
        if scope.user in self._fresh:
            self._fresh.remove(scope.user)
            self._seen |= {(memory.id, memory.version) for memory in found}
        return [memory for memory in found if self._is_seen(memory)]

    def _is_seen(self, memory: Memory) -> bool:
        at = (memory.id, memory.version)
        return at in self._seen or self._clock.now - self._shared.written.get(at, -math.inf) >= LAG_S


class Shared(StoreWrapper):
    """The store itself, which knows when what was written."""

    def __init__(self) -> None:
        super().__init__(InProcessStore())
        self.written: dict[tuple[str, int], float] = {}


class Replica:
    def __init__(self, wire: Wire, shared: Shared, clock: Clock) -> None:
        self.line: Line = wire.line()
        self.news = ChangeNews(self.line, KEY, again_s=0.0, clock=clock)
        self.line.changes = self.news
        self.tasks = Tasks()
        store = ObservedStore(
            AttentiveStore(View(shared, clock), self.news), Metrics(), "in_process", [self.news.changed]
        )
        self.hot = HotMemories(store, spawn=self.tasks.spawn, clock=clock)
        self.news.of(Kept(self.hot, Ledger()))
        self.news.connected()

    async def contents(self, user: str) -> list[str]:
        for _ in range(20):  # what changes again and again while it is read is given up, and asked for anew
            if (index := await self.hot.index(user, wait_s=5.0)) is not None:
                return sorted(memory.content for memory in index.memories)
        raise AssertionError("not to be had")


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "forget", "tell", "cut", "mend", "ask", "begin", "breathe", "wait"]),
        st.integers(0, 1),
        st.sampled_from(USERS),
    ),
    max_size=30,
)


async def play(steps: list[tuple[str, int, str]], *, cuts: bool) -> None:
    wire, shared, clock = Wire(), Shared(), Clock()
    await shared.open()
    replicas = [Replica(wire, shared, clock) for _ in range(2)]
    clock.now += 2 * LAG_S
    for number, (word, which, user) in enumerate(steps):
        replica = replicas[which]
        if word == "write":
            memory = Memory(f"mem_{number}", 1, MemoryType.SEMANTIC, f"tea {number}", user)
            await replica.hot.put(Scope(user), memory)
        elif word == "forget":
            await replica.hot.forget_scope(Scope(user))
        elif word == "tell":
            await replica.news.tell()
        elif word == "ask":
            await replica.contents(user)
        elif word == "begin":
            replica.hot.warm(user)
        elif word == "breathe":
            await asyncio.sleep(0)
        elif word == "wait":
            clock.now += 0.4
        elif cuts:
            getattr(replica.line, word)()
    for replica in replicas:
        replica.line.mend()
    for replica in replicas:
        await replica.news.tell()
        assert replica.news.is_up
    if cuts:  # what was missed shows when doubts are over, and when the store has caught up
        clock.now += max(ALL_DOUBT_S, LAG_S)
    await settled(replicas)
    for user in USERS:
        stored = sorted(memory.content for memory in await shared.list(Scope(user)))
        assert [await replica.contents(user) for replica in replicas] == [stored] * 2


async def settled(replicas: list[Replica]) -> None:
    """Everybody is asked for, and what is read again for that is read."""
    await asyncio.gather(*(replica.contents(user) for replica in replicas for user in USERS))
    for _ in range(3):
        await asyncio.sleep(0.001)
        for replica in replicas:
            await replica.tasks.wait(5.0)


@settings(max_examples=examples(150))
@given(STEPS)
def test_when_everything_is_told_all_replicas_show_what_is_stored(steps: list[tuple[str, int, str]]) -> None:
    asyncio.run(play(steps, cuts=False))


@settings(max_examples=examples(150))
@given(STEPS)
def test_after_any_cuts_all_replicas_come_to_show_what_is_stored(steps: list[tuple[str, int, str]]) -> None:
    asyncio.run(play(steps, cuts=True))
