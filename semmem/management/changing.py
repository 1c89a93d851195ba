"""What a person may change about a memory: a next version, never another memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from semmem.memory import CHANGES_STANDING, OWN_METADATA, PROVISIONAL, RELEASED, UNSETTLED, Memory, MemoryType, Vector

_OF_THE_OLD = (PROVISIONAL, UNSETTLED, RELEASED, CHANGES_STANDING)


@dataclass(frozen=True, slots=True)
class Changes:
    """None leaves what is there. ``metadata`` is put over what is there where ``merge_metadata``, else in its place;
    what semmem itself noted stays in any case. ``expires_at``: seconds; ``never_expires`` takes the time away."""

    content: str | None = None
    type: MemoryType | None = None
    key: str | None = None
    metadata: Mapping[str, Any] | None = None
    merge_metadata: bool = False
    own_metadata: Mapping[str, Any] | None = None
    importance: float | None = None
    expires_at: float | None = None
    never_expires: bool = False


def changed(old: Memory, changes: Changes, vector: Vector | None, *, now: float) -> Memory:
    """The next version; ``old`` itself when nothing is different. A new content is the API's word: no batch has to
    confirm it, it is in doubt beside no other memory, it is no change that could be undone, and what was allowed of the
    old one is not allowed of it. What is quarantined or superseded stays so."""
    metadata = merged(old.metadata, changes.metadata, keep=changes.merge_metadata)
    is_new = changes.content is not None and changes.content != old.content
    if is_new:
        metadata = {name: value for name, value in metadata.items() if name not in _OF_THE_OLD}
        metadata |= changes.own_metadata or {}
    source = replace(old.source, role="api") if is_new else old.source
    expires_at = old.expires_at if changes.expires_at is None else changes.expires_at
    new = replace(
        old,
        content=old.content if changes.content is None else changes.content,
        type=changes.type or old.type,
        key=old.key if changes.key is None else changes.key,
        metadata=metadata,
        source=source,
        importance=old.importance if changes.importance is None else changes.importance,
        expires_at=None if changes.never_expires else expires_at,
        embedding=vector if is_new else old.embedding,
    )
    return old if new == old else replace(new, version=old.version + 1, updated_at=now)


def merged(old: Mapping[str, Any], told: Mapping[str, Any] | None, *, keep: bool) -> dict[str, Any]:
    """A caller's metadata in place of what callers told before, or over it."""
    if told is None:
        return dict(old)
    kept = {name: value for name, value in old.items() if keep or name in OWN_METADATA}
    return kept | dict(told)


def callers(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What callers told, without semmem's own notes."""
    return {name: value for name, value in metadata.items() if name not in OWN_METADATA}
