"""``python -m tests.faults.crashes N [--seed S]``: kill semmem N times at random moments; nothing accepted is lost.

Each round several users talk through Envoy, and semmem is killed at a random moment between the first byte of a
request and the stored fact. Some rounds then tear the end off the journal's log, as a loss of power would; some run
with a journal that has no room. A turn is accepted when the journal's file has it after the kill. In the end every
accepted turn must have been learnt from exactly once.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo.processes import signals_raise
from tests.faults.client import Seen
from tests.faults.counts import proven
from tests.faults.forms import JSON, SSE
from tests.faults.front import SHIPPED_CLOSE_S
from tests.faults.house import House, house
from tests.faults.journal_files import NAME, AcceptedTurn, accepted_turns, copy_journal, survives_a_tear, synced_bytes
from tests.faults.loops import loop_thread
from tests.faults.upstream import Script, upstream

USERS = 4
TURNS = 3
SPAN_S = 1.8
"""The kill comes within this time of a round's first byte: about what it takes from there to the stored facts. On a
slow machine it is what the first round, which is killed at rest, took to its last answer and a second."""
SETTLED_S = 3.0
"""An answer that ended so long before the kill was not in flight any more, though a disk may take a second to sync."""
TEARS = 3
TORN_EVERY, FULL_EVERY, RESTED_EVERY = 5, 7, 6
"""Rounds that are torn, that have no room, and, with the first, that are killed when every answer is settled."""
LEARNT_WITHIN_S = 4_000.0
"""A batch that kills cut off, each of which counts as a try, and that fails once where the journal has no room, is
tried again after up to an hour."""
VERSIONS_MAX = 2
"""What was learnt at once, and the same confirmed by its batch. Any other version was learnt twice."""

CONFIG: dict[str, Any] = {
    "memory": {
        "extraction_batch_size": 2,
        "extraction": {
            "session_idle_s": 0.3,
            "answer_wait_s": 1.0,
            "poll_interval_s": 0.05,
            "lease_s": 3.0,
            "attempts_max": 100,  # a batch may be hit by many kills; giving up is not what is tested here
        },
    },
}


@dataclass(slots=True)
class Said:
    """One turn as its client saw it. ``ended_at`` 0: its answer never came to its end before the kill."""

    user: str
    text: str
    seen: Seen | None = None
    ended_at: float = 0.0


@dataclass
class Tally:
    """What was seen in all rounds. ``accepted`` by turn id; ``wrong`` is whatever should not have been."""

    accepted: dict[str, AcceptedTurn] = field(default_factory=dict)
    torn_off: set[str] = field(default_factory=set)
    states: Counter[str] = field(default_factory=Counter)
    """Where the turns of a round stood when it was killed."""
    answers_missing: int = 0
    kills: int = 0
    tears: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"crashes: {self.kills} kills, {len(self.accepted)} accepted, "
            f"{len(self.lost)} lost, {len(self.doubled)} doubled"
        )


def word(chance: random.Random) -> str:
    return "".join(chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(4))


class Rounds:
    """Talk, kill, look, start again."""

    def __init__(self, on: House, chance: random.Random, scratch: Path) -> None:
        self._house = on
        self._chance = chance
        self._scratch = scratch
        self._span_s = 0.0
        self.tally = Tally()

    def play(self, number: int) -> None:
        full = number % FULL_EVERY == 0
        self._house.sidecar.start(None, *(("--journal-bytes-max", "1") if full else ()))
        self._house.front.wait_healthy()
        said, killed_at = self._talk_and_kill(rested=number % RESTED_EVERY == 1)
        data = self._house.sidecar.data_dir
        self._try_tears(data, number)
        torn = number % TORN_EVERY == 0 and self._tear(data)
        found = accepted_turns(copy_journal(data, self._scratch / f"{number}-found"))
        self._account(found, said, killed_at, torn=torn, full=full)
        shutil.rmtree(self._scratch / f"{number}-found")

    # --- talking -----------------------------------------------------------------------------------------------------

    def _talk_and_kill(self, *, rested: bool) -> tuple[list[Said], float]:
        said: list[Said] = []
        plans = [self._plan(said) for _ in range(USERS)]
        talking = [threading.Thread(target=plan) for plan in plans]
        started_at = time.monotonic()
        for thread in talking:
            thread.start()
        if rested:
            for thread in talking:
                thread.join(60)
            self._span_s = self._span_s or max(SPAN_S, time.monotonic() - started_at + 1.0)
            time.sleep(SETTLED_S + 0.1)
        else:
            time.sleep(self._chance.uniform(0.0, self._span_s))
        killed_at = time.monotonic()
        self._house.sidecar.kill()
        self.tally.kills += 1
        for thread in talking:
            thread.join(60)
        return said, killed_at

    def _plan(self, said: list[Said]) -> Callable[[], None]:
        """One user's conversation; chance is drawn here, in one thread, so that a seed gives the same rounds."""
        user = f"{word(self._chance)}-{self._chance.randrange(10**9)}"
        turns = [
            (f"I like {word(self._chance)} {word(self._chance)}.", self._chance.random() < 0.5, self._script())
            for _ in range(self._chance.randint(1, TURNS))
        ]

        def talk() -> None:
            messages: list[dict[str, str]] = []
            for text, sse, script in turns:
                one = Said(user, text)
                said.append(one)
                messages.append({"role": "user", "content": text})
                body = JSON.question(text, messages=list(messages))
                one.seen = self._house.ask(
                    SSE if sse else JSON, body=body, user=user, script=script, headers={"x-session-id": user}
                )
                one.ended_at = time.monotonic()
                messages.append({"role": "assistant", "content": "Noted."})

        return talk

    def _script(self) -> Script:
        return Script(tokens=self._chance.randint(2, 20), token_ms=10)

    # --- looking -----------------------------------------------------------------------------------------------------

    def _try_tears(self, data: Path, number: int) -> None:
        """On copies: wherever the log is torn, what was committed before the tear is there."""
        wal = data / f"{NAME}-wal"
        size = wal.stat().st_size if wal.exists() else 0
        synced = min(size, synced_bytes(data))
        for tear in range(TEARS):
            scratch = self._scratch / f"{number}-tear-{tear}"
            try:
                survives_a_tear(data, scratch, self._chance.randint(synced, size))
                self.tally.tears += 1
            except Exception as error:  # counted, so that the other rounds are still seen
                self.tally.wrong.append(f"round {number}: {type(error).__name__}: {error}")
            shutil.rmtree(scratch, ignore_errors=True)

    def _tear(self, data: Path) -> bool:
        """In earnest: the log loses its end, as after a loss of power, and semmem goes on from there."""
        wal = data / f"{NAME}-wal"
        if not wal.exists() or not wal.stat().st_size:
            return False
        size = wal.stat().st_size
        begin = min(size, max(size // 2, synced_bytes(data)))
        with wal.open("r+b") as file:
            file.truncate(self._chance.randint(begin, size))
        return True

    def _account(
        self, found: dict[str, AcceptedTurn], said: list[Said], killed_at: float, *, torn: bool, full: bool
    ) -> None:
        tally = self.tally
        gone = tally.accepted.keys() - found.keys()
        if torn:
            tally.torn_off |= gone
        else:
            tally.wrong += [f"{tally.accepted[turn].text!r} vanished from the journal" for turn in gone]
        tally.accepted = found
        by_text = {(turn.user, turn.text): turn for turn in found.values()}
        for one in said:
            tally.wrong += self._answer_is_wrong(one)
            turn = by_text.get((one.user, one.text))
            tally.states["not accepted" if turn is None else turn.state] += 1
            settled = 0 < one.ended_at < killed_at - SETTLED_S and one.seen is not None and one.seen.outcome is not None
            if turn is None and settled and not torn and not full:
                tally.lost.append(f"{one.text!r}: answered long before the kill, and not accepted")
            if turn is not None and turn.answer is None:
                tally.answers_missing += 1
                if settled and not torn and not full:
                    ago = killed_at - one.ended_at
                    tally.wrong.append(f"{one.text!r}: its answer is missing ({turn.state}), {ago:.1f} s after its end")

    def _answer_is_wrong(self, one: Said) -> list[str]:
        seen = one.seen
        if seen is None or seen.exchange is None or seen.status != 200 or seen.body != seen.exchange.answer:
            return [f"{one.text!r}: its client did not get the model's answer"]
        return []

    # --- in the end --------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Start once more, let everything be learnt, and count."""
        self._house.sidecar.start()
        semmem = self._house.sidecar.semmem
        accepted = list(self.tally.accepted.values())
        users = sorted({turn.user for turn in accepted})
        try:
            proven(lambda: not any(map(semmem.waiting, users)), "every turn is done", LEARNT_WITHIN_S)
        except AssertionError as error:
            self.tally.wrong.append(str(error))
        for user in users:
            memories = semmem.memories(user)
            for turn in (turn for turn in accepted if turn.user == user):
                fact = turn.text.removeprefix("I like ").rstrip(".")
                holding = [memory for memory in memories if fact in memory["content"]]
                if not holding:
                    self.tally.lost.append(turn.text)
                if len(holding) > 1 or any(memory["version"] > VERSIONS_MAX for memory in holding):
                    self.tally.doubled.append(turn.text)


def crash(kills: int, seed: int, folder: Path, say: Callable[[str], None]) -> Tally:
    """``kills`` rounds in ``folder``; what was seen."""
    with (
        loop_thread() as loop,
        upstream(loop) as model,
        house(loop, model, folder / "house", CONFIG, close_s=SHIPPED_CLOSE_S) as on,
    ):
        on.sidecar.end()
        rounds = Rounds(on, random.Random(seed), folder / "scratch")
        for number in range(1, kills + 1):
            rounds.play(number)
            if number % 10 == 0:
                say(f"{number} kills, {len(rounds.tally.accepted)} turns accepted so far")
        rounds.settle()
        return rounds.tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.crashes")
    parser.add_argument("kills", type=int, nargs="?", default=50)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", type=Path, default=None, help="an empty folder for logs and data")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    with signals_raise(), tempfile.TemporaryDirectory(prefix="semmem-crashes-") as temporary:
        tally = crash(options.kills, seed, options.keep or Path(temporary), lambda text: print(text, flush=True))
    for text in (
        *tally.wrong,
        *(f"lost: {text}" for text in tally.lost),
        *(f"doubled: {text}" for text in tally.doubled),
    ):
        print(text)
    print(f"turns when semmem was killed: {', '.join(f'{n} {state}' for state, n in sorted(tally.states.items()))}")
    print(
        f"{tally.answers_missing} answers missing, each in flight when semmem was killed; "
        f"{tally.tears} torn logs read back; {len(tally.torn_off)} turns torn off"
    )
    print(tally)
    return 1 if tally.lost or tally.doubled or tally.wrong or not tally.accepted else 0


if __name__ == "__main__":
    sys.exit(main())
