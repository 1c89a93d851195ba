"""Models behind an endpoint: those that write, and those that order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from semmem.memory import Message

OWN_CALL_HEADERS = {"x-semmem-memory": "off"}
"""Sent with every call to a language model. Where it passes a semmem on its way, nothing is added to it and nothing
learnt from it: else what is asked about a turn would be a turn again."""


class LanguageModel(Protocol):
    """An OpenAI-compatible chat model in one of the configured roles."""

    async def complete(
        self, messages: Sequence[Message], *, timeout_s: float, json_schema: dict[str, object] | None = None
    ) -> str:
        """The text of one answer. With a schema, as strict a JSON mode as the server takes. Raises ModelError."""

    async def close(self) -> None: ...


def exactly(**members: object) -> dict[str, object]:
    """The JSON schema of an object with all of these members and no others."""
    return {"type": "object", "properties": members, "required": [*members], "additionalProperties": False}


class ServedModel(LanguageModel, Protocol):
    """A language model, and by name the others of its server."""

    def named(self, name: str) -> ServedModel:
        """The model of this name, which is closed with its server. Does not ask whether there is one."""


class Reranker(Protocol):
    """A model that reads question and text together, which orders better than any distance of two vectors."""

    async def rerank(self, query: str, texts: Sequence[str], *, timeout_s: float) -> list[float]:
        """How well each text answers the query, in the order of ``texts``; higher is better, any scale, finite. Raises
        ModelError."""

    async def close(self) -> None: ...
