"""How the state of a session is made, behind the requests: by a model where there is one, else by rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from msgspec import Struct

from semmem.compression.by_model import ModelWriter
from semmem.compression.extractive import extracted
from semmem.compression.parts import Part
from semmem.ports.errors import ModelError, SemmemError
from semmem.ports.session_states import MODEL, RULES, CurrentState, Place, SessionState, SessionStates
from semmem.ports.text_work import TextWork

PER_SESSION, PER_USER = 2, 50
"""States kept: of a session the one that requests have, and the one that those of the next turns will have."""


class Job(Struct, frozen=True):
    """A state to be made: as SessionState says, of these parts, oldest first, in which the user's messages are
    ``said``. ``before``: what stood for the beginning of them until now."""

    user: str
    session: str
    replaced: int
    digest: str
    turns: int
    at: float
    parts: tuple[Part, ...]
    said: tuple[Place, ...]
    before: CurrentState | None = None


@dataclass(eq=False)
class Making:
    """Makes states and has them kept.

    ``tokens_max``: estimated tokens of a state's block. ``ttl_s``: how long a state lives. ``work`` reads texts, in
    ``budget_s`` seconds of processor time.
    """

    states: SessionStates
    work: TextWork
    writer: ModelWriter | None = None
    _: KW_ONLY
    tokens_max: int
    ttl_s: float
    budget_s: float
    clock: Callable[[], float]

    async def make(self, job: Job) -> tuple[SessionState | None, str]:
        """The state that is kept now, and how it went in one word: ``rules``, ``model``; ``empty`` (nothing to tell),
        ``refused`` (it may not be kept), ``failed``. Raises nothing expected."""
        try:
            state, made_by = await self._state(job)
            if state == CurrentState():
                return None, "empty"
            made = SessionState(
                job.user,
                job.session,
                job.replaced,
                job.digest,
                job.turns,
                job.at,
                self.clock() + self.ttl_s,
                state,
                made_by,
            )
            kept = await self.states.keep_state(made, job.said, per_session=PER_SESSION, per_user=PER_USER)
        except SemmemError:
            return None, "failed"
        return (made, made_by) if kept else (None, "refused")

    async def _state(self, job: Job) -> tuple[CurrentState, str]:
        """What the model leaves room for is filled by rules: it may have lost a number that somebody asks for."""
        written: CurrentState | None = None
        if self.writer is not None:
            try:
                written = await self.writer.write(job.parts, job.before)
            except ModelError:
                written = None
        state = await self.work.run(extracted, job.parts, written, job.before, self.tokens_max, budget_s=self.budget_s)
        return state, RULES if written is None else MODEL
