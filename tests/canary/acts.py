"""What both ordinary users and those that erase do: a turn of a conversation, a fact, the end of a session."""

from __future__ import annotations

import random
import secrets
from typing import Any

from tests.canary.doors import TOOK, Doors
from tests.canary.ledger import CONVERSATION, Fact, Ledger
from tests.canary.model import Asked
from tests.canary.people import Person, Talk
from tests.canary.sentences import FACTS, MOVES, NOTED, STORED
from tests.soak.load import DIALECTS

Json = dict[str, Any]

MOVES_SHARE = 0.08


async def say(
    doors: Doors, person: Person, talk: Talk, text: str, dice: random.Random, fact: Fact | None = None
) -> Asked:
    """One turn of a conversation, in any API, streamed or not.

    A turn that semmem may not have had ends its conversation: resent in a history it would be news, also after an
    erasure that it never knew of.
    """
    asked = [*talk.said, {"role": "user", "content": text}]
    api, stream = dice.choice(list(DIALECTS)), dice.random() < 0.5
    turn = await doors.ask(person.user, asked, api=api, stream=stream, headers=talk.headers(), fact=fact)
    talk.said = [*asked, {"role": "assistant", "content": NOTED}]
    talk.over = talk.over or turn.outcome not in TOOK
    return turn


async def tell(doors: Doors, ledger: Ledger, person: Person, talk: Talk, dice: random.Random) -> Fact:
    """Tell a new fact; it is expected to be learnt when semmem had the turn."""
    sentence, question = MOVES if dice.random() < MOVES_SHARE else dice.choice(FACTS)
    where = {"project": talk.project, "session": talk.session}
    fact = ledger.tell(person.user, **where, way=CONVERSATION, question=question)
    await say(doors, person, talk, sentence.format(ledger.word(fact)), dice, fact)
    ledger.answered(fact, expected=not talk.over)
    return fact


async def own_token(doors: Doors, person: Person) -> str:
    """Made once; empty when semmem was away."""
    if not person.token:
        body = {"role": "user", "user_id": person.name}
        answer = await doors.call("tools", "POST", "/v1/tokens", person.user, body=body)
        person.token = answer.json["token"] if answer is not None and answer.ok else ""
    return person.token


async def end_session(doors: Doors, person: Person, session: str) -> None:
    body = {"user_id": person.name}
    await doors.call("end of session", "POST", f"/v1/sessions/{session}/end", person.user, body=body)


async def add_by_tool(doors: Doors, ledger: Ledger, person: Person, token: str, dice: random.Random) -> None:
    """A fact that the tool for it stores."""
    stored, question = dice.choice(STORED)
    fact = ledger.tell(person.user, project="", way="a tool", question=question)
    answer = await doors.tool(person.user, token, "memory_add", {"content": stored.format(ledger.word(fact))})
    ledger.created(fact, expected=answer is not None and answer.ok)


async def create(
    doors: Doors, ledger: Ledger, person: Person, dice: random.Random, *, key: str | None, project: str = ""
) -> None:
    """A fact that the API stores. One whose answer is lost may be there or not."""
    stored, question = dice.choice(STORED)
    fact = ledger.tell(person.user, project=project, way=f"the API{' under a key' if key else ''}", question=question)
    content = stored.format(ledger.word(fact))
    body = {"user_id": person.name, "content": content, "key": key, "project_id": project or None}
    once = secrets.token_hex(8)
    answer = await doors.call("create", "POST", "/v1/memory", person.user, body=body, once=once)
    if answer is not None and answer.ok:
        person.sent = once, body
    ledger.created(fact, expected=answer is not None and answer.status == 201)
