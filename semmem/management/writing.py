"""What a person may write: of what the API is told the write screen judges, as of what is learnt, and a change of a
memory is a next version, never another memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from semmem.extraction.screen import Ruling, Screened, screen_text
from semmem.management.problems import Denied
from semmem.memory import (
    CHANGES_STANDING,
    OWN_METADATA,
    PROVISIONAL,
    QUARANTINED,
    RELEASED,
    UNSETTLED,
    Memory,
    MemoryStatus,
    MemoryType,
    Vector,
)
from semmem.ports.events import Announce, ApiScreened, nobody_listens

OVERRIDDEN = "overridden"

Screen = Callable[[str], Screened]
"""``screen_text`` with the operator's settings bound to it."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """What may be stored of a text, and as what. ``metadata`` is semmem's own, to go with the caller's."""

    content: str
    status: MemoryStatus = MemoryStatus.ACTIVE
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class WriteScreen:
    """Judges what the API is told. ApiScreened is announced for every text that is not simply kept."""

    screen: Screen = screen_text
    _: KW_ONLY
    announce: Announce = nobody_listens

    def judge(self, content: str, *, key: str | None, override: bool) -> Admitted:
        """A text that is kept is kept as it came. Raises Denied with the screen's word for one that is not.

        With a key nothing is quarantined: it would take the place of what is known under the key, unseen.
        """
        verdict = self.screen(content)
        if verdict.outcome is Ruling.KEEP:
            return Admitted(content)
        if override:
            self.announce(ApiScreened(OVERRIDDEN, verdict.reason))
            # Somebody who is allowed to has read it. A secret stays out of prompts all the same.
            return Admitted(content, metadata={RELEASED: True} if verdict.reason == "instruction" else {})
        if verdict.outcome is Ruling.REJECT or (verdict.outcome is Ruling.QUARANTINE and key is not None):
            self.announce(ApiScreened(Ruling.REJECT, verdict.reason))
            raise Denied("SCREENED", f"content: {verdict.reason}")
        self.announce(ApiScreened(verdict.outcome, verdict.reason))
        if verdict.outcome is Ruling.QUARANTINE:
            return Admitted(verdict.content, MemoryStatus.QUARANTINED, {QUARANTINED: verdict.reason})
        return Admitted(verdict.content)


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
