"""What a state is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from semmem.memory import Element, Role
from semmem.ports.session_states import Place, SessionState
from semmem.turns.recorder import CurrentTurn

_SPEAKERS = (Role.USER, Role.ASSISTANT)


class Part(Struct, frozen=True):
    """Somebody's words among those that a state is made of: the user's or the assistant's."""

    role: Role
    text: str


def parts_of(
    elements: Sequence[Element], places: Sequence[int], before: SessionState | None, chars_max: int
) -> tuple[tuple[Part, ...], bool]:
    """What users and assistants said in these elements, and whether that is all. Where it is too long it is what was
    said since the state before, and nothing where there is none, or where that is too long as well."""
    if _chars(whole := _spoken(elements, places)) <= chars_max:
        return whole, True
    since = _spoken(elements, places[before.replaced :]) if before is not None else ()
    return (since, False) if _chars(since) <= chars_max else ((), False)


def places_of(turn: CurrentTurn, users: int) -> tuple[Place, ...]:
    """The first so many messages of the user's, those without text apart."""
    history = turn.messages.history_backwards() if turn.messages is not None else ()
    return tuple(Place(each.id, each.ordinal) for each in history if each.ordinal <= users)


def _spoken(elements: Sequence[Element], places: Sequence[int]) -> tuple[Part, ...]:
    found = (elements[place] for place in places)
    return tuple(Part(each.role, each.text) for each in found if each.role in _SPEAKERS and each.text.strip())


def _chars(parts: Iterable[Part]) -> int:
    return sum(len(part.text) for part in parts)
