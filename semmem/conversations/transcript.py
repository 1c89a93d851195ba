"""A conversation written out for a person."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from semmem.memory import Role
from semmem.ports.conversations import KeptConversation, KeptMessage

SPEAKERS = {Role.USER: "User", Role.ASSISTANT: "Assistant", Role.TOOL: "Tool", Role.SYSTEM: "System"}
CUT = "[cut here: longer than is kept]"
_FENCE = re.compile("`{3,}")


def markdown(kept: KeptConversation, messages: Iterable[KeptMessage]) -> Iterator[str]:
    """Title, dates, and each message under its speaker; results and calls of tools as code."""
    yield f"# {_line(kept.title) or 'Conversation'}\n\n"
    yield f"- Began: {_time(kept.created_at)}\n- Last added to: {_time(kept.updated_at)}\n"
    if kept.scope.project:
        yield f"- Project: {_line(kept.scope.project)}\n"
    if kept.tags:
        yield f"- Tags: {', '.join(_line(tag) for tag in kept.tags)}\n"
    for message in messages:
        yield from _said(message)


def _said(message: KeptMessage) -> Iterator[str]:
    model = message.model or message.model_asked
    by = f", {_line(model)}" if message.role is Role.ASSISTANT and model else ""
    yield f"\n## {SPEAKERS[message.role]}{by} ({_time(message.at)})\n"
    if message.content:
        yield f"\n{_code(message.content) if message.role is Role.TOOL else message.content}\n"
    if message.cut:
        yield f"\n{CUT}\n"
    for call in message.calls:
        yield f"\nCalls `{_line(call.name).replace('`', '')}`:\n\n{_code(call.arguments)}\n"


def _code(text: str) -> str:
    """Fenced by more marks than stand together in it."""
    fence = "`" * max(3, 1 + max((len(found) for found in _FENCE.findall(text)), default=0))
    return f"{fence}\n{text}\n{fence}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
