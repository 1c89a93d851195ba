"""What each user told and had erased, and when; and what that makes of a canary that is seen somewhere.

A fact is in one of three relations to an erasure of its scope:

==========  ==================================================================  ====================================
before      semmem had it (the model had its prompt, or the API had answered)   it must not be seen by anything that
            before the erasure was asked for                                    began after the erasure's answer
after       it was told after the erasure's answer                              it must stay
alongside   it began before the answer and semmem had it after the asking       both orders are right: either
==========  ==================================================================  ====================================
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.canary.words import Words

NEVER = math.inf
NOTE = re.compile(
    r'(?:- |"content": ?")Conversation (?:\\[^n]|[^"\\\n])*|the answer was: [^\\\n]*'
    r'|"type": ?"gist",[^\n]*?"content": ?"[^"]*"'
)
"""What was answered, in a line about a former conversation or in a gist, which may share a line with what the user said
in the same turn: in a block, a preview or a copy, as it stands in JSON."""
AROUND_CHARS = 300
"""Shown of a text on either side of what returned in it: of a memory, enough to see which it is."""
SETTLED_S = 1.0
"""A turn that was answered so long before a kill was not on its way to the journal any more."""


@dataclass(slots=True)
class Fact:
    """One canary. Times are of ``time.monotonic``, NEVER until it happens.

    ``settled``: semmem had it. ``expected``: semmem took it, so that it may not be missing at the end. ``gone``: erased
    by this kind of erasure, answered at ``erased_at``; ``free``: alongside an erasure, so that it may be there or not.
    ``question`` is what it answers; ``repeated``: when its client last sent it again, in the history of a conversation.
    ``summed_up``: a summary says it as well, so that deleting one memory need not take it.
    """

    user: int
    number: int
    project: str
    session: str
    way: str
    question: str
    began: float
    settled: float = NEVER
    ended: float = NEVER
    expected: bool = False
    free: bool = False
    seen: bool = False
    summed_up: bool = False
    gone: str = ""
    erased_at: float = NEVER
    repeated: float = -NEVER

    @property
    def is_repeated(self) -> bool:
        """Whether its client has sent it again since it was erased."""
        return self.repeated > self.erased_at

    def __str__(self) -> str:
        return (
            f"fact {self.number} of user {self.user}, told by {self.way}{f' in {self.project}' if self.project else ''}"
        )


@dataclass(slots=True)
class Findings:
    """One line for each: leaks by viewer and canary, returns and losses by canary. ``sightings`` counts all of them."""

    leaks: dict[tuple[int, int, int], str] = field(default_factory=dict)
    returns: dict[tuple[int, int], str] = field(default_factory=dict)
    lost: dict[tuple[int, int], str] = field(default_factory=dict)
    sightings: int = 0


CONVERSATION = "conversation"
ONE_MEMORY = "DELETE of one memory"
ONE_PROJECT = "DELETE of the project"
ONE_SESSION = "DELETE of the session"
NOBODY = -1
"""The viewer of a log or a metric, where no user's words belong."""


class Ledger:
    """Facts of ``users`` users. Safe to use from the driver's thread and the model's."""

    def __init__(self, words: Words, users: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.words = words
        self.findings = Findings()
        self._facts: list[list[Fact]] = [[] for _ in range(users)]
        self._clock = clock
        self._lock = threading.Lock()

    # --- what is told and erased -------------------------------------------------------------------------------------

    def tell(self, user: int, *, project: str, way: str, question: str, session: str = "") -> Fact:
        """A new fact, which begins now."""
        with self._lock:
            facts = self._facts[user]
            facts.append(Fact(user, len(facts) + 1, project, session, way, question, began=self._clock()))
            return facts[-1]

    def answered(self, fact: Fact, *, expected: bool) -> None:
        """The request that told a fact has its answer now; without ``expected`` semmem may not have had it."""
        with self._lock:
            fact.ended = self._clock()
            fact.expected = expected
            if not expected:
                fact.free = True

    def created(self, fact: Fact, *, expected: bool) -> None:
        """As ``answered``, for a fact that is stored before the answer comes."""
        fact.settled = min(fact.settled, self._clock())
        self.answered(fact, expected=expected)

    def sum_up(self, text: str) -> None:
        """A summary is made of these words."""
        for user, number in self.words.found(text):
            if fact := self.fact(user, number):
                fact.summed_up = True

    def repeats(self, user: int, text: str) -> None:
        """A client's own words, which begin to be sent now."""
        now = self._clock()
        with self._lock:
            for owner, number in self.words.found(text):
                if owner == user and 0 < number <= len(self._facts[user]):
                    self._facts[user][number - 1].repeated = now

    def word(self, fact: Fact) -> str:
        return self.words.word(fact.user, fact.number)

    def fact(self, user: int, number: int) -> Fact | None:
        """The fact of a canary; None for a user's name, and for a word that was never given away."""
        return self._facts[user][number - 1] if number and self._issued(user, number) else None

    def facts(self, user: int) -> list[Fact]:
        return list(self._facts[user])

    def all_facts(self) -> Iterable[Fact]:
        return (fact for facts in self._facts for fact in facts)

    def erased(self, user: int, sent: float, kind: str, *, project: str = "", session: str = "") -> None:
        """A DELETE of the user's memories (of one project or session, if given), asked for at ``sent``, was answered
        now."""
        now = self._clock()
        with self._lock:
            for fact in self._facts[user]:
                if project in ("", fact.project) and session in ("", fact.session):
                    _erase(fact, sent, now, kind)

    def erased_memory(self, user: int, sent: float, numbers: set[int], listed: set[int]) -> None:
        """A DELETE of the one memory that held these canaries of its user.

        What was told and not among the ``listed`` before may have become part of that memory meanwhile.
        """
        now = self._clock()
        with self._lock:
            for fact in self._facts[user]:
                if fact.number in numbers and not fact.summed_up:
                    _erase(fact, sent, now, ONE_MEMORY)
                elif fact.number in numbers or (fact.number not in listed and fact.began < now):
                    fact.free = True

    def killed(self) -> None:
        """semmem was killed now: turns on their way to the journal may be lost, as after a loss of power."""
        since = self._clock() - SETTLED_S
        with self._lock:
            for fact in self.all_facts():
                if fact.way == CONVERSATION and fact.ended > since:
                    fact.free = True

    # --- what is seen ------------------------------------------------------------------------------------------------

    def saw(self, viewer: int, text: str, *, began: float, where: str, own: str | None = None) -> set[int]:
        """Judge a text that a user was given, or a model for a user, by something that began at ``began``.

        ``own``: the part of the text that is memory, where the rest are the client's own words (another user's
        canary is wrong anywhere). The result: numbers of the viewer's canaries in what is memory.

        A note of a conversation, and the gist of an answer, may have what its client sent again after the erasure: the
        model may have answered with that, and such an answer is a new one (docs/conversations.md, docs/passages.md).
        """
        for user, number in self.words.found(text):
            if user != viewer and self._issued(user, number):
                self._leaked(viewer, user, number, where)
        numbers = {number for user, number in self.words.found(text if own is None else own) if user == viewer}
        beside = {number for _, number in self.words.found(NOTE.sub("", text if own is None else own))}
        known = {number for number in numbers if number and self._issued(viewer, number)}
        for number in known:
            fact = self._facts[viewer][number - 1]
            fact.seen = True
            if began > fact.erased_at and (number in beside or not fact.is_repeated):
                self.returned(fact, where, around=_around(text, self.word(fact)))
        return known

    def returned(self, fact: Fact, where: str, *, around: str = "") -> None:
        after_s, told_s = self._clock() - fact.erased_at, fact.erased_at - fact.began
        line = f"{fact} {told_s:.1f} s before; erased by {fact.gone}; seen {after_s:.1f} s after, in {where}"
        if around:
            line += f": {around}"
        with self._lock:
            self.findings.sightings += 1
            self.findings.returns.setdefault((fact.user, fact.number), line)

    def missing(self, user: int, found: set[int]) -> None:
        """Judge what is not among all that is found of a user at the end."""
        for fact in self._facts[user]:
            if fact.expected and not fact.free and not fact.gone and fact.number not in found:
                line = f"{fact}; {'was there and vanished' if fact.seen else 'never seen as a memory'}"
                self.findings.lost.setdefault((fact.user, fact.number), line)

    def _leaked(self, viewer: int, user: int, number: int, where: str) -> None:
        what = f"fact {number}" if number else "the name"
        whom = f"of user {viewer}" if viewer != NOBODY else "of nobody's"
        with self._lock:
            self.findings.sightings += 1
            self.findings.leaks.setdefault((viewer, user, number), f"{what} of user {user}, seen in {where} {whom}")

    def _issued(self, user: int, number: int) -> bool:
        return user < len(self._facts) and number <= len(self._facts[user])


def _around(text: str, word: str) -> str:
    """What of a text stands at its first mention of the word, in one line."""
    at = max(0, text.lower().find(word.lower()))
    return " ".join(text[max(0, at - AROUND_CHARS) : at + AROUND_CHARS].split())


def _erase(fact: Fact, sent: float, answered: float, kind: str) -> None:
    if fact.gone:
        return
    if fact.settled < sent:
        fact.gone, fact.erased_at = kind, answered
    elif fact.began < answered:
        fact.free = True
