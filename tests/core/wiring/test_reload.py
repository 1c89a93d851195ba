"""Reading the configuration again: all of what changed is taken up, or nothing, and it is told what became of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from semmem.background import Tasks
from semmem.config import Problem, Settings, examine
from semmem.ports.errors import StoreUnavailable
from semmem.ports.events import ConfigReloaded, Event
from semmem.wiring.reload import Reloading
from tests.support.configuration import LONG_SECRET, write


@dataclass(frozen=True)
class Served:
    settings: Settings


class Running:
    """A semmem that serves by its file."""

    def __init__(self, folder: Path, make: Callable[[Settings], Served] = Served) -> None:
        self.folder, self.events, self.served = folder, list[Event](), list[Settings]()
        self.file = write(folder, "")
        self.now = 1_800_000_000.0
        self.reloading = Reloading[Served](Settings(), self.read, announce=self.events.append, clock=lambda: self.now)
        self.reloading.begin(make, lambda made: self.served.append(made.settings))

    def read(self) -> tuple[Settings | None, list[Problem]]:
        return examine(self.file, {})

    async def reload(self, text: str) -> Any:
        write(self.folder, text)
        return await self.reloading.reload()

    @property
    def words(self) -> list[str]:
        return [event.outcome for event in self.events if isinstance(event, ConfigReloaded)]


async def test_what_changed_is_taken_up(tmp_path: Path) -> None:
    running = Running(tmp_path)
    before = running.reloading.state()
    running.now += 60
    done = await running.reload("memory: {default_retrieval_limit: 7}\nlog: {level: debug}")
    assert (done.outcome, done.changed) == ("applied", ("memory.default_retrieval_limit", "log.level"))
    assert [settings.memory.default_retrieval_limit for settings in running.served] == [7]
    state = running.reloading.state()
    assert (before["loaded_at"], state["loaded_at"]) == ("2027-01-15T08:00:00Z", "2027-01-15T08:01:00Z")
    assert state["digest"] == done.digest != before["digest"]
    assert before["last"] is None
    assert state["last"] is not None
    assert state["last"]["outcome"] == "applied"
    assert running.words == ["applied"]


async def test_nothing_is_taken_up_when_one_of_the_changes_needs_a_restart(tmp_path: Path) -> None:
    running = Running(tmp_path)
    done = await running.reload("memory: {default_retrieval_limit: 7}\ndata_dir: /elsewhere")
    assert (done.outcome, running.served) == ("refused", [])
    assert done.problems == ("data_dir: needs a restart, since what is kept is bound to it",)
    assert running.reloading.settings == Settings()
    state = running.reloading.state()
    assert state["last"] is not None
    assert (state["loaded_at"], state["last"]["problems"]) == ("2027-01-15T08:00:00Z", [*done.problems])
    assert state["reloads"] == {"applied": 0, "refused": 1, "unchanged": 0}
    assert (await running.reload("memory: {default_retrieval_limit: 7}")).outcome == "applied"


async def test_a_configuration_with_a_problem_is_refused_with_all_of_them(tmp_path: Path) -> None:
    running = Running(tmp_path)
    text = (
        f"memory: {{default_retrieval_limit: 0, opt_inn: true}}\nlisteners: {{api: {{admin_token: [{LONG_SECRET}]}}}}"
    )
    done = await running.reload(text)
    assert (done.outcome, len(done.problems), running.served) == ("refused", 3, [])
    assert "memory.default_retrieval_limit = 0 (config.yaml:1:35)" in "".join(done.problems)
    assert LONG_SECRET not in str(done)
    assert (await running.reload("memory: [")).outcome == "refused"
    running.file.unlink()
    assert "no such file" in (await running.reloading.reload()).problems[0]


async def test_the_same_configuration_is_unchanged(tmp_path: Path) -> None:
    running = Running(tmp_path)
    done = await running.reload("# a comment\nmemory: {default_retrieval_limit: 5}")
    assert (done.outcome, running.served, running.words) == ("unchanged", [], ["unchanged"])


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (OSError("keys.json: no such file"), "keys.json: no such file"),
        (StoreUnavailable("a store"), "a store"),
        (ZeroDivisionError(LONG_SECRET), "ZeroDivisionError"),
    ],
)
async def test_what_cannot_be_made_changes_nothing(tmp_path: Path, failure: Exception, told: str) -> None:
    def make(_settings: Settings) -> Served:
        raise failure

    running = Running(tmp_path, make)
    done = await running.reload("memory: {default_retrieval_limit: 7}")
    assert (done.outcome, done.problems, running.served) == ("refused", (told,), [])
    assert running.reloading.settings == Settings()


async def test_what_serves_is_made_beside_the_event_loop(tmp_path: Path) -> None:
    threads = list[str]()

    def make(settings: Settings) -> Served:
        threads.append(threading.current_thread().name)
        return Served(settings)

    await Running(tmp_path, make).reload("memory: {default_retrieval_limit: 7}")
    assert threads
    assert threading.main_thread().name not in threads


async def test_reloads_come_one_after_another(tmp_path: Path) -> None:
    running = Running(tmp_path)
    write(tmp_path, "memory: {default_retrieval_limit: 7}")
    done = await asyncio.gather(*(running.reloading.reload() for _ in range(5)))
    assert sorted(one.outcome for one in done) == ["applied"] + 4 * ["unchanged"]
    assert len(running.served) == 1


async def test_whoever_asks_before_there_is_something_to_change_is_heard_then(tmp_path: Path) -> None:
    running = Running(tmp_path)
    for _ in range(3):
        running.reloading.ask()
    write(tmp_path, "memory: {default_retrieval_limit: 7}")
    tasks = Tasks()
    tasks.spawn("reload", running.reloading.run())
    async with asyncio.timeout(10):
        while not running.words:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    await tasks.cancel()
    assert (running.words, len(running.served)) == (["applied"], 1)


async def test_nothing_is_taken_up_while_semmem_stops(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.reloading.end()
    done = await running.reload("memory: {default_retrieval_limit: 7}")
    assert (done.outcome, done.problems, running.served) == ("refused", ("semmem is stopping",), [])


async def test_the_log_names_keys_and_reasons(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    running = Running(tmp_path)
    with caplog.at_level("INFO", "semmem"):
        digest = (await running.reload("memory: {default_retrieval_limit: 7}")).digest
        await running.reload("memory: {default_retrieval_limit: 7}")
        await running.reload("data_dir: /elsewhere")
    assert caplog.messages == [
        f"the configuration {digest} is taken up: memory.default_retrieval_limit",
        "the configuration was read again, nothing in it has changed",
        "the configuration is not taken up, the former one holds: data_dir: needs a restart, since what is kept is"
        " bound to it",
    ]
