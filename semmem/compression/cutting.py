"""Where a request's list of messages may be parted: the older elements are replaced, the others stay as they are.

What stays begins with an answer of the assistant's, and the user's next words behind it: the state takes the place of
the message that was answered, so that roles alternate as they did and nobody's words are invented. Instructions stay
wherever they stand. No result of a tool is parted from its call. What goes is what a state is made of.
"""

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from semmem.memory import Conversation, Element, Role
from semmem.ports.session_states import Place, SessionState
from semmem.retrieval.context import estimate_tokens
from semmem.text.digest import digest
from semmem.turns.recorder import CurrentTurn

_SPEAKERS = (Role.USER, Role.ASSISTANT)
CHARS_PER_TOKEN = 3.5
"""Of calls, which are JSON: as ``estimate_tokens`` counts it."""


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


def cut(elements: Sequence[Element], *, turns_kept: int) -> int | None:
    """The place from which elements stay, with at least so many messages of the user's; the latest there is."""
    spoken = [place for place, element in enumerate(elements) if element.speaks]
    for place in reversed(spoken[: len(spoken) - turns_kept + 1] if turns_kept else spoken):
        if (start := _start(elements, place)) is not None:
            return start
    return None


def may_part(elements: Sequence[Element], start: int, *, turns_kept: int) -> bool:
    """Whether these may be parted there: another request may go on otherwise behind the same beginning."""
    spoken = (place for place in range(start, len(elements)) if elements[place].speaks)
    first = next(spoken, None)
    return first is not None and _start(elements, first) == start and 1 + sum(1 for _ in spoken) >= turns_kept


def replaceable(elements: Sequence[Element], start: int) -> tuple[int, ...]:
    """The elements before that place that are replaced."""
    return tuple(place for place in range(start) if elements[place].role is not Role.SYSTEM)


def start_behind(elements: Sequence[Element], replaced: int) -> int | None:
    """The place of the next replaceable element behind so many of them; None where there is none."""
    left = replaced
    for place, element in enumerate(elements):
        if element.role is not Role.SYSTEM:
            if not left:
                return place
            left -= 1
    return None


def digest_of(elements: Sequence[Element], places: Sequence[int]) -> str:
    """What these elements say, in their order."""
    return digest(*(elements[place].digest for place in places))


def tokens_of(elements: Sequence[Element]) -> int:
    """An estimate: of texts and calls, not of images."""
    return sum(estimate_tokens(each.text) + int(each.beside_chars / CHARS_PER_TOKEN) for each in elements)


def users_of(conversation: Conversation) -> int:
    """How many messages of the user's it has."""
    return sum(1 for message in conversation.messages if message.role is Role.USER)


def users_before(conversation: Conversation, elements: Sequence[Element], start: int) -> int:
    """How many messages of the user's are in the elements before that place."""
    end = len(conversation.messages) - sum(element.messages for element in elements[start:])
    return sum(1 for message in conversation.messages[:end] if message.role is Role.USER)


def gone_of(conversation: Conversation, elements: Sequence[Element], places: Sequence[int]) -> frozenset[int]:
    """The places, in the conversation, of the messages that these elements are."""
    chosen, gone = set(places), set[int]()
    at = len(conversation.messages) - sum(element.messages for element in elements)  # instructions beside the list
    for place, element in enumerate(elements):
        if place in chosen:
            gone.update(range(at, at + element.messages))
        at += element.messages
    return frozenset(gone)


def kept_of(conversation: Conversation, gone: Collection[int]) -> Conversation:
    """The conversation without the messages at these places."""
    kept = (message for place, message in enumerate(conversation.messages) if place not in gone)
    return replace(conversation, messages=tuple(kept))


def _start(elements: Sequence[Element], spoken: int) -> int | None:
    """Where the answer begins that stands before this message of the user's; with what may not be parted from it. None
    where something else stands there, or nothing is left before it."""
    start = spoken - 1
    if start < 1 or not elements[start].concludes:
        return None
    while not elements[start].seam:
        start -= 1
        if start < 1 or elements[start].speaks or elements[start].role is Role.SYSTEM:
            return None
    return start if any(elements[place].role is not Role.SYSTEM for place in range(start)) else None
