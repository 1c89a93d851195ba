"""Statistics of use as a part of each exchange: from a request and its answer to a row of figures."""

import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from semmem.dialects import DIALECTS
from semmem.exchange.features import Feature, PendingRequest, noted
from semmem.memory import Answer, Conversation, Scope, TurnEnding
from semmem.ports.names import fits, usable
from semmem.ports.usage import DAY_S, Asked, UsageRow, session_name, user_name
from semmem.retrieval.showing import Shown
from semmem.turns.observation import Ticket
from semmem.usage.report import Prices

NOTE = "asked"
_NOTED = msgspec.json.Decoder(Asked)

CHARS_PER_TOKEN = 4
"""Of English prose; what a provider does not count is estimated with it, and marked."""
NAME_BYTES_MAX = 200
"""Of a model's name: three of them and a project fit the key of a row."""
FIGURE_MAX = 10**9
"""More tokens, or milliseconds, than one request can have; a provider may say anything."""
OTHER = "(other)"
"""Stands for names that are too long, and for those beyond ``names_max``."""

_PATHS = {dialect.name: path for path, dialect in DIALECTS.items()}


class KnownNames:
    """Clients choose names of models and projects. On one day at most ``names_max`` different ones of each kind are
    told apart, so that nobody fills the tables with names."""

    def __init__(self, names_max: int) -> None:
        self._names_max = names_max
        self._day = -1
        self._known: dict[str, set[str]] = {}

    def known(self, kind: str, name: str, at: float) -> str:
        """The name, or OTHER."""
        if not name:
            return ""
        day = int(at // DAY_S)
        if day > self._day:
            self._day, self._known = day, {}
        names = self._known.setdefault(kind, set())
        if name not in names:
            if len(names) >= self._names_max:
                return OTHER
            names.add(name)
        return name


@dataclass(eq=False, repr=False)
class Meter(Feature):
    """Makes a row of each answer that was observed; holds nothing of any request. ``key`` is that of the digests;
    ``add`` must neither wait nor raise."""

    key: bytes
    prices: Prices
    names: KnownNames
    add: Callable[[UsageRow], None]

    def after_search(self, pending: PendingRequest, shown: Shown) -> None:
        if pending.ticket is None:
            return
        said = pending.said if pending.replacement is None else pending.question.conversation
        opened = pending.turn.opened
        speaks = opened is not None and not opened.resumed
        asked = self.asked(pending.turn.scope, said, pending.said_at, speaks=speaks, injected_tokens=shown.tokens)
        pending.note(NOTE, asked)

    def on_answer(self, ticket: Ticket, ending: TurnEnding, answer: Answer | None, now: float, *, failed: bool) -> None:
        asked = noted(ticket, NOTE, _NOTED)
        if asked is not None:
            self.answered(asked, ticket.dialect, ending, answer, now)

    def asked(self, scope: Scope, said: Conversation, at: float, *, speaks: bool, injected_tokens: int) -> Asked:
        """To be kept until the answer has ended. A few microseconds."""
        chars = sum([len(message.text) for message in said.messages])
        return Asked(
            at,
            user_name(self.key, scope.user),
            session_name(self.key, scope.user, scope.session) if scope.session else "",
            self.names.known("project", scope.project or "", at),
            _model_name(said.model),
            math.ceil(chars / CHARS_PER_TOKEN) + injected_tokens,
            said.stream,
            speaks,
        )

    def answered(self, asked: Asked, dialect: str, ending: TurnEnding, answer: Answer | None, now: float) -> None:
        """The answer has ended: its row is added."""
        model_asked = self.names.known("model", asked.model, asked.at)
        model = self.names.known("model", _model_name(answer.model) if answer else "", asked.at) or model_asked
        counted_in, counted_out = (answer.input_tokens, answer.output_tokens) if answer else (None, None)
        tokens_out = math.ceil(len(answer.text) / CHARS_PER_TOKEN) if answer else 0
        self.add(
            UsageRow(
                id=uuid.uuid4().hex,
                at=asked.at,
                endpoint=_PATHS.get(dialect, ""),
                model_asked=model_asked,
                model=model,
                provider=_short(self.prices.provider(model)) if model else "",
                tokens_in=_figure(asked.tokens if counted_in is None else counted_in),
                tokens_out=_figure(tokens_out if counted_out is None else counted_out),
                prompt_cache=answer.prompt_cache if answer else None,
                estimated=counted_in is None or counted_out is None,
                duration_ms=_figure(1000 * (now - asked.at)),
                streamed=asked.streamed,
                ending=ending.value,
                tool_calls=answer.tool_calls if answer else 0,
                messages=asked.speaks + (ending is TurnEnding.ANSWERED),
                user=asked.user,
                session=asked.session,
                project=asked.project,
            )
        )


def _model_name(name: str) -> str:
    return _short(usable(name) or OTHER) if name else ""


def _short(name: str) -> str:
    return name if fits(name, NAME_BYTES_MAX) else OTHER


def _figure(value: float) -> int:
    return round(min(max(value, 0), FIGURE_MAX))
