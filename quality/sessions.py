"""Long sessions: how much shorter compression makes them, and how much of what was left out can still be answered.

The sessions are this project's own: twenty-five subjects with what is told about each (``sessions.jsonl``), in a talk
that the program makes up around it, some 10,000 tokens each. A question is answerable when its answer, a few words,
stands in what is sent; it was said in the part that is left out. No model is asked: the state is made by rules, and
memories are not counted, which in a running semmem are shown beside it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from quality.folder import Folder, Row
from quality.scores import Json, Share, each, mean
from quality.wiring import Semmem
from semmem.compression.cutting import cut, parts_of, replaceable, tokens_of
from semmem.compression.extractive import extracted, line_tokens, rendered
from semmem.dialects import DIALECTS
from semmem.memory import Replacement, Role
from semmem.retrieval.context import estimate_tokens

ROWS = Path(__file__).with_name("sessions.jsonl")
CHAT = DIALECTS["/v1/chat/completions"]
SEED = 20261123
TURNS, FACTS_END = 39, 32
"""Of a session; what is asked for was said before turn FACTS_END."""
TURNS_KEPT, TOKENS_MAX, CHARS_MAX = 5, 650, 400_000

_ASKS = (
    "How should I think about the {thing}?",
    "What do people usually get wrong with the {thing}?",
    "Could you say more about the {thing}, step by step?",
    "Is there anything about the {thing} that I should read first?",
    "Yesterday I spent {n} minutes on the {thing}. Was that too much?",
    "And what if the {thing} had to wait for {n} days?",
)
_ASIDES = (
    "I have a cup of tea here and plenty of time.",
    "My train was {n} minutes late this morning, so I am a little slow.",
    "It rained again today.",
    "A colleague sent me {n} pictures of the {thing}, none of them sharp.",
    "Thanks, that last answer helped.",
    "I am not sure that I understood all of it.",
)
_ADVICE = (
    "Most people begin with the {thing} far too late and then decide in a hurry.",
    "Write down what the {thing} has to do before you look at what there is.",
    "As a rule of thumb, allow {n} percent more time for the {thing} than you planned.",
    "It helps to look at {n} examples of the {thing} and to note what you dislike in each.",
    "What looks cheap at first is often dear once the {thing} has to be changed again.",
    "Ask somebody who has done it before how the {thing} held up after a year.",
    "There is no need to settle everything about the {thing} at once.",
    "Keep the {thing} and the {other} apart in your notes, because they are easily mixed up.",
    "If the {thing} depends on the {other}, do the {other} first.",
    "In a survey {n} of a hundred people said that the {thing} was the part they would do otherwise.",
    "A drawing, however rough, says more about the {thing} than a page of text.",
    "Take the {thing} seriously, but leave room for changes.",
    "Many guides treat the {thing} as a detail, which it is not.",
    "Once the {thing} is done, check it again after {n} days with fresh eyes.",
    "You can always come back to the {thing} when the {other} is clear.",
)

Figures = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Question:
    """``by``: who said the answer."""

    by: str
    text: str
    answer: str


@dataclass(frozen=True, slots=True)
class Session:
    """A request's body, and what is asked about its older part."""

    about: str
    body: bytes
    questions: tuple[Question, ...]


async def compressed(folder: Folder, _semmem: Semmem) -> tuple[Figures, Json]:
    """Tokens of a request before and after, and the share of questions that can be answered from what is sent; beside
    it the same of the last turns alone, and of sentences drawn by chance in the state's place."""
    every = sessions(folder.fifth)
    kept = {"user": Share(0, 0), "assistant": Share(0, 0)}
    last, chance = Share(0, 0), Share(0, 0)
    before, after, blocks, missed = list[float](), list[float](), list[float](), list[str]()
    for session in every:
        sent, tail, drawn, tokens, block = _sent(session)
        before.append(float(tokens))
        after.append(float(tokens_of(CHAT.parse(sent).elements())))
        blocks.append(float(block))
        for asked in session.questions:
            found = _holds(sent, asked.answer)
            kept[asked.by] += Share(int(found), 1)
            last += Share(int(_holds(tail, asked.answer)), 1)
            chance += Share(int(_holds(drawn, asked.answer)), 1)
            missed += [] if found else [f"{session.about}: {asked.text}"]
    figures = {
        "session_kept": (kept["user"] + kept["assistant"]).percent,
        "session_tokens_before": mean(before),
        "session_tokens_after": mean(after),
        "session_state_tokens": mean(blocks),
    }
    details: Json = {"by": each(kept), "last_turns": last.json(), "by_chance": chance.json(), "missed": missed}
    return figures, {**details, "sessions": len(every)}


def sessions(fifth: str) -> list[Session]:
    """Those of a fifth (that which is put aside says so of itself). The same in every run."""
    rows = map(json.loads, ROWS.read_text(encoding="utf-8").splitlines())
    return [_session(row) for row in rows if fifth == "all" or row.get("aside", False) == (fifth == "only")]


def _sent(session: Session) -> tuple[bytes, bytes, bytes, int, int]:
    """What is sent: with the state, with the last turns alone, with sentences by chance; the tokens of all of it, and
    of the state."""
    request = CHAT.parse(session.body)
    elements = request.elements()
    start = cut(elements, turns_kept=TURNS_KEPT) or 0
    places = replaceable(elements, start)
    parts, _ = parts_of(elements, places, None, CHARS_MAX)
    block = rendered(extracted(parts, None, None, TOKENS_MAX), lambda _inside: "0" * 16)
    by_chance = _by_chance([part.text for part in parts], session.about)
    ways = [request.rewrite(replacement=Replacement(places, text)) or b"" for text in (block, "(left out)", by_chance)]
    return ways[0], ways[1], ways[2], tokens_of(elements), estimate_tokens(block)


def _by_chance(texts: Sequence[str], about: str) -> str:
    """As many sentences as a state has room for."""
    said = [sentence for text in texts for sentence in text.split(". ")]
    random.Random(f"{SEED}/{about}").shuffle(said)
    room, drawn = TOKENS_MAX, list[str]()
    for sentence in said:
        room -= line_tokens(sentence)
        if room < 0:
            break
        drawn.append(sentence)
    return "\n".join(drawn)


def _holds(body: bytes, answer: str) -> bool:
    texts = (message.text for message in CHAT.parse(body).conversation.messages if message.role is not Role.SYSTEM)
    return any(answer.casefold() in text.casefold() for text in texts)


# --- making them up --------------------------------------------------------------------------------------------------


def _session(row: Row) -> Session:
    dice = random.Random(f"{SEED}/{row['about']}")
    places = sorted(dice.sample(range(1, FACTS_END), len(row["facts"])))
    told = dict(zip(places, row["facts"], strict=True))
    messages = [{"role": "system", "content": "You are a patient assistant."}]
    for number in range(TURNS):
        by, fact = told[number][:2] if number in told else ("", "")
        opening = f"I would like to talk about {row['about']}." if number == 0 else ""
        messages.append({"role": "user", "content": _user(dice, row, opening, fact if by == "user" else "")})
        if number < TURNS - 1:
            messages.append({"role": "assistant", "content": _assistant(dice, row, fact if by == "assistant" else "")})
    body = json.dumps({"model": "m", "messages": messages}, ensure_ascii=False).encode()
    questions = tuple(Question(by, ask, answer) for by, _, ask, answer in row["facts"])
    return Session(row["about"], body, questions)


def _user(dice: random.Random, row: Row, opening: str, fact: str) -> str:
    """The fact, where there is one, amid what means nothing."""
    aside, ask = _filled(dice, row, _ASIDES, 1), _filled(dice, row, _ASKS, 1)
    return " ".join(filter(None, [opening, *aside, fact, *ask]))


def _assistant(dice: random.Random, row: Row, fact: str) -> str:
    said = list(_filled(dice, row, _ADVICE, 11))
    if fact:
        said.insert(dice.randrange(len(said)), fact)
    return " ".join(said)


def _filled(dice: random.Random, row: Row, patterns: Sequence[str], number: int) -> Iterator[str]:
    for pattern in dice.sample(patterns, number):
        thing, other = dice.sample(row["things"], 2)
        yield pattern.format(thing=thing, other=other, n=dice.randrange(3, 90))
