"""Two semmem processes on one journal: a switch that is set on one is obeyed by the other, by news and without."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support.harness import SemmemProcess, eventually, semmem_process
from tests.support.postgres import TestServer, worker_name

REFRESH_S = 10.0
OFF = {"reading": "off", "storing": "off"}


@pytest.fixture(scope="module")
def pair(
    postgres: TestServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SemmemProcess, SemmemProcess, str]]:
    name = f"switches-{worker_name()}"
    settings = {
        "journal": {"url": postgres.create(name)},
        "memory": {
            "backend": "in_process",
            "switches": {"refresh_s": REFRESH_S},
            "injection": {"fence_key": "tests-of-switches-0123456789"},
        },
    }
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("switches")
        one, other = (stack.enter_context(semmem_process(folder / each, settings)) for each in "ab")
        yield one, other, name


def obeyed(process: SemmemProcess, user: str) -> object:
    """What requests of this process obey, without a look at the journal."""
    listed = process.api("GET", "/v1/users", params={"limit": 1000})
    return listed["memory_switches"].get(user)


def switch_and_wait(one: SemmemProcess, other: SemmemProcess, user: str) -> float:
    """After how many seconds the other obeys."""
    other.remember(user, f"{user} likes tea.")
    one.api("PUT", f"/v1/users/{user}/memory-switches", json=OFF)
    began = time.monotonic()
    assert one.api("GET", f"/v1/users/{user}/memory-switches") == {"user_id": user, **OFF}
    eventually(lambda: obeyed(other, user) == OFF, within_s=10 * REFRESH_S, what="the other replica obeys")
    return time.monotonic() - began


@pytest.mark.long(15)
def test_the_other_replica_obeys_at_once_when_it_hears_of_it_and_soon_when_it_does_not(
    pair: tuple[SemmemProcess, SemmemProcess, str], postgres: TestServer
) -> None:
    one, other, name = pair
    waits = [switch_and_wait(one, other, user) for user in ("ada", "bea", "cleo")]
    assert min(waits) < REFRESH_S / 2
    postgres.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}' AND query LIKE 'LISTEN%'"
    )
    switch_and_wait(one, other, "dora")
    one.api("PUT", "/v1/users/ada/memory-switches", json={})
    eventually(lambda: obeyed(other, "ada") is None, within_s=10 * REFRESH_S, what="it is on again there")
