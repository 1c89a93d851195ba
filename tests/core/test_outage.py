"""What is said of something that fails again and again."""

from __future__ import annotations

import logging

import pytest

from semmem.background.tasks import REMIND_S, Outage

log = logging.getLogger("outage of a test")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_outage_is_said_once_and_counted_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    outage = Outage(log, "write", clock=clock)
    outage.worked()
    for _ in range(300):
        outage.failed("nobody answers")
        clock.now += 0.1
    outage.worked()
    outage.worked()
    assert caplog.messages == [
        "write failed, it is tried again: nobody answers",
        "write works again, after 300 failures in 30.0 s",
    ]


def test_what_still_fails_is_said_every_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    outage = Outage(log, "write", clock=clock, level=logging.WARNING)
    for _ in range(5):
        outage.failed("nobody answers")
        clock.now += REMIND_S / 2
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3
    assert caplog.messages[-1] == "write still fails, 5 times in 120 s: nobody answers"


def test_a_single_failure_is_said_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage(log, "write")
    for why in ("one", "other"):
        outage.failed(why)
        outage.worked()
    assert caplog.messages == ["write failed, it is tried again: one", "write failed, it is tried again: other"]
