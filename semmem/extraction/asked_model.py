"""Which language model learns from a turn: the configured one, or the one that the turn's own request went to."""

from __future__ import annotations

from collections.abc import Sequence

from semmem.memory import Turn
from semmem.ports.models import LanguageModel, NamedModels


def asked(configured: LanguageModel, upstream: NamedModels | None, turns: Sequence[Turn]) -> LanguageModel:
    """With ``upstream`` the model of that name there that answered last; ``configured`` where no name is known."""
    if upstream is None:
        return configured
    named = [turn for turn in turns if turn.model]
    answered = [turn for turn in named if turn.answer is not None]
    return upstream.named((answered or named)[-1].model) if named else configured
