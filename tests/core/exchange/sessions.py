"""A client that sends its whole history with each request, in any API, and what the model then sees."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from semmem.exchange import RequestResult
from semmem.memory import Memory, Scope
from semmem.request.head import RequestHead
from semmem.retrieval.recall import RecallRules
from tests.core.exchange.world import PATIENT, World
from tests.core.test_tool_loops import CHAT, Api, Json

TURN = replace(PATIENT, position="turn", user_role_models=("o1",))
ALICE = Scope("alice")
_BLOCK = re.compile(r"<semmem-memory [0-9a-f]{16}>\n(?:[^<>]*)\n</semmem-memory>")


@dataclass(frozen=True)
class Seen:
    """A request as it went on."""

    api: Api
    result: RequestResult
    body: bytes

    @property
    def parsed(self) -> Json:
        read: Json = json.loads(self.body)
        return read

    @property
    def history(self) -> list[Json]:
        items: list[Json] = self.parsed[self.api.history]
        return items

    @property
    def contents(self) -> list[str]:
        """What stands in the user's messages."""
        return [_text(item["content"]) for item in self.history if item.get("role") == "user"]

    @property
    def blocks(self) -> list[str]:
        """What the user's messages begin with; empty for those without."""
        found = (_BLOCK.match(text) for text in self.contents)
        return ["" if block is None else block[0] for block in found]

    @property
    def lines(self) -> list[list[str]]:
        """The notes in each of the user's messages, without their days."""
        return [notes(block) for block in self.blocks]

    @property
    def every_block(self) -> list[str]:
        """Wherever it stands."""
        return _BLOCK.findall("\n".join(_strings(self.parsed)))

    @property
    def instructions(self) -> str:
        match self.api.history, self.api.path:
            case "input", _:
                return str(self.parsed.get("instructions") or "")
            case _, "/v1/messages":
                return _text(self.parsed.get("system") or "")
        first = self.history[0]
        return _text(first["content"]) if first["role"] == "system" else ""

    def goes_on_from(self, earlier: Seen) -> bool:
        """Whether all that the model was given before stands at the beginning of what it is given now."""
        was, now = earlier.parsed, self.parsed
        old, new = was.pop(self.api.history), now.pop(self.api.history)
        words = [text for text in earlier.contents if text.strip()][-1].rpartition("</semmem-memory>")[2].strip()
        end = earlier.body.rindex(json.dumps(words)[1:-1].encode()) + len(json.dumps(words)[1:-1])
        return was == now and new[: len(old)] == old and self.body[:end] == earlier.body[:end]


def notes(block: str) -> list[str]:
    return [re.sub(r" \([^()]*\)$", "", line[2:]) for line in block.split("\n") if line.startswith("- ")]


def _text(content: str | Sequence[Any]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part if isinstance(part, str) else part.get("text", "") for part in content)


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inside for text in _strings(each)]


@dataclass
class Session:
    """``said`` is the client's own history, without anything of semmem's."""

    api: Api = CHAT
    rules: RecallRules = TURN
    world: World = None  # type: ignore[assignment]
    user: str = "alice"
    name: str | None = "s1"
    said: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = self.world or World(rules=self.rules)

    async def says(self, text: str, headers: Mapping[str, str] | None = None, **members: Any) -> Seen:
        """The user's next words."""
        self.said.append(self.api.user(text))
        return await self.sends(headers, **members)

    def answers(self, text: str = "I see.") -> None:
        self.said.append({"role": "assistant", "content": text})

    async def asks(self, text: str, answer: str = "I see.", **members: Any) -> Seen:
        """Words, and the answer to them."""
        seen = await self.says(text, **members)
        self.answers(answer)
        return seen

    async def sends(self, headers: Mapping[str, str] | None = None, **members: Any) -> Seen:
        """All of it, as it is."""
        return await self.posts(self.api.body(self.said, **members), headers)

    async def posts(self, body: bytes, headers: Mapping[str, str] | None = None) -> Seen:
        named = {} if self.name is None else {"x-session-id": self.name}
        sent = {"x-user-id": self.user, **named, **(headers or {})}
        head = RequestHead("POST", self.api.path, {name: (value,) for name, value in sent.items()})
        result = await self.world.exchange.request(head, body)
        return Seen(self.api, result, body if result.body is None else result.body)

    async def knows(self, id: str, content: str, **fields: Any) -> None:
        await self.world.knows(content, fields.pop("user", self.user), id=id, **fields)

    async def changes(self, id: str, **fields: Any) -> None:
        """A new version of a memory."""
        old = await self.world.memories.get(Scope(self.user), id)
        assert old is not None
        new: Memory = replace(old, **({"version": old.version + 1} | fields))
        await self.world.memories.put(Scope(self.user), new)
