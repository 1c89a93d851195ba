"""What is made of what was told, what semmem has in the end, and when replicas were killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.canary.ledger import SETTLED_S, Fact
from tests.fleet.journals import Turn

VERSIONS_MAX = 2
"""What was learnt at once, and the same confirmed by its batch. Any other version was learnt twice."""

NOTICED_S = 1.0
"""So long after a kill a stream may still be opened to the replica that is gone."""


ASKED_AGAIN_S = 1.0
"""So long after its server is back the journal may not answer yet."""


@dataclass(frozen=True, slots=True)
class Away:
    """Moments around the kills of replicas, and from when to when the journal's server was away; time.monotonic."""

    kills: Sequence[float] = ()
    outages: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True, order=True)
class Holding:
    """A memory that holds a fact. ``superseded``: by what, when something told later was taken to contradict it."""

    id: str
    version: int
    superseded: str = ""


Held = Mapping[tuple[int, int], Sequence[Holding]]
"""By user and number of the fact."""


@dataclass(slots=True)
class Sent:
    """One turn of a conversation as its client saw it. ``took``: semmem said that it keeps it. Times are monotonic."""

    text: str
    began: float
    ended: float
    took: bool
    fact: Fact | None = None


@dataclass(slots=True)
class Spoken:
    """One conversation: ``whole`` unless its user erased something, so that the journal may not have all of it."""

    user: str
    session: str
    turns: list[Sent] = field(default_factory=list)
    whole: bool = True


@dataclass(slots=True)
class Verdict:
    """One line for each thing that is wrong, and what is right and counted."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    turns: int = 0
    accepted: int = 0
    facts: int = 0
    superseded: list[str] = field(default_factory=list)
    waited: int = 0
    """Turns that are gone, since they waited for the journal's server in a replica that was killed meanwhile, or since
    it was away when the next request brought them again, and that was the last one."""
    answers_in_flight: int = 0
    answers_unwritten: int = 0
    """Of turns whose answer had ended less than SETTLED_S before the kill, or while the journal was away: the replica
    had it, and not yet the journal."""
    answers_unnoticed: int = 0
    """Of turns that began within NOTICED_S after a kill."""
    answers_unseen: int = 0
    """Of turns that failed open: nobody was to observe them."""


def near(one: Sent, away: Away) -> bool:
    """Whether a replica was killed while something of this turn may have been on its way: to the journal it is until
    the journal's server is there."""
    return any(one.began <= kill <= _written(one, away) for kill in away.kills)


def _written(one: Sent, away: Away) -> float:
    met = [back + ASKED_AGAIN_S for gone, back in away.outages if one.began <= back and gone <= one.ended + SETTLED_S]
    return max([one.ended, *met]) + SETTLED_S


def _reads(one: Sent, away: Away) -> bool:
    """Whether the journal could be asked what of the request's history it knows."""
    return all(one.ended < gone or one.began > back + ASKED_AGAIN_S for gone, back in away.outages)


def accepted(spoken: Spoken, away: Away) -> list[bool]:
    """Which turns semmem must have: those that it took, and those before them, which a later request brought."""
    found, since = [], False
    for one in reversed(spoken.turns):
        kept = one.took and not near(one, away)
        found.append(since or kept)
        since = since or (kept and _reads(one, away))
    return found[::-1]


def expect(conversations: Iterable[Spoken], away: Away) -> None:
    """Facts of accepted turns may not be missing; the others may be there or not."""
    for spoken in conversations:
        for one, must in zip(spoken.turns, accepted(spoken, away), strict=True):
            if one.fact is not None:
                one.fact.expected = must
                one.fact.free = one.fact.free or not must


def judge_facts(verdict: Verdict, facts: Iterable[Fact], held: Held) -> None:
    """Each expected fact is in exactly one memory, once."""
    for fact in facts:
        memories = held.get((fact.user, fact.number), ())
        active = [memory for memory in memories if not memory.superseded]
        verdict.superseded += [f"{fact}: by {memory.superseded}" for memory in memories if memory.superseded]
        must = fact.expected and not fact.free and not fact.gone
        verdict.facts += must
        if must and not memories:
            verdict.lost.append(f"{fact}: {'was there and vanished' if fact.seen else 'never seen as a memory'}")
        if len(active) > 1:
            verdict.doubled.append(f"{fact}: in {len(active)} memories")
        elif active and active[0].version > VERSIONS_MAX:
            verdict.doubled.append(f"{fact}: version {active[0].version}")


def judge_turns(
    verdict: Verdict,
    conversations: Iterable[Spoken],
    journal: Iterable[Turn],
    away: Away,
    when: Callable[[float], str] = str,
) -> None:
    """Each accepted turn is in the journal once, with its answer unless that was under way at a kill.

    ``when`` puts a moment into words.
    """
    rows: dict[tuple[str, str, str], list[Turn]] = {}
    for turn in journal:
        rows.setdefault((turn.user, turn.session, turn.text), []).append(turn)
    for spoken in conversations:
        verdict.turns += len(spoken.turns)
        if spoken.whole:
            _judge_spoken(verdict, spoken, rows, away, when)


def _judge_spoken(
    verdict: Verdict,
    spoken: Spoken,
    rows: Mapping[tuple[str, str, str], Sequence[Turn]],
    away: Away,
    when: Callable[[float], str],
) -> None:
    times = Counter(one.text for one in spoken.turns)
    for number, (one, must) in enumerate(zip(spoken.turns, accepted(spoken, away), strict=True)):
        found = rows.get((spoken.user, spoken.session, one.text), ())
        where = f"turn {number} of {spoken.session}, {when(one.began)}"
        verdict.accepted += must
        verdict.waited += one.took and not must and not found
        if must and len(found) < times[one.text]:
            verdict.lost.append(f"{where}: {len(found)} times in the journal, not {times[one.text]}")
        if len(found) > times[one.text]:
            verdict.doubled.append(f"{where}: {len(found)} times in the journal, not {times[one.text]}")
        if found and all(turn.answer is None for turn in found):
            _without_answer(verdict, one, where, away)


def _without_answer(verdict: Verdict, one: Sent, where: str, away: Away) -> None:
    if any(one.began <= kill <= one.ended for kill in away.kills):
        verdict.answers_in_flight += 1
    elif near(one, away):
        verdict.answers_unwritten += 1
    elif any(kill <= one.began <= kill + NOTICED_S for kill in away.kills):
        verdict.answers_unnoticed += 1
    elif not one.took:
        verdict.answers_unseen += 1
    else:
        verdict.lost.append(f"{where}: its answer is missing, though it was not in flight")
