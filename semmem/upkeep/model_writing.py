"""What a language model writes of several memories of a user, and why it is not believed: the ground that summaries and
reflections stand on."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from semmem.extraction.answers import as_line
from semmem.extraction.model_items import parse_items
from semmem.lifecycle.writes import Writes
from semmem.memory import Memory, Message, Role, Source
from semmem.ports.embedder import Embedder
from semmem.ports.memory_records import WriteRecords
from semmem.ports.models import LanguageModel
from semmem.ports.store import Store
from semmem.text.grounding import SourceText
from semmem.text.screening import is_instruction, redact


@dataclass(frozen=True, slots=True)
class WritingRules:
    """A text has at most ``chars_max`` characters, and this share of its words from the memories; ``timeout_s`` for one
    call of the model."""

    chars_max: int = 500
    grounded_share_min: float = 1.0
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Written:
    """A text about these memories. ``reason`` is empty when it may be remembered, or take their place."""

    of: tuple[Memory, ...]
    content: str = ""
    reason: str = ""


Rules = TypeVar("Rules", bound=WritingRules)


@dataclass(eq=False, repr=False)
class ModelWriting(Generic[Rules]):
    """``model`` None: says only what would be written of."""

    store: Store
    records: WriteRecords
    embedder: Embedder
    model: LanguageModel | None
    rules: Rules

    async def _items(self, told: str, notes: Iterable[object], schema: dict[str, object]) -> list[dict[str, Any]]:
        """What the model answers to notes, each shown as a line of JSON. Raises ModelUnavailable and ModelRefused."""
        if self.model is None:
            raise ValueError("nothing is written without a model")
        prompt = Message(Role.SYSTEM, told), Message(Role.USER, "\n".join(map(as_line, notes)))
        answer = await self.model.complete(prompt, timeout_s=self.rules.timeout_s, json_schema=schema)
        return parse_items(answer)

    def _unfit(self, content: str, memories: Sequence[Memory]) -> str:
        """Why a text may not be remembered, in one word; empty when it may. ``empty``, ``too_long``, ``secret``,
        ``instruction``, ``ungrounded`` (names, numbers or too many words that none of the memories has)."""
        if not content:
            return "empty"
        if len(content) > self.rules.chars_max:
            return "too_long"
        if redact(content) != content:
            return "secret"
        if is_instruction(content):
            return "instruction"
        said = SourceText("\n".join(memory.content for memory in memories))
        return "" if said.grounds(content, share_min=self.rules.grounded_share_min) else "ungrounded"

    async def _put(self, made: Memory, of: Sequence[Memory], hold_id: str, before: Memory | None = None) -> bool:
        """Whether it may stay: where one that it is made of was forgotten meanwhile, its words must go with it."""
        writes = Writes(self.store, self.records, hold_id)
        if not await (writes.put(made) if before is None else writes.replace(before, made)):
            return False
        if all([await writes.allowed(memory) for memory in of]):
            return True
        await writes.retract(made)
        return False

    async def _written(self, content: str, of: Sequence[Memory], role: str, now: float, **others: Any) -> Memory:
        """The text as a memory. It must not outlive what it was made of: the earliest end is its own."""
        ends = [memory.expires_at for memory in of if memory.expires_at is not None]
        of_all: dict[str, Any] = {"user": of[0].user, "project": of[0].project, "created_at": now, "updated_at": now}
        return Memory(
            version=1,
            content=content,
            source=Source(role=role, time=now),
            expires_at=min(ends, default=None),
            embedding=await self.embedder.embed(content),
            **{**of_all, **others},
        )


def one_line(content: object) -> str | None:
    """The text of a model's answer, None where it is none."""
    return " ".join(content.split()) if isinstance(content, str) else None


def made_id(parts: Iterable[str]) -> str:
    """The same for another try to write of the same."""
    return "mem_" + hashlib.sha256("\n".join(parts).encode()).hexdigest()[:26]
