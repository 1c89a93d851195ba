"""How the state of a session is made, behind the requests: by a model where there is one, else by rules."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from msgspec import Struct

from semmem.compression.cutting import Part
from semmem.compression.extractive import KINDS, ends, extracted, told_lines
from semmem.extraction.answers import json_values
from semmem.memory import Message, Role
from semmem.ports.errors import ModelError, ModelRefused, SemmemError
from semmem.ports.models import LanguageModel, exactly
from semmem.ports.session_states import MODEL, RULES, CurrentState, Place, SessionState, SessionStates
from semmem.ports.text_work import TextWork

LINES_MAX = 60
"""Lines of one kind that are read of an answer."""
PART_CHARS_MIN = 200
"""Shown of each message at least, however many there are."""

_RULES = Path(__file__).with_suffix(".txt").read_text("utf-8").rstrip("\n")
_LIST = {"type": "array", "items": {"type": "string"}}
_SCHEMA = exactly(topic={"type": "string"}, decisions=_LIST, facts=_LIST, answers=_LIST, open=_LIST)


@dataclass(eq=False, repr=False)
class ModelWriter:
    """Asks a language model. ``text_chars_max``: characters of the conversation in one call; of each message its
    beginning and its end are shown when there are more."""

    model: LanguageModel
    _: KW_ONLY
    tokens_max: int
    timeout_s: float = 30.0
    text_chars_max: int = 60_000

    async def write(self, parts: Sequence[Part], before: CurrentState | None) -> CurrentState:
        """Raises ModelError."""
        rules = Message(Role.SYSTEM, _RULES.format(tokens_max=self.tokens_max))
        shown = Message(Role.USER, "\n".join(self._shown(parts, before)))
        answer = await self.model.complete((rules, shown), timeout_s=self.timeout_s, json_schema=_SCHEMA)
        return read_state(answer)

    def _shown(self, parts: Sequence[Part], before: CurrentState | None) -> list[str]:
        """With ``<`` escaped nothing can close anything around it."""
        minutes = [] if before is None else [_line("minutes", "\n".join(told_lines(before)))]
        room = max(PART_CHARS_MIN, self.text_chars_max // max(1, len(parts)))
        said = [_line(part.role.value, ends(part.text, room, " … ")) for part in parts[-self.text_chars_max :]]
        return minutes + said


def read_state(answer: str) -> CurrentState:
    """The state in a model's answer. Raises ModelRefused when there is none."""
    for value in json_values(answer):
        if isinstance(value, dict) and any(name in value for name in ("topic", "facts", "decisions")):
            return CurrentState(_text(value.get("topic")), *(_texts(value.get(kind)) for kind in KINDS))
    raise ModelRefused("the answer holds no state")


def _line(who: str, text: str) -> str:
    return json.dumps({who: text}, ensure_ascii=False).replace("<", "\\u003c")


def _text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    lines = map(_text, value if isinstance(value, list) else ())
    return tuple(line for line in lines if line)[:LINES_MAX]


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


@dataclass(eq=False, repr=False)
class Making:
    """Makes states and has them kept. ``tokens_max``: estimated tokens of a state's block. ``ttl_s``: how long a state
    lives. ``work`` reads texts, in ``budget_s`` seconds of processor time."""

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
            told, expires_at = (job.user, job.session, job.replaced, job.digest, job.turns), self.clock() + self.ttl_s
            made = SessionState(*told, job.at, expires_at, state, made_by)
            kept = await self.states.keep_state(made, job.said, per_session=PER_SESSION, per_user=PER_USER)
        except SemmemError:
            return None, "failed"
        return (made, made_by) if kept else (None, "refused")

    async def _state(self, job: Job) -> tuple[CurrentState, str]:
        """What the model leaves room for is filled by rules: it may have lost a number that somebody asks for."""
        written: CurrentState | None = None
        if self.writer is not None:
            with suppress(ModelError):
                written = await self.writer.write(job.parts, job.before)
        state = await self.work.run(extracted, job.parts, written, job.before, self.tokens_max, budget_s=self.budget_s)
        return state, RULES if written is None else MODEL
