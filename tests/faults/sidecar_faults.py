"""semmem itself is gone, hangs, dies, comes back, or sheds load."""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
from collections.abc import Callable

from tests.faults.client import Seen, differences
from tests.faults.counts import NotProven
from tests.faults.forms import Form
from tests.faults.house import House, Trial
from tests.faults.sidecar import stopped, switched
from tests.faults.upstream import Script
from tests.support.harness import eventually

LONG = Script(tokens=60, token_ms=20)
CLIENTS = 6
TRIES = 3


def just_died(house: House, form: Form) -> Trial:
    """Killed a moment ago: Envoy still believes in it."""
    fired = house.envoy_rises("failure_mode_allowed", "streams_failed")
    plain = house.ask(form, plain=True)
    house.sidecar.kill()
    faulted = house.ask(form)
    trial = Trial(plain, faulted, fired())
    house.sidecar.start()
    house.recovered()
    return trial


def down(house: House, form: Form) -> Trial:
    """Gone for so long that Envoy knows it."""
    plain = house.ask(form, plain=True)
    house.sidecar.kill()
    house.front.wait_healthy(False)
    faulted = house.ask(form)
    house.front.wait_healthy(False)
    proof = "Envoy: membership_healthy 0" + _without_outcome(faulted)
    house.sidecar.start()
    house.recovered()
    return Trial(plain, faulted, proof)


def stopped_before(house: House, form: Form) -> Trial:
    fired = house.envoy_rises("message_timeouts")
    plain = house.ask(form, plain=True)
    with stopped(house.sidecar.pid):
        faulted = house.ask(form)
    trial = Trial(plain, faulted, fired())
    house.recovered()
    return trial


def stopped_in_mid_request(house: House, form: Form) -> Trial:
    return _in_mid_request(house, form, signal.SIGSTOP, "message_timeouts")


def killed_in_mid_request(house: House, form: Form) -> Trial:
    return _in_mid_request(house, form, signal.SIGKILL, "failure_mode_allowed", "streams_failed")


def stopped_in_mid_stream(house: House, form: Form) -> Trial:
    return _in_mid_stream(house, form, LONG, signal.SIGSTOP)


def stopped_in_mid_stream_of_megabytes(house: House, form: Form) -> Trial:
    """More than every window and buffer between Envoy and semmem holds."""
    return _in_mid_stream(house, form, Script(tokens=100, token_ms=10, pad=40_000), signal.SIGSTOP)


def killed_in_mid_stream(house: House, form: Form) -> Trial:
    return _in_mid_stream(house, form, LONG, signal.SIGKILL)


def restarted_under_load(house: House, form: Form) -> Trial:
    def restart() -> str:
        house.sidecar.kill()
        house.sidecar.start()
        house.front.wait_healthy()
        return "killed and started again"

    return _under_load(house, form, restart)


def sigterm_under_load(house: House, form: Form) -> Trial:
    def end() -> str:
        code = house.sidecar.end()
        if code != 0:
            raise NotProven(f"semmem ended with {code}, not by itself")
        time.sleep(0.5)
        house.sidecar.start()
        house.front.wait_healthy()
        return "exit status 0"

    return _under_load(house, form, end)


def crowded(house: House, form: Form) -> Trial:
    """More requests at once than semmem takes: the rest pass without memory, and are counted as shed."""
    shed = functools.partial(house.sidecar.semmem.metric, "semmem_extproc_streams_shed_total", role="mutate")
    shed_before = shed()
    plain = house.ask(form, plain=True)
    seen: list[Seen] = []
    with switched(house.sidecar, "slow"):
        asking = [threading.Thread(target=lambda: seen.append(house.ask(form))) for _ in range(CLIENTS)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join(60)
    passed_by = [one for one in seen if one.outcome is None]
    shed_now = shed() - shed_before
    if not passed_by or shed_now != len(passed_by):
        raise NotProven(f"{len(passed_by)} requests passed by, {shed_now:g} were counted as shed")
    wrong = tuple(text for one in seen for text in differences(plain, one))
    house.recovered()
    return Trial(plain, passed_by[0], f"{shed_now:g} of {CLIENTS} shed, as many passed by", wrong)


# --- how -------------------------------------------------------------------------------------------------------------


def _without_outcome(seen: Seen) -> str:
    if seen.outcome is not None:
        raise NotProven(f"semmem answered: {seen.outcome}")
    return ", no outcome"


def _in_mid_request(house: House, form: Form, signum: signal.Signals, *counters: str) -> Trial:
    """The signal comes while semmem holds the request; a try in which it came too late is repeated."""
    plain = house.ask(form, plain=True)
    for _ in range(TRIES):
        fired = house.envoy_rises(*counters)
        with switched(house.sidecar, "slow"):
            faulted = house.ask(form, meanwhile=lambda _trial: _hit_in_mid_request(house, signum))
        # before it is asked again: Envoy may let the first requests after a restart by, which are counted as well
        try:
            proof = fired() if faulted.outcome is None else ""
        finally:
            _heal(house, signum)
        if proof:
            return Trial(plain, faulted, proof)
    raise NotProven("semmem had always answered before")


def _hit_in_mid_request(house: House, signum: signal.Signals) -> None:
    asked = "semmem_extproc_streams"
    eventually(lambda: house.sidecar.semmem.metric(asked, role="mutate") >= 1, within_s=60, what="semmem is asked")
    os.kill(house.sidecar.pid, signum)


def _heal(house: House, signum: signal.Signals) -> None:
    if signum == signal.SIGSTOP:
        time.sleep(0.1)
        os.kill(house.sidecar.pid, signal.SIGCONT)
    else:
        house.sidecar.end()
        house.sidecar.start()
    house.recovered()


def _in_mid_stream(house: House, form: Form, script: Script, signum: signal.Signals) -> Trial:
    plain = house.ask(form, plain=True, script=script)
    left: list[int] = []

    def hit(trial: str) -> None:
        exchange = house.half_answered(trial)
        os.kill(house.sidecar.pid, signum)
        left.append(len(plain.arrivals) - len(exchange.sent))

    faulted = house.ask(form, script=script, meanwhile=hit)
    if not left or left[0] <= 0 or faulted.outcome is None:
        raise NotProven("the signal did not come in mid-stream")
    gone = "stopped" if signum == signal.SIGSTOP else "killed"
    waits = f"longest wait {faulted.gap_s * 1000:.0f} ms (without semmem {plain.gap_s * 1000:.0f} ms)"
    pieces = len(plain.arrivals)
    trial = Trial(plain, faulted, f"{gone} after piece {pieces - left[0]} of {pieces}, {waits}")
    _heal(house, signum)
    return trial


def _under_load(house: House, form: Form, act: Callable[[], str]) -> Trial:
    """Clients ask without a pause while something is done to semmem. Every single answer is compared."""
    plain = house.ask(form, plain=True)
    seen: list[Seen] = []
    enough = threading.Event()

    def keep_asking() -> None:
        while not enough.is_set():
            seen.append(house.ask(form))

    clients = [threading.Thread(target=keep_asking) for _ in range(CLIENTS)]
    try:
        for client in clients:
            client.start()
        time.sleep(0.5)
        done = act()
        time.sleep(0.5)
    finally:
        enough.set()
        for client in clients:
            client.join(60)
    with_memory, without = (sum((one.outcome is not None) is had for one in seen) for had in (True, False))
    if not with_memory or not without:
        raise NotProven(f"{with_memory} requests with and {without} without semmem")
    wrong = tuple(text for one in seen for text in differences(plain, one))
    house.recovered()
    passed_by = next(one for one in seen if one.outcome is None)
    return Trial(plain, passed_by, f"{done}; {with_memory} answers with semmem, {without} without", wrong)
