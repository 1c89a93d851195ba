"""What strict chat templates refuse, as plain rules over the messages that a server makes of a request.

A: one system message at most, and it is the first. B: after it, user and assistant take turns, the user first; tools'
results stand behind the call. C: as B, and no system message at all. A message is {role, content}; a content that is
null, or a list with nothing in it, is refused by none: templates print what is there.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
SYSTEM_ROLES = ("system", "developer")


def chat_messages(path: str, body: Json, before: list[Json] = []) -> list[Json]:  # noqa: B006  (never changed)
    """A request as chat messages, the way servers that translate the other APIs do it: ``instructions`` and ``system``
    become the first message if they say anything; tools' calls and results become messages of their own. ``before`` is
    what a server has kept of earlier requests of the chain.
    """
    if path == "/v1/chat/completions":
        return list(body["messages"])
    name = "instructions" if path == "/v1/responses" else "system"
    instructions = [{"role": "system", "content": body[name]}] if _says(body.get(name)) else []
    return [*instructions, *before, *(kept_input(body) if path == "/v1/responses" else _anthropic(body))]


def kept_input(body: Json) -> list[Json]:
    """The items of a Responses request as messages, as a server keeps them for the chain."""
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given or []
    messages: list[Json] = []
    for item in items:
        match item.get("type") or "message":
            case "message":
                messages.append(item)
            case "function_call":
                messages.append({"role": "assistant", "content": None, "tool_calls": [item]})
            case "function_call_output":
                messages.append({"role": "tool", "content": item["output"]})
    return _one_call_message(messages)


def _one_call_message(messages: list[Json]) -> list[Json]:
    """Calls in a row are one message, as is what the model said before them."""
    merged: list[Json] = []
    for message in messages:
        if merged and message.get("tool_calls") and merged[-1]["role"] == "assistant":
            calls = [*merged[-1].get("tool_calls", ()), *message["tool_calls"]]
            merged[-1] = {**merged[-1], "tool_calls": calls}
        else:
            merged.append(message)
    return merged


def _anthropic(body: Json) -> list[Json]:
    messages: list[Json] = []
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        results = [block for block in blocks if block.get("type") == "tool_result"]
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        messages += [{"role": "tool", "content": result.get("content")} for result in results]
        rest = [block for block in blocks if block not in results and block not in calls]
        if calls:
            messages.append({"role": message["role"], "content": rest, "tool_calls": calls})
        elif rest or not results:
            messages.append({"role": message["role"], "content": rest or message["content"]})
    return messages


def _says(content: Any) -> bool:
    return bool(content.strip()) if isinstance(content, str) else bool(content)


def one_system_message_first(messages: list[Json]) -> bool:
    return all(index == 0 for index, message in enumerate(messages) if message["role"] in SYSTEM_ROLES)


def alternating(messages: list[Json]) -> bool:
    """The user begins; an assistant's message that calls tools is followed by their results and then by the model."""
    talk = messages[1:] if messages and messages[0]["role"] in SYSTEM_ROLES else messages
    wanted = {"user"}
    for message in talk:
        if message["role"] not in wanted:
            return False
        calls = message.get("tool_calls")
        wanted = {
            "user": {"assistant"},
            "assistant": {"tool"} if calls else {"user"},
            "tool": {"tool", "assistant"},
        }[message["role"]]
    return bool(talk)


def no_system_message(messages: list[Json]) -> bool:
    return alternating(messages) and not any(message["role"] in SYSTEM_ROLES for message in messages)


FAMILIES = {"A": one_system_message_first, "B": alternating, "C": no_system_message}
