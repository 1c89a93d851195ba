"""What a person may write: of what the API is told the write screen judges, as of what is learnt, and a change of a
memory is a next version, never another memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from pydantic import Field

from semmem.extraction.screen import Ruling, Screened, screen_text
from semmem.management.problems import Denied
from semmem.management.routes import Body, Kind, Moment, NewUser, Number, ScopeName, Switch
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


class NewMemory(Body):
    """``override_screen``: store what the write screen would not; an administrator's word."""

    content: str = Field(min_length=3, max_length=500)
    type: Kind = MemoryType.SEMANTIC
    user_id: NewUser = None
    project_id: ScopeName = None
    agent_id: ScopeName = None
    session_id: ScopeName = None
    key: str | None = Field(default=None, min_length=1, max_length=256)
    metadata: dict[str, Any] = Field(default_factory=dict)
    importance: Number = Field(default=0.5, ge=0, le=1)
    expires_at: Moment | None = None
    override_screen: Switch = False
    merge_metadata: Switch = Field(default=False, description="with a key that is known: over the metadata it has")


class ChangedMemory(Body):
    """What is not named stays as it is; ``expires_at`` null: never. ``override_screen`` as in NewMemory."""

    content: str | None = Field(default=None, min_length=3, max_length=500)
    type: Kind | None = None
    key: str | None = Field(default=None, min_length=1, max_length=256)
    metadata: dict[str, Any] | None = None
    merge_metadata: Switch = True
    importance: Number | None = Field(default=None, ge=0, le=1)
    expires_at: Moment | None = None
    override_screen: Switch = False


def changed(old: Memory, new: ChangedMemory, told: Admitted | None, vector: Vector | None, *, now: float) -> Memory:
    """The next version; ``old`` itself when nothing is different. ``told``: what the write screen says of a content.

    A new content is the API's word: no batch has to confirm it, it is in doubt beside no other memory, it is no change
    that could be undone, and what was allowed of the old one is not allowed of it. What is quarantined or superseded
    stays so, and so does what semmem itself noted."""
    metadata = merged(old.metadata, new.metadata, keep=new.merge_metadata)
    content = old.content if told is None else told.content
    is_new = content != old.content
    if told is not None and is_new:
        metadata = {name: value for name, value in metadata.items() if name not in _OF_THE_OLD} | told.metadata
    expires_at = old.expires_at if new.expires_at is None else new.expires_at.timestamp()
    never_expires = "expires_at" in new.model_fields_set and new.expires_at is None
    next_one = replace(
        old,
        content=content,
        type=new.type or old.type,
        key=old.key if new.key is None else new.key,
        metadata=metadata,
        source=replace(old.source, role="api") if is_new else old.source,
        importance=old.importance if new.importance is None else new.importance,
        expires_at=None if never_expires else expires_at,
        embedding=vector if is_new else old.embedding,
    )
    return old if next_one == old else replace(next_one, version=old.version + 1, updated_at=now)


def merged(old: Mapping[str, Any], told: Mapping[str, Any] | None, *, keep: bool) -> dict[str, Any]:
    """A caller's metadata in place of what callers told before, or over it."""
    if told is None:
        return dict(old)
    kept = {name: value for name, value in old.items() if keep or name in OWN_METADATA}
    return kept | dict(told)


def callers(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What callers told, without semmem's own notes."""
    return {name: value for name, value in metadata.items() if name not in OWN_METADATA}
