"""Steps about the place and form of what is added to a prompt, and about switching it off by a header.

Their memories are given, and which of them answer the question is not what they are about: the request asks for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.peers.steps import Json, Step
from tests.peers.world import Sent, World

QUESTION = "What do you know about me and my drinks?"
GIVEN = [{"content": "User drinks green tea in the morning."}]
TOLD = "I live in Ghent."
ALL: Json = {"memory_config": {"similarity_threshold": 0.0}}
FIELDS = frozenset(
    "scenario source kind note gap given messages body model config provider headers expect expect_role".split()
)

NO_EFFECT = frozenset({"false", "0", "", "no"})


def inject(world: World, step: Step) -> list[str]:
    """One request with memories, held against what the step's scenario expects of its messages."""
    row = step.row
    world.give(step.user, step.given or GIVEN)
    body: Json = {"model": row.get("model", "stand-in"), **row.get("body", {})}
    body["messages"] = row.get("messages", [{"role": "user", "content": QUESTION}])
    sent = world.send(step.user, body | ALL)
    if sent.wrong:
        return sent.wrong
    if "expect_role" in row:
        return _role(sent, row["expect_role"])
    return EXPECTED[step.scenario](sent, body)


def control(world: World, step: Step) -> list[str]:
    """A question and a statement with a header: neither read nor stored, or both."""
    (header,) = step.row["headers"].items()
    is_on = header[1].strip().lower() in NO_EFFECT
    if is_on != (step.row["expect"] == "memory on"):
        return ["the step says something else"]
    world.give(step.user, GIVEN)
    wrong = []
    for number, text in enumerate((QUESTION, TOLD)):
        body = {"model": "stand-in", "messages": [{"role": "user", "content": text}]}
        sent = world.send(step.user, body, headers={"x-session-id": "s", header[0]: header[1].strip()})
        wrong += sent.wrong
        if not number and bool(sent.notes) != is_on:
            wrong.append("memories are not read" if is_on else "memories are read")
    world.settle(step.user, "s", 2 if is_on else 0)
    if (len(world.memories(step.user)) > len(GIVEN)) != is_on:
        wrong.append("nothing is stored" if is_on else "something is stored")
    return wrong


def _role(sent: Sent, role: str) -> list[str]:
    roles = [message["role"] for message in sent.received["messages"] if "<semmem-memory" in str(message)]
    return [] if roles == [role] else [f"memories in role {', '.join(roles) or 'none'}"]


def _others(messages: list[Json]) -> list[Json]:
    return [message for message in messages if "<semmem-memory" not in str(message)]


def _one_message_more(sent: Sent, body: Json) -> list[str]:
    received = sent.received["messages"]
    wrong = [] if sent.notes and "<semmem-memory" in str(received[0]) else ["memories are not in the first message"]
    if _others(received) != body["messages"]:
        wrong.append("another message was changed")
    return wrong


def _other_members(sent: Sent, body: Json) -> list[str]:
    wrong = [] if sent.notes else ["no memories"]
    changed = [name for name in body if name != "messages" and sent.received.get(name) != body[name]]
    wrong += [f"new: {name}" for name in sent.received.keys() - body.keys()]
    return wrong + [f"changed: {name}" for name in changed]


def _no_blank_line(sent: Sent, _body: Json) -> list[str]:
    return [] if len(sent.notes) == 1 and sent.notes[0].strip() else [f"{len(sent.notes)} notes"]


def _some_notes(sent: Sent, _body: Json) -> list[str]:
    return [] if sent.notes else [f"nothing is added ({sent.reply.outcome})"]


def _in_order(sent: Sent, _body: Json) -> list[str]:
    blocks = sum(str(message).count("</semmem-memory>") for message in sent.received["messages"])
    ends = [note.split(" (")[0][-1] for note in sent.notes]
    right = (blocks, ends) == (1, sorted(ends)) and len(ends) == 3
    return [] if right else [f"{blocks} blocks, notes {' '.join(ends)}"]


def _merged_into_the_system_message(sent: Sent, body: Json) -> list[str]:
    received = sent.received["messages"]
    later = [number for number, message in enumerate(received) if number and message["role"] == "system"]
    wrong = [f"a system message in place {number}" for number in later]
    if len(received) != len(body["messages"]):
        wrong.append(f"{len(received)} messages")
    return wrong + ["memories are not in the first message"] * ("<semmem-memory" not in str(received[0]))


EXPECTED: dict[str, Callable[[Sent, Any], list[str]]] = {
    "or_inject_keeps_messages": _one_message_more,
    "or_inject_keeps_fields": _other_members,
    "or_inject_blank_memory": _no_blank_line,
    "or_inject_empty_messages": _some_notes,
    "or_inject_many_one_block": _in_order,
    "or_system_must_be_first": _merged_into_the_system_message,
}
"""What these scenarios expect in words."""
