"""Conversation ids as long as a body, through a real Envoy: semmem's memory and its journal stay as they were."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.support.harness import House, eventually

MIB = 1024 * 1024
REQUESTS = 45
ROOM_MIB = 400
"""What the process may grow by while it reads 45 bodies of 15 MB; kept names alone would be 675 MB."""


def rss_mib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 // MIB


def journal_mib(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.glob("journal.db*")) / MIB


def is_journalled(home: House, user: str, turns: int) -> bool:
    return len(home.semmem.turns(user)) == turns


@pytest.mark.long(60)
def test_45_conversation_ids_of_15_megabytes_leave_memory_and_journal_flat(home: House, alice: str) -> None:
    pid = home.semmem.child.pid
    before_mib, journal_before = rss_mib(pid), journal_mib(home.semmem.data_dir)
    for number in range(REQUESTS):
        name = f"{number:02}" + "c" * 15_000_000
        body = json.dumps({"model": "stand-in", "input": f"I like tea number {number}", "conversation": name}).encode()
        assert home.send(body, user=alice, path="/v1/responses").status == 200
        home.model.received.clear()
        # one after another: on a busy machine more and more of them would be under way, and in memory for that long
        eventually(partial(is_journalled, home, alice, number + 1), within_s=120, what="the turn is journalled")
    grown_mib, journal_mib_grown = rss_mib(pid) - before_mib, journal_mib(home.semmem.data_dir) - journal_before
    print(f"\nmemory {before_mib} MiB and {grown_mib:+} MiB, journal {journal_mib_grown:+.1f} MiB")
    assert grown_mib < ROOM_MIB
    assert journal_mib_grown < 20


def test_a_long_conversation_is_one_session_and_the_users_other_sessions_are_learnt_from(
    home: House, alice: str
) -> None:
    name = "conv_" + "x" * 5000
    for text in ("I live in Porto", "My sister is called Clara"):
        body = json.dumps({"model": "stand-in", "input": text, "conversation": name}).encode()
        assert home.send(body, user=alice, path="/v1/responses").status == 200
    home.chat(alice, "I am allergic to peanuts", session="short")
    learnt = home.learnt(alice, 3, within_s=60)
    assert len({memory["session_id"] for memory in learnt}) == 2
    assert all(len(memory["session_id"]) <= 64 for memory in learnt)
