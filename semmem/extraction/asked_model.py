"""Which language model is asked about turns, and how it is shown what somebody said."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass

from semmem.memory import Message, Role, Turn
from semmem.ports.models import LanguageModel, ServedModel


@dataclass(eq=False, repr=False)
class AskingModel:
    """Asks ``model``; with ``upstream`` the model there of the name that answered the turns last, and ``model`` where
    no name is known. ``timeout_s`` bounds all that is asked about one thing."""

    model: LanguageModel
    _: KW_ONLY
    timeout_s: float = 30.0
    upstream: ServedModel | None = None

    async def _answer(
        self, rules: str, told: str, schema: dict[str, object], turns: Sequence[Turn], timeout_s: float | None = None
    ) -> str:
        """Raises ModelError."""
        messages = (Message(Role.SYSTEM, rules), Message(Role.USER, told))
        timeout_s = self.timeout_s if timeout_s is None else timeout_s
        return await self._asked(turns).complete(messages, timeout_s=timeout_s, json_schema=schema)

    def _asked(self, turns: Sequence[Turn]) -> LanguageModel:
        named = [turn for turn in turns if turn.model]
        if self.upstream is None or not named:
            return self.model
        answered = [turn for turn in named if turn.answer is not None]
        return self.upstream.named((answered or named)[-1].model)


def within(tag: str, lines: Iterable[str]) -> str:
    """The lines in a fence of that name."""
    return "\n".join([f"<{tag}>", *lines, f"</{tag}>"])


def as_line(told: object) -> str:
    """One line of JSON. With ``<`` escaped, no text in it can close the fence around it."""
    return json.dumps(told, ensure_ascii=False).replace("<", "\\u003c")
