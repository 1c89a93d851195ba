"""The OpenAI chat-completions API: ``POST /v1/chat/completions``, as OpenAI, vLLM and others speak it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from semmem.dialects.answer import ABSENT, AnswerBuilder, Usage, readable
from semmem.dialects.elements import Told, elements_of, named
from semmem.dialects.inject import ParsedRequest, after_system, first_system, last_user, message_json, nth
from semmem.dialects.json_splice import Edit, JsonObject, Malformed, insert_element, read_object
from semmem.dialects.request import (
    OTHER_ROLE,
    ROLES,
    Content,
    conversation_of,
    decoded,
    name_in,
    name_of,
    object_of,
    text_of,
)
from semmem.memory import Conversation, Element, Injection, Message, Role

_TOOL_ROLES = ("tool", "function")


class _ChatMessage(msgspec.Struct):
    role: str = ""
    content: Content = None
    tool_call_id: Any = None
    name: Any = None


class _ChatElement(_ChatMessage):
    """A message with its calls of tools, or with the name of the call that it answers."""

    tool_calls: Any = None
    function_call: Any = None


_messages = msgspec.json.Decoder(list[_ChatMessage])
_elements = msgspec.json.Decoder(list[_ChatElement])


def parse(body: bytes) -> ChatRequest:
    """Raises Malformed."""
    source = read_object(body)
    top = source.values()
    messages = _read_messages(top.get("messages"))
    roles = [message.role for message in messages]
    conversation = conversation_of(
        top,
        [
            Message(ROLES.get(m.role, OTHER_ROLE), text_of(m.content), name_in(m.tool_call_id), _speaker(m.name))
            for m in messages
        ],
        tool_turn=_awaits_tool_result(roles) or _names_a_tool(top),
    )
    return ChatRequest(source, roles, conversation)


class ChatRequest(ParsedRequest):
    """Position ``turn``: at the beginning of the user's message.

    Position ``system``: at the end of the first system or developer message, which is given back as the kind of
    content it was; as the user at the beginning of the user's last message. Many templates refuse a message more: one
    of its own, at the front, is there only where there is none to put it in. The other positions make it one more
    message always.
    """

    __slots__ = ("_roles",)

    def __init__(self, source: JsonObject, roles: Sequence[str], conversation: Conversation) -> None:
        super().__init__(source, conversation)
        self._roles = roles

    def elements(self) -> Sequence[Element]:
        messages = self._source.members["messages"]
        return elements_of(messages, [_told(each) for each in decoded(_elements, messages.value, "messages")])

    def _edits(self, injection: Injection) -> list[Edit]:
        behind, host = False, None
        if injection.position == "turn":
            host = nth((place for place, role in enumerate(self._roles) if role == "user"), injection.at)
            if host is None:
                return []
        elif injection.position == "system":
            behind = injection.role != "user"
            host = (first_system if behind else last_user)(self._roles)
        if host is not None and (merged := self._merged_into(host, injection.text, behind=behind)):
            return merged
        index = host if injection.position == "turn" and host is not None else _index(self._roles, injection.position)
        return [insert_element(self._source.members["messages"], index, message_json(injection))]


# --- reading a request -----------------------------------------------------------------------------------------------


def _read_messages(raw: bytes | None) -> list[_ChatMessage]:
    if raw is None:
        raise Malformed("messages: missing")
    messages = decoded(_messages, raw, "messages")
    if not messages:
        raise Malformed("messages: empty")
    return messages


def _speaker(name: object) -> str:
    """Who is named as the speaker; whatever is no text is some other name than anybody's."""
    return name.strip() if isinstance(name, str) else "" if name is None else "?"


def _awaits_tool_result(roles: Sequence[str]) -> bool:
    """Whether the last thing that happened, apart from instructions and the model's own words, is a tool's result."""
    return next((role in _TOOL_ROLES for role in reversed(roles) if role == "user" or role in _TOOL_ROLES), False)


def _names_a_tool(top: Mapping[str, bytes]) -> bool:
    """``tool_choice`` {"type": "function", "function": {"name": ...}} ("custom" likewise), or the older
    ``function_call`` {"name": ...}. The words "auto", "none" and "required" name nothing."""
    if "tool_choice" not in top and "function_call" not in top:
        return False
    choice = object_of(top, "tool_choice")
    named = (choice, object_of(choice, "function"), object_of(choice, "custom"), object_of(top, "function_call"))
    return any(name_of(fields, "name") for fields in named)


# --- parting it ------------------------------------------------------------------------------------------------------


def _told(message: _ChatElement) -> Told:
    role, text = ROLES.get(message.role, OTHER_ROLE), text_of(message.content)
    calls, answers = _called(message), (message.tool_call_id,) if message.role in _TOOL_ROLES else ()
    return Told(
        role,
        text,
        speaks=role is Role.USER and bool(text.strip()),
        concludes=role is Role.ASSISTANT and not calls and bool(text.strip()),
        calls=named(calls),
        answers=named(answers),
        open=role is Role.TOOL,
    )


def _called(message: _ChatElement) -> list[Any]:
    calls = message.tool_calls if isinstance(message.tool_calls, list) else []
    names = [call.get("id") if isinstance(call, dict) else None for call in calls]
    return [*names, None] if message.function_call is not None else names


# --- rewriting it ----------------------------------------------------------------------------------------------------


def _index(roles: Sequence[str], position: str) -> int:
    match position:
        case "system" | "first":
            return 0
        case "after_system":
            return after_system(roles)
        case _:
            return _before_last_user(roles)


def _before_last_user(roles: Sequence[str]) -> int:
    """After the leading instructions instead, when no user speaks, or when a tool's result stands behind the user's
    words with no assistant between them: its call is before those words, and the two must not be parted.
    """
    last = last_user(roles)
    if last is None:
        return after_system(roles)
    answer = next((role for role in roles[last:] if role == "assistant" or role in _TOOL_ROLES), "")
    return after_system(roles) if answer in _TOOL_ROLES else last


# --- reading an answer -----------------------------------------------------------------------------------------------


CALLS_MAX = 1000
"""Places of calls of tools in one answer; a higher one is no place."""


class _ChatContent(msgspec.Struct):
    content: Content = None
    tool_calls: Any = None


class _Choice(msgspec.Struct):
    index: int | None = 0
    message: _ChatContent | None = None
    delta: _ChatContent | None = None
    finish_reason: str | None = None


class _ChatUsage(Usage, gc=False):
    input_tokens: int | None = msgspec.field(name="prompt_tokens", default=None)
    output_tokens: int | None = msgspec.field(name="completion_tokens", default=None)
    details: msgspec.Raw = msgspec.field(name="prompt_tokens_details", default=ABSENT)


class _Completion(msgspec.Struct):
    """A whole answer, or one chunk of a streamed one."""

    choices: list[_Choice] | None = None
    usage: _ChatUsage | None = None
    model: Any = None
    object: Any = None
    error: Any = None

    @property
    def failed(self) -> bool:
        return self.error is not None or self.object == "error"  # the second is how older vLLM says it


_completion = msgspec.json.Decoder(_Completion)


class ChatAnswer(AnswerBuilder):
    """Of several choices only the first is read. Refusals, reasoning and tool calls are not text: such an answer is
    complete and empty. In a stream ``[DONE]`` may be missing, and usage may come last."""

    REFUSALS = frozenset({"content_filter"})
    TOOL_CALLS = frozenset({"tool_calls", "function_call"})

    def read_body(self, body: bytes) -> None:
        completion = readable(_completion, body) or _Completion()
        self.count(completion.usage)
        self.named(completion.model)
        if completion.choices:
            first = completion.choices[0]
            self._append(first.message, "\n")
            self.finish_reason = first.finish_reason
            self.ended, self.lost = True, completion.failed

    def read_event(self, name: str, data: str) -> None:
        if data == "[DONE]":
            self.ended = True
            return
        chunk = self.decoded(_completion, name, data)
        if chunk is None:
            return
        self.lost |= chunk.failed or name == "error"
        self.count(chunk.usage)
        self.named(chunk.model)
        for choice in chunk.choices or ():
            if not choice.index:
                self._append(choice.delta, "")
                self.finish_reason = choice.finish_reason or self.finish_reason

    def _append(self, said: _ChatContent | None, joiner: str) -> None:
        if said is not None:
            self.tail.append(text_of(said.content, joiner))
            if said.tool_calls:
                self.tool_calls = max(self.tool_calls, _calls(said.tool_calls))
                self._keep(said.tool_calls)

    def _keep(self, told: Any) -> None:
        for place, call in enumerate(told if isinstance(told, list) else ()):
            if isinstance(call, dict):
                does = call.get("function") or call.get("custom")
                does = does if isinstance(does, dict) else {}
                at = call.get("index")
                self.calls.add(
                    at if type(at) is int else place,
                    id=call.get("id"),
                    name=does.get("name"),
                    arguments=does.get("arguments") or does.get("input"),
                )


def _calls(told: Any) -> int:
    """How many calls there are by now. A stream tells each in pieces, with its place."""
    if not isinstance(told, list):
        return 0
    places = [call.get("index") for call in told if isinstance(call, dict)]
    return max(len(told), *(place + 1 for place in places if type(place) is int and 0 <= place < CALLS_MAX), 0)
