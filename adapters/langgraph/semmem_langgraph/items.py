"""An item of LangGraph's as a semmem memory, and back.

What an item is found by, and what semmem may put into a prompt, is the memory's content: one text of 3 to 500
characters. The item's namespace, key and value lie beside it in the metadata, the value as one JSON text, so that
semmem's limits of depth and keys do not meet it.

Where the content is one text of the value, it is taken out of the JSON and put back when the item is read: what semmem
or a person has changed since (a newer fact, a correction in the Studio, a secret that was redacted) is what the item
says. Where it is made of several fields, the value is given as it was put, and a content that was changed since stands
beside it under CHANGED.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from langgraph.store.base import Item, PutOp, SearchItem

from semmem_langgraph.calls import Json
from semmem_langgraph.errors import NotServed, Refused
from semmem_langgraph.namespaces import Namespace

OURS = "langgraph"
"""The member of a memory's metadata that holds everything of this store's."""
CHANGED = "semmem:content"
"""The member of a value that says what the memory says now. It is given, and never kept."""
TEXT_CHARS_MIN, TEXT_CHARS_MAX = 3, 500
"""What semmem's API takes for a content."""
KEY_CHARS_MAX = 256
"""What semmem's API takes for a key."""
WHOLE = "$"

Path = tuple[str | int, ...]
_STEP = re.compile(r"\.?([^.\[\]{}]+)|\[(\*|-?[0-9]{1,9})\]")


# --- an item as a memory ---------------------------------------------------------------------------------------------


def api_key(namespace: Namespace, key: str) -> str:
    """The memory's key, the same for the same item: readable where it fits, else a digest.

    No label has a period or is empty, so two periods end the namespace: no other item has the same. Raises Refused.
    """
    readable = f"lg:{'.'.join(namespace)}..{key}"
    digest = hashlib.sha256(encoded(readable, "key")).hexdigest()
    return readable if len(readable) <= KEY_CHARS_MAX and readable.isprintable() else f"lg#{digest}"


@dataclass(frozen=True, slots=True)
class Said:
    """What a memory says of a value. ``at``: where in the value that text stands; None: it is made of several."""

    text: str
    at: Path | None


def body_of(op: PutOp, fields: Sequence[str], *, cut: bool, now: datetime) -> Json:
    """What the API is sent for an item, without its scope. ``fields``: where its text is, unless the item says so.
    ``cut``: a text that is too long is cut, rather than refused. Raises Refused and NotServed."""
    if op.index is False:
        raise NotServed("index", "False would keep an item that is never searched; semmem searches all it keeps")
    value = {name: part for name, part in (op.value or {}).items() if name != CHANGED}
    check_json(value)
    said = text_of(value, op.index if op.index is not None else fields, cut=cut)
    ours: Json = {"namespace": list(op.namespace), "key": op.key}
    if said.at is None:
        ours |= {"value": to_json(value), "text": digest(said.text)}
    else:
        ours |= {"value": to_json(replaced(value, said.at, None)), "at": list(said.at)}
    told: Json = {"content": said.text, "key": api_key(op.namespace, op.key), "metadata": {OURS: ours}}
    return told if op.ttl is None else told | {"expires_at": _expiry(op.ttl, now)}


def text_of(value: Mapping[str, Any], fields: Sequence[str], *, cut: bool) -> Said:
    """The one text that the fields name, else their texts and numbers with their names. Raises Refused."""
    found = [leaf for field in fields for leaf in _picked(value, field)]
    texts = [(path, leaf) for path, leaf in found if isinstance(leaf, str)]
    if len(texts) == 1 and TEXT_CHARS_MIN <= len(texts[0][1]) <= TEXT_CHARS_MAX:
        return Said(texts[0][1], texts[0][0])
    text = texts[0][1] if len(texts) == 1 and len(texts[0][1]) > TEXT_CHARS_MAX else _rendered(found)
    if not text:
        raise Refused("value", f"has no text and no number at {', '.join(fields)}, so nothing to find it by")
    if len(text) <= TEXT_CHARS_MAX:
        return Said(text, None)
    if not cut:
        reason = f"its text has {len(text)} characters, semmem takes {TEXT_CHARS_MAX}"
        raise Refused("value", f"{reason}; name a shorter field with index=[...], or let the store cut (cut_text=True)")
    return Said(_cut(text), None)


def _picked(value: Any, field: str) -> list[tuple[Path, Any]]:
    """Texts, numbers and truth values at a field, in order."""
    if field == WHOLE:
        return list(_leaves(value, ()))
    return [leaf for path, part in _at(value, _steps(field)) for leaf in _leaves(part, path)]


def _steps(field: str) -> list[str | int]:
    steps: list[str | int] = []
    end = 0
    while end < len(field):
        step = _STEP.match(field, end)
        if step is None:
            raise NotServed("index", "is read as names, [number] and [*] only")
        steps.append(step[1] if step[1] is not None else step[2] if step[2] == "*" else int(step[2]))
        end = step.end()
    return steps


def _at(value: Any, steps: Sequence[str | int]) -> Iterator[tuple[Path, Any]]:
    """What lies at the end of the steps; what is not there is passed over."""
    found: list[tuple[Path, Any]] = [((), value)]
    for step in steps:
        found = [((*path, name), part) for path, whole in found for name, part in _next(whole, step)]
    yield from found


def _next(whole: Any, step: str | int) -> list[tuple[str | int, Any]]:
    if isinstance(whole, list | tuple):
        if step == "*":
            return list(enumerate(whole))
        return [(step % len(whole), whole[step])] if isinstance(step, int) and -len(whole) <= step < len(whole) else []
    return [(step, whole[step])] if isinstance(whole, Mapping) and step in whole else []


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _leaves(part, (*path, name))
    elif isinstance(value, list | tuple):
        for at, part in enumerate(value):
            yield from _leaves(part, (*path, at))
    elif value is not None:
        yield path, value


def _rendered(leaves: Sequence[tuple[Path, Any]]) -> str:
    return "; ".join(f"{_name(path)}: {leaf if isinstance(leaf, str) else json.dumps(leaf)}" for path, leaf in leaves)


def _name(path: Path) -> str:
    """The nearest name above: an element of a list has none of its own."""
    return next((part for part in reversed(path) if isinstance(part, str)), "")


def _cut(text: str) -> str:
    """At the last space that leaves most of it, with a mark that there was more."""
    kept = text[: TEXT_CHARS_MAX - 2]
    space = kept.rfind(" ", TEXT_CHARS_MAX // 2)
    return (kept if space < 0 else kept[:space]) + " …"


def _expiry(ttl_min: float, now: datetime) -> str:
    if not ttl_min > 0:
        raise Refused("ttl", "is no positive number of minutes")
    try:
        return (now + timedelta(minutes=ttl_min)).isoformat()
    except OverflowError:
        raise Refused("ttl", "ends beyond any calendar") from None


# --- a memory as an item ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory that holds an item, or (``ours`` false) one that semmem has learnt, as an item."""

    id: str
    namespace: Namespace
    key: str
    value: Json
    created_at: datetime
    updated_at: datetime
    is_active: bool
    ours: bool = True

    def item(self) -> Item:
        return Item(
            value=self.value,
            key=self.key,
            namespace=self.namespace,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )

    def hit(self, score: float | None = None) -> SearchItem:
        return SearchItem(self.namespace, self.key, self.value, self.created_at, self.updated_at, score)


def kept(memory: Json, *, now: datetime) -> Kept | None:
    """The item that a memory holds; None where it holds none, or its time is over."""
    ours = memory["metadata"].get(OURS)
    if _is_over(memory, now) or not isinstance(ours, dict):
        return None
    try:
        namespace, key, value = tuple(ours["namespace"]), ours["key"], json.loads(ours["value"])
        if not (isinstance(key, str) and isinstance(value, dict) and all(isinstance(one, str) for one in namespace)):
            return None
        value = _with_content(value, ours, memory["content"])
    except (KeyError, IndexError, TypeError, ValueError):
        return None  # somebody else's metadata under our name
    return _kept(memory, namespace, key, value, ours=True)


def learnt(memory: Json, namespace: Namespace, *, now: datetime) -> Kept | None:
    """A memory that nobody put here, as an item; None where its time is over."""
    if _is_over(memory, now):
        return None
    shown = ("content", "type", "importance", "occurred_at", "metadata")
    value = {name: memory[name] for name in shown if memory[name] not in (None, {})}
    return _kept(memory, namespace, memory["id"], value, ours=False)


def _kept(memory: Json, namespace: Namespace, key: str, value: Json, *, ours: bool) -> Kept:
    created, updated = (datetime.fromisoformat(memory[name]) for name in ("created_at", "updated_at"))
    return Kept(memory["id"], namespace, key, value, created, updated, memory["status"] == "active", ours)


def _with_content(value: Json, ours: Json, content: str) -> Json:
    if "at" in ours:
        whole: Json = replaced(value, tuple(ours["at"]), content)
        return whole
    return value if ours["text"] == digest(content) else value | {CHANGED: content}


def _is_over(memory: Json, now: datetime) -> bool:
    """semmem retrieves it no more from that moment, and removes it minutes later."""
    return memory["expires_at"] is not None and datetime.fromisoformat(memory["expires_at"]) <= now


# --- JSON ------------------------------------------------------------------------------------------------------------


def check_json(value: Any) -> None:
    """Raises Refused for what would not come back as it was put: names that are no text, NaN, anything that is no
    JSON, half characters, and nesting beyond what Python reads."""
    try:
        encoded(to_json(value), "value")
        _check_names(value)
    except RecursionError:
        raise Refused("value", "is nested too deep to be written as JSON") from None
    except TypeError as error:
        raise Refused("value", f"is no JSON: {error}") from None
    except ValueError as error:
        if isinstance(error, Refused):
            raise
        raise Refused("value", "holds itself, or NaN or Infinity, which are no JSON") from None


def to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encoded(text: str, place: str) -> bytes:
    """UTF-8. Raises Refused for half a character."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Refused(place, "is no Unicode text: it holds half of a character") from None


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _check_names(value: Any) -> None:
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise Refused("value", "has a name that is no text")
        for part in value.values():
            _check_names(part)
    elif isinstance(value, list | tuple):
        for part in value:
            _check_names(part)


def replaced(value: Any, path: Path, leaf: Any) -> Any:
    """A copy with another leaf; what lies beside the path is shared. Raises LookupError where there is no such path."""
    if not path:
        return leaf
    if isinstance(value, Mapping):
        return {**value, path[0]: replaced(value[path[0]], path[1:], leaf)}
    if not isinstance(path[0], int):
        raise LookupError
    return [replaced(part, path[1:], leaf) if at == path[0] else part for at, part in enumerate(value)]
