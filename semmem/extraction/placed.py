"""What storing a fact did: the action, and what is no longer retrieved because of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

PAIR_FOUND, PAIR_REPLACED = "found", "replaced"
"""Of an unsettled pair: it was noted; one of the two went, as a later fact makes it untrue."""


class Action(StrEnum):
    """What storing a fact did. ``superseded``: it was created, and an older memory is no longer retrieved.
    ``confirmed``: a provisional memory says it, and stays. ``rewritten``: one says it in other words, and has a new
    version. ``outdated``: what was said later replaces it, and it is kept as history. ``forgotten``: its batch was
    erased meanwhile, and nothing is stored."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    SUPERSEDED = "superseded"
    QUARANTINED = "quarantined"
    CONFIRMED = "confirmed"
    REWRITTEN = "rewritten"
    OUTDATED = "outdated"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class Removal:
    """What is no longer retrieved, and why (a reason word). ``by`` is empty where nothing took its place.

    ``contradicted``: the memory ``id``, since ``by`` says otherwise. ``updated``: the version before of memory ``id``.
    ``repeated``: a new fact was not stored, under ``id``, since ``by`` says the same word for word. ``rewritten``,
    ``model_dropped``, ``refused``: the provisional memory ``id`` (see semmem.memory). ``undone``: what the memory
    ``id`` said, since the user took that back.
    """

    reason: str
    id: str
    by: str


@dataclass(frozen=True, slots=True)
class Placed:
    """What storing a fact did, what went with it, and the id of the memory that says it now (empty: none). ``pairs``: a
    word for each pair of memories that may contradict each other and was noted or settled by it."""

    action: Action
    removals: tuple[Removal, ...] = ()
    id: str = field(default="", compare=False)
    pairs: tuple[str, ...] = field(default=(), compare=False)
