"""A story told through Envoy, turn by turn as clients do, and its questions: what the model was given for each."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from demo.processes import Failed
from quality.agent_memory.datasets import Question, Said, Session, Story
from quality.agent_memory.house import House, Json
from quality.wiring import notes_in
from semmem.retrieval.context import estimate_tokens

LEARN_S = 900.0
"""At most, until all that was told by one user is learnt from; a language model may need it."""
HISTORY_MAX = 40
"""Messages of a session that a request has at most: clients of chat models cut there as well."""
PAGE = 1000
NO_ANSWER = "Noted."
_BLOCK = re.compile(r"<semmem-memory [0-9a-f]+>\n(.*?)\n</semmem-memory>", re.DOTALL)
_NAME = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class Memory:
    """``turn``: the one it is from, as the story names it; empty for what is from no single one."""

    content: str
    turn: str


@dataclass(frozen=True, slots=True)
class Given:
    """What one user's prompt was given for a question. ``seconds`` with memory and ``plain_s`` without; ``lines``:
    notes in the prompt, of which ``untraced`` are of no known turn; ``turns``: those that the others are from."""

    seconds: float
    plain_s: float
    outcome: str
    tokens: int
    lines: int
    untraced: int
    turns: frozenset[str]
    prompt: list[Json]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and what each of its story's users was given."""

    story: str
    question: Question
    given: tuple[Given, ...]

    @property
    def turns(self) -> frozenset[str]:
        return frozenset().union(*(one.turns for one in self.given))


@dataclass(frozen=True, slots=True)
class Told:
    """A story that was told. ``outcomes``: how often its turns ended in which word; ``learnt``: turns that some memory
    is from."""

    story: Story
    outcomes: Counter[str]
    memories: int
    learnt: frozenset[str]
    asked: tuple[Asked, ...]

    @property
    def turns(self) -> int:
        return self.outcomes.total()


def play(house: House, story: Story, *, questions_max: int | None = None) -> Told:
    """Tell a story to each of its users' assistants, wait until it is learnt, and ask. Raises Failed."""
    users = {speaker: _user(story, number) for number, speaker in enumerate(story.users)}
    outcomes = Counter(word for speaker, user in users.items() for word in _tell(house, story, speaker, user))
    for user in users.values():
        _wait_until_learnt(house, story, user)
    known = {user: _memories(house, user) for user in users.values()}
    all_kept = {user: [*found, *_said(house, user)] for user, found in known.items()}
    asked = [
        Asked(story.id, question, tuple(_ask(house, user, question, all_kept[user]) for user in users.values()))
        for question in story.questions[:questions_max]
    ]
    learnt = frozenset(memory.turn for memories in known.values() for memory in memories if memory.turn)
    return Told(story, outcomes, sum(map(len, known.values())), learnt, tuple(asked))


def _user(story: Story, number: int) -> str:
    """As the demo's authentication takes it."""
    return f"{_NAME.sub('-', story.id)[:50]}.{number}"


# --- telling ---------------------------------------------------------------------------------------------------------


def _tell(house: House, story: Story, speaker: str, user: str) -> Iterator[str]:
    """Everybody but the speaker is the assistant. How each request ended, in semmem's word."""
    for session in story.sessions:
        for said, history, reply in _requests(session, speaker):
            house.model.scripted.append(reply)
            yield house.chat(user, history[-HISTORY_MAX:], session=session.id, request_id=said.id).outcome


def _requests(session: Session, speaker: str) -> Iterator[tuple[Said, list[Json], str]]:
    """For each of the speaker's turns what a client would send, and what was answered."""
    history: list[Json] = []
    for place, said in enumerate(session.said):
        if not said.text.strip():
            continue
        history.append({"role": "user" if said.speaker == speaker else "assistant", "content": said.text})
        if said.speaker == speaker:
            following = session.said[place + 1 : place + 2]
            replies = [one.text for one in following if one.speaker != speaker and one.text.strip()]
            yield said, list(history), replies[0] if replies else NO_ANSWER


def _wait_until_learnt(house: House, story: Story, user: str) -> None:
    """Raises Failed where it takes longer than LEARN_S."""
    deadline = time.monotonic() + LEARN_S
    for session in story.sessions:
        while house.ask("POST", f"/v1/sessions/{session.id}/end", json={"user_id": user})["turns"]:
            if time.monotonic() > deadline:
                raise Failed(f"not everything was learnt within {LEARN_S:.0f} s")
            time.sleep(0.1)
    while time.monotonic() < deadline and any(_is_provisional(house, user)):
        time.sleep(0.1)


def _is_provisional(house: House, user: str) -> Iterator[bool]:
    """Of each memory whether its batch is still to settle it."""
    listed = house.ask("GET", "/v1/memory", params={"user_id": user, "status": "active", "limit": PAGE})
    return (bool(memory["metadata"].get("provisional")) for memory in listed["memories"])


# --- asking ----------------------------------------------------------------------------------------------------------


def _ask(house: House, user: str, question: Question, memories: list[Memory]) -> Given:
    """In a session of its own, from which nothing is learnt; once more without memory, for the time that it takes.
    ``memories``: what is kept, as far as it was listed; what is missing of it is added."""
    messages = [{"role": "user", "content": question.text}]
    house.model.scripted.extend([NO_ANSWER, NO_ANSWER])
    sent, plain = (
        house.chat(user, messages, session=f"q-{word}-{question.id}", request_id=f"q-{word}-{question.id}", memory=word)
        for word in ("read", "off")
    )
    block = "\n".join(blocks_in(sent.received))
    lines = notes_in(block)
    if not all(_turns_of(line, memories) for line in lines):
        memories += [*_memories(house, user), *_said(house, user)]  # a batch ends behind everything else
    of_lines = [_turns_of(line, memories) for line in lines]
    return Given(
        seconds=sent.seconds,
        plain_s=plain.seconds,
        outcome=sent.outcome,
        tokens=max(0, _tokens(sent.received) - _tokens(plain.received)),
        lines=len(lines),
        untraced=sum(1 for turns in of_lines if not turns),
        turns=frozenset().union(*of_lines),
        prompt=sent.received,
    )


def _turns_of(line: str, memories: Sequence[Memory]) -> frozenset[str]:
    """Of the memories whose words the line has; one line may hold several."""
    words = f" {_words(line)} "
    return frozenset(memory.turn for memory in memories if memory.turn and f" {_words(memory.content)} " in words)


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _tokens(messages: Sequence[Json]) -> int:
    return sum(estimate_tokens(_text(message)) for message in messages)


def blocks_in(messages: Iterable[Json]) -> list[str]:
    """What stands in the blocks of a prompt."""
    return [part for message in messages for part in _BLOCK.findall(_text(message))]


def _text(message: Json) -> str:
    content: Any = message.get("content")
    return content if isinstance(content, str) else ""


def _said(house: House, user: str) -> list[Memory]:
    """What was said, and the gist of what was answered."""
    return [kept for type in ("passage", "gist") for kept in _memories(house, user, type=type)]


def _memories(house: House, user: str, **narrow: str) -> list[Memory]:
    """All that are active. The turn is the request's id under which it was told."""
    found: list[Memory] = []
    cursor: str | None = None
    while True:
        params = {
            "user_id": user,
            "status": "active",
            "limit": PAGE,
            **narrow,
            **({"cursor": cursor} if cursor else {}),
        }
        page = house.ask("GET", "/v1/memory", params=params)
        found += [Memory(each["content"], each["source"]["request_id"] or "") for each in page["memories"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return found
