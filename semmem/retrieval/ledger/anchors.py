"""Names of the user's messages in a history, by which the blocks that were shown with them are found again.

A message is known by its words and by what was said before it, not by its number: clients cut the oldest messages off,
edit, branch and regenerate. Where the same words follow the same words again, their number among these counts too."""

from collections import Counter
from collections.abc import Collection

from msgspec import Struct

from semmem.memory import Conversation, Role
from semmem.retrieval.context import strip_block
from semmem.text.digest import known_digest

BEFORE_CHARS = 400
"""So many of the last characters of what was said before count."""

_USER, _TOOL = Role.USER, Role.TOOL
"""Looked up once: each look costs more than comparing."""
_SPEAKING = (Role.USER, Role.ASSISTANT)


class Anchor(Struct, frozen=True):
    """``at``: the message's number among those in the user's role, from 0."""

    name: str
    at: int


def goes_on(conversation: Conversation) -> bool:
    """Whether tools spoke last, apart from instructions and the model's own words: the same turn goes on."""
    for message in reversed(conversation.messages):
        if message.role is _USER or message.role is _TOOL:
            return message.role is _TOOL
    return False


def anchors_of(conversation: Conversation, gone: Collection[int] = ()) -> list[Anchor]:
    """Those of the messages in the user's role, oldest first; without messages whose place is among ``gone``."""
    found: list[Anchor] = []
    before, number, same = "", -1, Counter[str]()
    for place, message in enumerate(conversation.messages):
        if message.role not in _SPEAKING:
            continue
        text = strip_block(message.text).strip()
        if message.role is _USER:
            number += 1
            name = known_digest(text, before)
            same[name] += 1
            if place not in gone:
                found.append(Anchor(name if same[name] == 1 else f"{name}.{same[name]}", number))
        if text:  # an assistant that only calls tools says nothing
            before = message.role + text[-BEFORE_CHARS:]
    return found
