"""Which language model is asked, and how it is shown what somebody said."""

from __future__ import annotations

import json
from collections.abc import Sequence

from semmem.memory import Turn
from semmem.ports.models import LanguageModel, NamedModels


def asked(configured: LanguageModel, upstream: NamedModels | None, turns: Sequence[Turn]) -> LanguageModel:
    """Who learns from these turns: with ``upstream`` the model of that name there that answered last; ``configured``
    where no name is known."""
    if upstream is None:
        return configured
    named = [turn for turn in turns if turn.model]
    answered = [turn for turn in named if turn.answer is not None]
    return upstream.named((answered or named)[-1].model) if named else configured


def as_line(told: object) -> str:
    """One line of JSON. With ``<`` escaped, no text in it can close the fence around it."""
    return json.dumps(told, ensure_ascii=False).replace("<", "\\u003c")
