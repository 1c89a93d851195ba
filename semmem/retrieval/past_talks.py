"""Past conversations for a question that asks for them: at most three, dated, in a line each.

They stand in the block beside memories, as notes that nobody keeps: what the user said in quotation marks, what was
answered after it. Conversations are compared with the question by their words (those that hold most of its telling
words win) and by its time, which orders them and hides none where the question names a matter too.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from semmem.memory import Hit, Memory, MemoryType, Role, Scope, Source, Vector
from semmem.ports.errors import JournalError
from semmem.ports.talks import Talk, TalkRecords, Utterance
from semmem.retrieval.query.looks_back import LooksBack
from semmem.retrieval.query.past_conversations import AskedBefore, asked_before, has_form
from semmem.retrieval.time_filter import CLOCK_SLACK_S
from semmem.text.quoting import quoted
from semmem.text.screening import readable
from semmem.text.terms import RELATED, terms
from semmem.text.times import Interval
from semmem.text.words import words

TALKS_MAX = 3
CANDIDATES_MAX = 12
READ_CHARS_MAX = 3000
"""Read of one conversation: with CANDIDATES_MAX of them some 10 ms of CPU, in slices."""
SHARE_MIN = 0.5
"""So much of the question's telling words, by their rarity among the candidates, a conversation must hold."""
SHARE_IN_TIME_MIN = 0.3
"""The same of one that is of the time asked for."""
RELATED_SHARE = 0.6
"""What a related word counts where the word itself is missing."""
NEAR_BEST = 0.7
"""Another one is shown that holds so much of what the best one holds."""
USER_CHARS_MAX, ANSWER_CHARS_MAX, TITLE_CHARS_MAX = 140, 300, 80
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_SENTENCES_MAX = 60


@dataclass(frozen=True, slots=True)
class _Read:
    """A candidate, with the terms of its title and of each message's sentences."""

    talk: Talk
    held: frozenset[str]
    sentences: tuple[tuple[Role, str, frozenset[str]], ...]


class PastTalks:
    """``timeout_s`` is what the records have for one question. ``learnt``: what questions ask for them, by vectors of
    the model that questions are embedded with; None: their form alone tells."""

    def __init__(self, records: TalkRecords, *, timeout_s: float, learnt: LooksBack | None = None) -> None:
        self._records = records
        self._timeout_s = timeout_s
        self._learnt = learnt

    def asked(self, question: str, vector: Vector | None, now: float) -> AskedBefore | None:
        """What the user's question asks for of former conversations; None: nothing. ``vector``: the question's, where
        it has one."""
        if self._learnt is None or vector is None:
            return asked_before(question, now)
        in_form = has_form(question)
        return asked_before(question, now, known=True) if self._learnt.asks(question, vector, in_form=in_form) else None

    async def notes(self, asked: AskedBefore, scope: Scope, *, apart_from: str | None) -> list[Hit]:
        """The conversations asked for, best first; none where the records do not answer in time. ``apart_from``: the
        session that asks."""
        try:
            async with asyncio.timeout(self._timeout_s):
                talks = await self._candidates(asked, scope)
        except (JournalError, TimeoutError):
            return []
        others = [talk for talk in talks if not apart_from or talk.session != apart_from]
        return [_hit(scope, read, asked, place) for place, read in enumerate(await _chosen(others, asked))]

    async def _candidates(self, asked: AskedBefore, scope: Scope) -> list[Talk]:
        """Raises JournalError."""
        found: dict[str, Talk] = {}
        if asked.during is not None:
            since, until = asked.during.start - CLOCK_SLACK_S, asked.during.end + CLOCK_SLACK_S
            for talk in await self._records.talks(scope, _asked_for(asked), since=since, until=until):
                found[talk.id] = talk
        if asked.terms or asked.is_latest:
            for talk in await self._records.talks(scope, _asked_for(asked), limit=CANDIDATES_MAX):
                found.setdefault(talk.id, talk)
        return list(found.values())


def _asked_for(asked: AskedBefore) -> list[str]:
    return list(dict.fromkeys([*asked.terms, *(other for term in asked.terms for other in RELATED.get(term, ()))]))


async def _chosen(talks: Sequence[Talk], asked: AskedBefore) -> list[_Read]:
    reads: list[_Read] = []
    for talk in talks:
        reads.append(_read(talk))
        await asyncio.sleep(0)  # others have their turn
    if not asked.terms:
        newest = sorted(reads, key=lambda read: -read.talk.at)
        return newest[: 1 if asked.is_latest else TALKS_MAX]
    worth = {read.talk.id: share for read, share in zip(reads, _shares(reads, asked.terms), strict=True)}
    fitting = [read for read in reads if worth[read.talk.id] >= _least(read.talk, asked)]
    fitting.sort(key=lambda read: (not _is_of(read.talk, asked.during), -worth[read.talk.id], -read.talk.at))
    if not fitting:
        return []
    best = worth[fitting[0].talk.id]
    return [read for read in fitting if worth[read.talk.id] >= NEAR_BEST * best][:TALKS_MAX]


def _least(talk: Talk, asked: AskedBefore) -> float:
    return SHARE_IN_TIME_MIN if asked.during is not None and _is_of(talk, asked.during) else SHARE_MIN


def _is_of(talk: Talk, during: Interval | None) -> bool:
    return during is None or during.start - CLOCK_SLACK_S <= talk.at < during.end + CLOCK_SLACK_S


def _shares(reads: Sequence[_Read], asked: Sequence[str]) -> list[float]:
    """Of each conversation, how much of what is asked it holds; a rare word weighs more."""
    holders = Counter(term for read in reads for term in asked if _holds(read.held, term))
    weights = {term: math.log(1 + (len(reads) + 1) / (holders[term] + 0.5)) for term in asked}
    whole = sum(weights.values())
    return [sum(weights[term] * _holds(read.held, term) for term in asked) / whole for read in reads]


def _holds(held: frozenset[str], term: str) -> float:
    if term in held:
        return 1.0
    return RELATED_SHARE if not held.isdisjoint(RELATED.get(term, ())) else 0.0


def _read(talk: Talk) -> _Read:
    sentences: list[tuple[Role, str, frozenset[str]]] = []
    room = READ_CHARS_MAX
    for utterance in talk.said:
        for sentence in _sentences(utterance, room):
            sentences.append((utterance.role, sentence, _terms(sentence)))
            room -= len(sentence)
    held = _terms(talk.title).union(*(held for _, _, held in sentences))
    return _Read(talk, held, tuple(sentences))


def _sentences(utterance: Utterance, room: int) -> list[str]:
    parts = (part.strip() for part in _SENTENCE.split(utterance.text[: max(room, 0)], _SENTENCES_MAX))
    return [part for part in parts if part]


def _terms(text: str) -> frozenset[str]:
    return frozenset(terms(words(text)))


# --- what is shown of one --------------------------------------------------------------------------------------------


def _hit(scope: Scope, read: _Read, asked: AskedBefore, place: int) -> Hit:
    """A note like a memory's; ``place`` orders it behind those that are better."""
    talk = read.talk
    memory = Memory(
        id=talk.id,
        version=1,
        type=MemoryType.EPISODIC,
        content=_content(read, asked),
        user=scope.user,
        source=Source(role="assistant", session=talk.session, time=talk.at),
        created_at=talk.at,
        updated_at=talk.at,
    )
    return Hit(memory, cosine=0.0, score=1.0 - place / 10)


def _content(read: _Read, asked: AskedBefore) -> str:
    title = _shortened(read.talk.title, TITLE_CHARS_MAX)
    said = _best(read, Role.USER, asked, USER_CHARS_MAX)
    answered = _best(read, Role.ASSISTANT, asked, ANSWER_CHARS_MAX)
    parts = [f"Conversation {quoted(title)}"]
    if said and not said.startswith(title.removesuffix("…")):
        parts.append(f"the user said {quoted(said)}")
    if answered:
        parts.append(f"the answer was: {answered}")
    return "; ".join(parts)


def _best(read: _Read, role: Role, asked: AskedBefore, chars_max: int) -> str:
    """Its sentences that hold most of what is asked, each with the one behind it, in their order. Without a matter the
    first ones, or of the latest conversation the last ones."""
    own = [(at, text, held) for at, (who, text, held) in enumerate(read.sentences) if who is role]
    own = [one for one in own if _is_fit(one[1])]
    if not own:
        return ""
    worth = {at: sum(_holds(held, term) for term in asked.terms) for at, _, held in own}
    backwards = -1 if asked.is_latest else 1
    order = sorted(range(len(own)), key=lambda place: (-worth[own[place][0]], backwards * place))
    chosen: set[int] = set()
    room = chars_max
    for place in _with_next(order, len(own)):
        text = own[place][1]
        if place in chosen or (len(text) > room and chosen):
            continue
        chosen.add(place)
        room -= len(text) + 1
        if room <= 0:
            break
    return _shortened(" ".join(own[place][1] for place in sorted(chosen)), chars_max)


def _with_next(order: Iterable[int], count: int) -> Iterable[int]:
    for place in order:
        yield place
        if place + 1 < count:
            yield place + 1


def _is_fit(sentence: str) -> bool:
    """Whether it may stand in a prompt: an answer may hold orders that a page gave the model, or a secret."""
    return readable(_nobodys(sentence)) is None


def _nobodys(content: str) -> Memory:
    return Memory(id="", version=1, type=MemoryType.EPISODIC, content=content, user="")


def _shortened(text: str, chars_max: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars_max else f"{line[: chars_max - 1].rstrip()}…"
