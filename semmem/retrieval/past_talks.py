"""Former conversations for a question that asks for them: at most three, dated, in a few lines each.

They stand in the block beside memories: what the user said in quotation marks, what was answered after it. A
conversation is found by the question's telling words and by how near anything that the user said in it is to the
question; its time orders them, and hides none where the question names a matter too."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Protocol

import numpy as np

from semmem.memory import Hit, Memory, MemoryType, Role, Scope, Source, Vector
from semmem.ports.errors import JournalError
from semmem.ports.talks import Placed, Talk
from semmem.retrieval.begun import within
from semmem.retrieval.query.past_conversations import AskedBefore, LooksBack, asked_before, has_form
from semmem.retrieval.time_filter import CLOCK_SLACK_S
from semmem.text.quoting import quoted
from semmem.text.screening import readable
from semmem.text.terms import RELATED, terms
from semmem.text.times import Interval
from semmem.text.words import words

TALKS_MAX = 3
CANDIDATES_MAX = 8
"""By words, by nearness, and by time."""
WORDS_MAX = 10
"""Of the question, looked for in the records."""
MESSAGES_MAX, MESSAGE_CHARS_MAX, READ_CHARS_MAX = 40, 2000, 4000
"""Read of one conversation; of CANDIDATES_MAX some 10 ms of CPU, in slices."""
SEARCHED_MAX, VECTORS_MAX = 500, 2000
"""The newest messages whose words, and whose vectors, are compared: with the longest that are kept some 40 ms of the
journal's one reader, for which others' requests wait meanwhile."""
WORDS_WEIGHT = 0.5
"""Of the share of telling words that a conversation holds, beside the cosine."""
LEAST = 0.4
"""Of both together; of numbers from 0.3 to 0.6 the one in the middle (docs/conversations.md)."""
SHARE_MIN = 0.5
"""The least share where there is no vector."""
TIME_BONUS = 0.15
"""Of a conversation of the time asked for."""
NEAR_BEST = 0.15
"""One that is further behind the best one is not shown beside it."""
RELATED_SHARE = 0.6
"""What a related word counts where the word itself is missing."""
TITLE_CHARS_MAX, USER_CHARS_MAX, LINE_CHARS_MAX = 80, 140, 420
ANSWER_CHARS_MAX = {1: 1200, 2: 800, 3: 500}
"""Of what was answered in one conversation, by how many are shown."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_SENTENCES_MAX = 60


Nearest = dict[str, tuple[float, str]]
"""By conversation the cosine of what is nearest in it, and its turn."""


class TalkRecords(Protocol):
    """What was recorded of conversations. Raises JournalError."""

    async def talks_of_time(self, scope: Scope, *, since: float | None, until: float | None, limit: int) -> list[str]:
        """The ids of conversations of the scope in which anything was said in this time, newest first."""

    async def talks_holding(
        self, scope: Scope, words: Sequence[str], *, messages_max: int, chars_max: int, limit: int
    ) -> list[str]:
        """The ids of conversations of the scope whose newest messages hold, in their first characters, any of these
        words, or a word that one of them is a part of; those that hold most of them first."""

    async def talk_vectors(self, scope: Scope, model: str, *, limit: int) -> list[Placed]:
        """Of the newest words of the user's, those that have a vector of the model."""

    async def read_talks(
        self, scope: Scope, wanted: Mapping[str, str], *, messages_max: int, chars_max: int
    ) -> list[Talk]:
        """These conversations, by id, each from the turn that is named on, if one is, and then from its beginning:
        ``messages_max`` messages of users and models, ``chars_max`` characters of each."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A candidate, with the terms of its title and of each message's sentences. ``cosine``: of what is nearest."""

    talk: Talk
    held: frozenset[str]
    sentences: tuple[tuple[Role, str, frozenset[str]], ...]
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class PastTalks:
    """``timeout_s`` is what the records have for one question. ``model``: the signature of what questions are embedded
    with. ``learnt``: what questions ask for conversations, by vectors of that model; None: their form alone tells."""

    records: TalkRecords
    _: KW_ONLY
    timeout_s: float
    model: str = ""
    learnt: LooksBack | None = None

    def asked(self, question: str, vector: Vector | None, now: float) -> AskedBefore | None:
        """What the user's question asks for of former conversations; None: nothing. ``vector``: the question's, where
        it has one."""
        if self.learnt is None or vector is None:
            return asked_before(question, now)
        in_form = has_form(question)
        return asked_before(question, now, known=True) if self.learnt.asks(question, vector, in_form=in_form) else None

    async def notes(
        self, asked: AskedBefore, scope: Scope, *, apart_from: str | None, vector: Vector | None, until: float | None
    ) -> list[Hit]:
        """Lines about the conversations asked for, best first; none where the records do not answer in time.
        ``apart_from``: the session that asks. ``vector``: the question's. ``until``: the end of the request phase, in
        the event loop's time."""
        try:
            async with within(self.timeout_s, until):
                placed: Sequence[Placed] = ()
                if vector is not None and asked.terms and self.model:
                    placed = await self.records.talk_vectors(scope, self.model, limit=VECTORS_MAX)
                near = {} if vector is None else _nearest(placed, vector)
                wanted = await self._wanted(asked, scope, near)
                talks = await self.records.read_talks(
                    scope, wanted, messages_max=MESSAGES_MAX, chars_max=MESSAGE_CHARS_MAX
                )
        except (JournalError, TimeoutError):
            return []
        others = [talk for talk in talks if not apart_from or talk.session != apart_from]
        reads = []
        for talk in others:
            reads.append(_read(talk, near[talk.id][0] if talk.id in near else None))
            await asyncio.sleep(0)  # others have their turn
        chosen = _chosen(reads, asked)
        return [hit for read in chosen for hit in _hits(scope, read, asked, ANSWER_CHARS_MAX[len(chosen)])]

    async def _wanted(self, asked: AskedBefore, scope: Scope, near: Nearest) -> dict[str, str]:
        """Candidates, each with the turn in it that is nearest. Raises JournalError."""
        found: list[str] = []
        if asked.terms:
            found += await self.records.talks_holding(
                scope,
                # what stands in every word of this stem: "stori" is that of "story"
                [term[:-1] if len(term) > 3 and term.endswith("i") else term for term in asked.terms[:WORDS_MAX]],
                messages_max=SEARCHED_MAX,
                chars_max=MESSAGE_CHARS_MAX,
                limit=CANDIDATES_MAX,
            )
            found += sorted(near, key=lambda talk: -near[talk][0])[:CANDIDATES_MAX]
        if asked.during is not None or asked.is_latest:
            since = until = None
            if asked.during is not None:  # the user's days are not UTC's
                since, until = asked.during.start - CLOCK_SLACK_S, asked.during.end + CLOCK_SLACK_S
            found += await self.records.talks_of_time(scope, since=since, until=until, limit=CANDIDATES_MAX)
        return {talk: near[talk][1] if talk in near else "" for talk in dict.fromkeys(found)}


def _nearest(placed: Sequence[Placed], vector: Vector) -> Nearest:
    """How near each conversation is."""
    near: Nearest = {}
    fitting = [each for each in placed if len(each.vector) == 2 * vector.size]
    if not fitting:
        return near
    rows = np.frombuffer(b"".join(each.vector for each in fitting), dtype=np.float16).reshape(len(fitting), -1)
    for each, cosine in zip(fitting, (rows.astype(np.float32) @ vector).tolist(), strict=True):
        if each.talk not in near or cosine > near[each.talk][0]:
            near[each.talk] = cosine, each.turn
    return near


def _chosen(reads: Sequence[_Read], asked: AskedBefore) -> list[_Read]:
    if not asked.terms:
        of_time = sorted((read for read in reads if _is_of(read.talk, asked.during)), key=lambda read: -read.talk.at)
        return of_time[: 1 if asked.is_latest else TALKS_MAX]
    worth = {
        read.talk.id: _worth(read, share, asked) for read, share in zip(reads, _shares(reads, asked.terms), strict=True)
    }
    fitting = [read for read in reads if worth[read.talk.id] >= LEAST]
    fitting.sort(key=lambda read: (-worth[read.talk.id], -read.talk.at))
    best = max(worth.values(), default=0.0)
    return [read for read in fitting if worth[read.talk.id] >= best - NEAR_BEST][:TALKS_MAX]


def _worth(read: _Read, share: float, asked: AskedBefore) -> float:
    bonus = TIME_BONUS if asked.during is not None and _is_of(read.talk, asked.during) else 0.0
    if read.cosine is None:
        return LEAST * share / SHARE_MIN + bonus
    return read.cosine + WORDS_WEIGHT * share + bonus


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


def _read(talk: Talk, cosine: float | None) -> _Read:
    sentences: list[tuple[Role, str, frozenset[str]]] = []
    room = READ_CHARS_MAX
    for utterance in talk.said:
        parts = (part.strip() for part in _SENTENCE.split(utterance.text[: max(room, 0)], _SENTENCES_MAX))
        for sentence in filter(None, parts):
            sentences.append((utterance.role, sentence, _terms(sentence)))
            room -= len(sentence)
    held = _terms(talk.title).union(*(held for _, _, held in sentences))
    return _Read(talk, held, tuple(sentences), cosine)


def _terms(text: str) -> frozenset[str]:
    return frozenset(terms(words(text)))


# --- what is shown of one --------------------------------------------------------------------------------------------


def _hits(scope: Scope, read: _Read, asked: AskedBefore, answer_chars_max: int) -> list[Hit]:
    """Its lines, like memories."""
    talk = read.talk
    source = Source(role="assistant", session=talk.session, time=talk.at)
    note = Memory(
        talk.id, 1, MemoryType.EPISODIC, "", scope.user, source=source, created_at=talk.at, updated_at=talk.at
    )
    lines = _lines(read, asked, answer_chars_max)
    return [Hit(replace(note, content=line), cosine=read.cosine or 0.0, score=1.0) for line in lines]


def _lines(read: _Read, asked: AskedBefore, answer_chars_max: int) -> list[str]:
    title = _shortened(read.talk.title, TITLE_CHARS_MAX)
    said = " ".join(_best(read, Role.USER, asked, USER_CHARS_MAX))
    answers = _filled(_best(read, Role.ASSISTANT, asked, answer_chars_max))
    first = [f"Conversation {quoted(title)}"]
    if said and not said.startswith(title.removesuffix("…")):
        first.append(f"the user said {quoted(said)}")
    if answers:
        first.append(f"the answer was: {answers[0]}")
    return ["; ".join(first), *(f"Conversation {quoted(title)}; further answered: {more}" for more in answers[1:])]


def _filled(sentences: Sequence[str]) -> list[str]:
    """Sentences as lines of LINE_CHARS_MAX characters."""
    lines: list[str] = []
    for sentence in sentences:
        if lines and len(lines[-1]) + len(sentence) < LINE_CHARS_MAX:
            lines[-1] += f" {sentence}"
        else:
            lines.append(sentence)
    return lines


def _best(read: _Read, role: Role, asked: AskedBefore, chars_max: int) -> list[str]:
    """Its sentences that hold most of what is asked, each with those around it, in their order. Without a matter the
    first ones, or of the latest conversation the last ones."""
    own = [(text, held) for who, text, held in read.sentences if who is role and _is_fit(text)]
    worth = [sum(_holds(held, term) for term in asked.terms) for _, held in own]
    backwards = -1 if asked.is_latest else 1
    order = sorted(range(len(own)), key=lambda place: (-worth[place], backwards * place))
    chosen: dict[int, str] = {}
    room = chars_max
    for place in (near for best in order for near in (best, best + 1, best - 1)):
        if not 0 <= place < len(own) or place in chosen:
            continue
        text = _shortened(own[place][0], min(chars_max, LINE_CHARS_MAX))
        if len(text) <= room:
            chosen[place] = text
            room -= len(text) + 1
    return [chosen[place] for place in sorted(chosen)]


def _is_fit(sentence: str) -> bool:
    """Whether it may stand in a prompt: an answer may hold orders that a page gave the model, or a secret."""
    return readable(Memory(id="", version=1, type=MemoryType.EPISODIC, content=sentence, user="")) is None


def _shortened(text: str, chars_max: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars_max else f"{line[: chars_max - 1].rstrip()}…"
