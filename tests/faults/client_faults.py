"""Clients that leave, come all at once, or try their luck with headers."""

from __future__ import annotations

import threading
import time
from collections import Counter

from tests.faults.client import Seen, differences
from tests.faults.counts import MEMORY, NotProven, proven, settled
from tests.faults.forms import QUESTION, Form
from tests.faults.front import WEBSOCKETS
from tests.faults.house import House, Trial
from tests.faults.sidecar import stopped, switched
from tests.faults.upstream import Script

CLIENTS = 8
BRIEF = Script(tokens=2, token_ms=0)

# --- leaving ---------------------------------------------------------------------------------------------------------


def gone_before(house: House, form: Form) -> Trial:
    """It leaves while the model still thinks: the model is told, and the next client is served."""
    fired = house.outcome(*MEMORY)
    sides = [house.exchange(house.leave(form, plain=plain, wait=True)) for plain in (True, False)]
    proof = proven(lambda: all(side.cut for side in sides), "the model saw both clients go")
    counted = fired()
    return Trial(house.ask(form, plain=True), house.ask(form), f"{proof}, {counted}")


def gone_in_search(house: House, form: Form) -> Trial:
    """It leaves while semmem still searches: the model is never asked."""
    fired = house.no_outcome()
    with switched(house.sidecar, "slow"):
        trial = house.leave(form, plain=False, wait=False, after_s=0.1)
        time.sleep(0.6)
    proof = _never_asked(house, trial) + f", {fired()}"
    house.recovered()
    return Trial(house.ask(form, plain=True), house.ask(form), proof)


def gone_in_its_body(house: House, form: Form) -> Trial:
    """It sends half of what it announced."""
    fired = house.no_outcome()
    trial = house.leave(form, plain=False, wait=False, after_s=0.1, part=20)
    time.sleep(0.3)
    proof = _never_asked(house, trial) + f", {fired()}"
    return Trial(house.ask(form, plain=True), house.ask(form), proof)


def _never_asked(house: House, trial: str) -> str:
    if house.upstream.of(trial) is not None:
        raise NotProven("the model was asked although the client had left")
    return f"the model was never asked, {settled(house.sidecar)}"


def gone_during(house: House, form: Form) -> Trial:
    """It leaves in mid-answer; what it had until then is the same, and the turn's answer is not kept."""
    script = Script(tokens=60, token_ms=20)
    lost = house.turns("answer_lost")
    plain = house.ask(form, plain=True, script=script, leave_after=500)
    faulted = house.ask(form, script=script, leave_after=500)
    sides = (plain.exchange, faulted.exchange)
    gone = proven(lambda: all(side is not None and side.cut for side in sides), "the model saw both clients go")
    return Trial(plain, faulted, f"{gone}, {lost()}")


# --- many at once ----------------------------------------------------------------------------------------------------


def at_once(house: House, form: Form) -> Trial:
    """Several requests of one session at the same time, each with its own words: none gets what is another's."""
    session = {"x-session-id": f"at-once-{time.monotonic_ns()}"}
    texts = [f"{QUESTION} I mean trip {number}." for number in range(CLIENTS)]
    plain = [house.ask(form, plain=True, body=form.question(text), headers=session) for text in texts]
    fired, ended = house.outcome(*MEMORY, times=CLIENTS), house.turns("answered", times=CLIENTS)
    seen: dict[int, Seen] = {}

    def ask(number: int) -> None:
        seen[number] = house.ask(form, body=form.question(texts[number]), headers=session)

    asking = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(60)
    proof = f"{fired()}, {ended()}"
    name = session["x-session-id"]
    kept = Counter(text for text, _ in house.sidecar.semmem.turns(house.user, name))
    if kept != Counter(texts):
        raise NotProven(f"{kept.total()} turns in the journal, {len(kept)} different, not {CLIENTS}")
    wrong = tuple(text for number in seen for text in differences(plain[number], seen[number]))
    return Trial(plain[0], seen[0], f"{proof}, each journalled once", wrong)


# --- headers ---------------------------------------------------------------------------------------------------------

FLOOD, BEYOND = 80, 200
"""How many headers: Envoy takes a hundred, and 60 KiB of them."""


def header_flood(house: House, form: Form) -> Trial:
    """As many and as long as Envoy lets through."""
    return _heads(house, form, [b"".join(b"x-flood-%d: %b\r\n" % (n, b"f" * 600) for n in range(FLOOD))], 1)


def header_flood_beyond(house: House, form: Form) -> Trial:
    """More than Envoy lets through, in number or in length: its own refusal, and semmem is never asked."""
    many = b"".join(b"x-flood-%d: f\r\n" % number for number in range(BEYOND))
    return _heads(house, form, [many, b"x-flood: " + b"f" * 70_000 + b"\r\n"], 0)


def long_names(house: House, form: Form) -> Trial:
    """What semmem reads, 16 KB each: too long to name anything."""
    names = (b"x-session-id", b"x-conversation-id", b"x-project-id")
    return _heads(house, form, [b"".join(b"%b: %b\r\n" % (name, b"n" * 16_000) for name in names[:2])], 1)


def expects_100(house: House, form: Form) -> Trial:
    """It asks to be told to go on: Envoy tells it so with 100, once, before the answer."""
    return _heads(house, form, [b"expect: 100-continue\r\n"], 1)


def control_characters(house: House, form: Form) -> Trial:
    """Line ends, NUL and their like in headers that semmem reads; Envoy refuses most of them itself."""
    refused = [b"a\rb", b"a\0b", b"a\r\r\nx-evil: 1", b"a\nx-evil: 1\x00"]
    taken = [b"a\tb", b"a%0d%0ax-evil: 1", b"\xc3\xa4\xe2\x80\xa8", b"\xe4\xff", b"a\\r\\nb", b"\x7fb"]
    lines = [b"x-session-id: %b\r\n" % value for value in (*refused, *taken)]
    lines += [b"x-user-id: mallory\r\n", b"x-user-id: a\tb\r\nx-user-id: c\r\n"]
    return _heads(house, form, lines, None)


def contradicting_controls(house: House, form: Form) -> Trial:
    """Twice, differently, or with words that nobody knows: the most restrictive wins."""
    twice = b"x-semmem-memory: on\r\nx-semmem-memory: off\r\n"
    unknown = b"x-semmem-memory: o\tn\r\n"
    plain = house.ask(form, plain=True, raw=twice)
    fired = house.outcome("opted_out", times=2)
    other = house.ask(form, raw=unknown)
    return Trial(plain, house.ask(form, raw=twice), fired(), tuple(differences(plain, other)))


def two_framings(house: House, form: Form) -> Trial:
    """Content-length beside chunked, a length that is none, two lengths: the classics of request smuggling."""
    lines = [b"transfer-encoding: chunked\r\n", b"content-length: 3\r\n"]
    return _heads(house, form, [*lines, b"transfer-encoding: xchunked\r\n"], None)


def _heads(house: House, form: Form, lines: list[bytes], injected: int | None) -> Trial:
    """The same request with each of these lines. ``injected``: how many must get through; None: as many as do so
    without semmem."""
    plain = [house.ask(form, plain=True, script=BRIEF, raw=line) for line in lines]
    passed = sum(one.status == 200 for one in plain)
    if injected is not None and passed != injected:
        raise NotProven(f"Envoy let {passed} of {len(lines)} through, not {injected}")
    fired = house.outcome(*MEMORY, times=passed)
    seen = [house.ask(form, script=BRIEF, raw=line) for line in lines]
    wrong = tuple(
        f"{line[:40]!r}: {text}" for line, a, b in zip(lines, plain, seen, strict=True) for text in differences(a, b)
    )
    refusals = ", ".join(
        f"{status} x {n}" for status, n in Counter(one.status for one in plain).items() if status != 200
    )
    return Trial(plain[-1], seen[-1], f"{fired()}, Envoy's own refusals: {refusals or 'none'}", wrong)


# --- websockets ------------------------------------------------------------------------------------------------------

FRAMES = (b"\x81\x85\x01\x02\x03\x04iggho", b"\x82\xfe\x10\x00\0\0\0\0" + bytes(4096), b"\x89\x80\0\0\0\0")
"""A text, 4 KiB of bytes and a ping, as a client frames them (RFC 6455)."""


def websocket(house: House, form: Form) -> Trial:
    """Where the operator lets them through: frame by frame, also while semmem is stopped."""
    plain = house.websocket(WEBSOCKETS, FRAMES, plain=True)
    fired = house.no_outcome()
    faulted = house.websocket(WEBSOCKETS, FRAMES)
    proof = fired()
    with stopped(house.sidecar.pid):
        meanwhile = house.websocket(WEBSOCKETS, FRAMES)
    if plain.status != 101 or plain.body != b"".join(FRAMES):
        raise NotProven(f"status {plain.status}, {len(plain.body)} bytes came back")
    house.recovered()
    return Trial(
        plain, faulted, f"101, {len(FRAMES)} frames there and back, {proof}", tuple(differences(plain, meanwhile))
    )


def websocket_refused(house: House, form: Form) -> Trial:
    """As shipped: an upgrade on a model's path is Envoy's to refuse, by GET and by POST."""
    upgrade = b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: eA==\r\n"
    fired = house.no_outcome()
    got = [house.websocket(form.path, FRAMES, plain=plain) for plain in (True, False)]
    posted = [house.ask(form, raw=upgrade, plain=plain) for plain in (True, False)]
    statuses = f"{got[0].status} and {posted[0].status}"
    return Trial(got[0], got[1], f"status {statuses}, {fired()}", tuple(differences(*posted)))
