"""What the elements of a request's list are made of: what a dialect tells of each, and what follows from all of them.

An element is known again by what it says, not by how it is spelled: clients write their history anew with each request.
Marks for a provider's cache wander along it and say nothing.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from semmem.dialects.json_splice import Member, read_elements
from semmem.memory import Element, Role

ANY_CALL = "?"
"""Stands for the call of a result that does not say which it answers."""
_CACHE_MARK = "cache_control"
_DIGEST_BYTES = 16


class Told(msgspec.Struct):
    """One element as its dialect reads it. ``calls`` are names of the calls that it makes, ``answers`` of those whose
    results it brings; ``open`` forbids parting the list before it, for whatever reason."""

    role: Role
    text: str = ""
    messages: int = 1
    speaks: bool = False
    concludes: bool = False
    calls: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    open: bool = False


def elements_of(array: Member, told: Sequence[Told]) -> tuple[Element, ...]:
    """The elements of a member's array. Raises Malformed."""
    offset = array.value_start
    raw = [array.value[start - offset : end - offset] for start, end in read_elements(array)]
    return tuple(
        Element(
            role=each.role,
            text=each.text,
            digest=blake2b(_plain(text), digest_size=_DIGEST_BYTES).hexdigest(),
            messages=each.messages,
            speaks=each.speaks,
            concludes=each.concludes,
            seam=seam and not each.open,
            beside_chars=len(text) if each.calls else 0,
        )
        for each, text, seam in zip(told, raw, _seams(told), strict=True)
    )


def named(names: Iterable[Any]) -> tuple[str, ...]:
    """Names of calls, as far as they are names."""
    return tuple(name if isinstance(name, str) and name else ANY_CALL for name in names)


def _seams(told: Sequence[Told]) -> list[bool]:
    """For each place whether no result there or behind it belongs to a call before it."""
    seams, missing = [True] * len(told), set[str]()
    for place in range(len(told) - 1, -1, -1):
        missing.update(told[place].answers)
        if told[place].calls:
            missing.difference_update(told[place].calls, (ANY_CALL,))
        seams[place] = not missing
    return seams


def _plain(raw: bytes) -> bytes:
    """One spelling for all, without marks for a cache, of the element or of parts of its content; as it stands where
    there is none (a number of a hundred digits)."""
    try:
        value = msgspec.json.decode(raw)
        content = value.get("content") if isinstance(value, dict) else None
        for part in (value, *(content if isinstance(content, list) else ())):
            if isinstance(part, dict):
                part.pop(_CACHE_MARK, None)
        return msgspec.json.encode(value, order="sorted")
    except (ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return raw
