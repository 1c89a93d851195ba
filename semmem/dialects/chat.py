"""The OpenAI chat-completions API: ``POST /v1/chat/completions``, as OpenAI, Azure, vLLM and others speak it.

A request is read leniently (a role or a part that we do not know is no reason to go without memory) but never
guessed: what cannot be spliced with certainty is Malformed. Answers are read tolerantly and judged strictly: an answer
is complete only when its proper end was seen and nothing on the way was lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from semmem.dialects import AnswerReader, Malformed
from semmem.dialects.bounded import BoundedBody, TextTail
from semmem.dialects.json_splice import (
    UNREADABLE,
    Edit,
    JsonObject,
    cut_members,
    decode_repaired,
    insert_element,
    read_object,
    reason,
    splice,
)
from semmem.dialects.own_members import BOOLEAN, OWN_MEMBERS, controls, field_of, model_of, name_of, object_of
from semmem.dialects.sse import EventStream
from semmem.dialects.text_merge import merge_into_message, string_token
from semmem.memory import Answer, Conversation, Injection, Message, Role

_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
_TOOL_ROLES = ("tool", "function")
_SYSTEM_ROLES = ("system", "developer")
_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
}
_CALLS_TOOL = ("tool_calls", "function_call")
_OTHER = Role.TOOL  # whoever that is, it is not the user


class _Part(msgspec.Struct, gc=False):
    type: str = ""
    text: Any = None  # a string in a text part; what other parts call text is theirs


class _Message(msgspec.Struct):
    role: str = ""
    content: str | list[_Part | str] | None = None


_messages = msgspec.json.Decoder(list[_Message])


class ChatCompletions:
    """The dialect."""

    name = "chat"

    def parse(self, body: bytes) -> ChatRequest:
        """Raises Malformed."""
        source = read_object(body)
        top = {name: member.value for name, member in source.members.items()}
        messages = _read_messages(top.get("messages"))
        roles = [message.role for message in messages]
        conversation = Conversation(
            messages=tuple([Message(_ROLES.get(m.role, _OTHER), _text(m.content, "\n")) for m in messages]),
            model=model_of(top),
            stream=field_of(top, "stream", BOOLEAN) or False,
            tool_turn=_awaits_tool_result(roles) or _names_a_tool(top),
            controls=controls(top),
        )
        return ChatRequest(source, roles, conversation)

    def reader(self, *, content_type: str, answer_bytes_max: int, body_bytes_max: int) -> AnswerReader | None:
        """A reader of JSON or SSE answers, or None for another content type (its parameters are ignored)."""
        match content_type.partition(";")[0].strip().lower():
            case "application/json":
                return _JsonReader(answer_bytes_max, body_bytes_max)
            case "text/event-stream":
                return _StreamReader(answer_bytes_max, body_bytes_max)
            case _:
                return None


class ChatRequest:
    """One request: what it says, and the bytes it came in."""

    __slots__ = ("_roles", "_source", "conversation")

    def __init__(self, source: JsonObject, roles: Sequence[str], conversation: Conversation) -> None:
        self._source = source
        self._roles = roles
        self.conversation = conversation

    def rewrite(self, injection: Injection | None) -> bytes | None:
        """The body without ``memory_config`` and ``memory_context``, and with the injection.

        Position ``system``: at the end of the first system or developer message, which is given back as the kind of
        content it was; as the user at the beginning of the user's last message. Many templates refuse a message more:
        one of its own, at the front, is there only where there is none to put it in. The other positions make it one
        more message always.

        None when that changes nothing. Raises ValueError for a position that does not exist.
        """
        edits = cut_members(self._source, OWN_MEMBERS)
        if injection is not None:
            edits += self._added(injection)
        return splice(self._source.body, edits) if edits else None

    def placed(self, injection: Injection) -> Injection:
        """As it is: what a position means does not change while a loop goes on."""
        return injection

    def keeps(self, injection: Injection) -> bool:
        """Never: this API keeps nothing from one request to the next."""
        return False

    def _added(self, injection: Injection) -> list[Edit]:
        messages, as_user = self._source.members["messages"], injection.role == "user"
        host = _host(self._roles, as_user=as_user) if injection.position == "system" else None
        if host is not None:
            with suppress(Malformed):  # it names its content twice: left alone
                return merge_into_message(self._source, messages, host, injection.text, part="text", behind=not as_user)
        return [insert_element(messages, _index(self._roles, injection.position), _message_json(injection))]


# --- reading a request -----------------------------------------------------------------------------------------------


def _read_messages(raw: bytes | None) -> list[_Message]:
    if raw is None:
        raise Malformed("messages: missing")
    try:
        messages = _messages.decode(raw)
    except UNREADABLE as error:
        why, _, place = reason(error).partition(" - at `$")
        raise Malformed(f"messages{place.rstrip('`')}: {why}") from None
    if not messages:
        raise Malformed("messages: empty")
    return messages


def _text(content: str | list[_Part | str] | None, joiner: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    texts = (part if isinstance(part, str) else part.text for part in content if _is_text(part))
    return joiner.join(texts)


def _is_text(part: _Part | str) -> bool:
    return isinstance(part, str) or (part.type in _TEXT_PARTS and isinstance(part.text, str))


def _awaits_tool_result(roles: Sequence[str]) -> bool:
    """Whether the last thing that happened, apart from instructions and the model's own words, is a tool's result."""
    return next((role in _TOOL_ROLES for role in reversed(roles) if role == "user" or role in _TOOL_ROLES), False)


def _names_a_tool(top: Mapping[str, bytes]) -> bool:
    """``tool_choice`` {"type": "function", "function": {"name": ...}} ("custom" likewise), or the older
    ``function_call`` {"name": ...}. The words "auto", "none" and "required" name nothing.
    """
    choice = object_of(top, "tool_choice")
    named = (choice, object_of(choice, "function"), object_of(choice, "custom"), object_of(top, "function_call"))
    return any(name_of(fields, "name") for fields in named)


# --- rewriting it ----------------------------------------------------------------------------------------------------


def _message_json(injection: Injection) -> bytes:
    return b'{"role":' + string_token(injection.role) + b',"content":' + string_token(injection.text) + b"}"


def _host(roles: Sequence[str], *, as_user: bool) -> int | None:
    """The message that takes the injection in."""
    if as_user:
        return max((index for index, role in enumerate(roles) if role == "user"), default=None)
    return next((index for index, role in enumerate(roles) if role in _SYSTEM_ROLES), None)


def _index(roles: Sequence[str], position: str) -> int:
    match position:
        case "system" | "first":
            return 0
        case "after_system":
            return _after_system(roles)
        case "before_last_user":
            return _before_last_user(roles)
        case _:
            raise ValueError(f"no such position: {position!r}")


def _after_system(roles: Sequence[str]) -> int:
    return next((index for index, role in enumerate(roles) if role not in _SYSTEM_ROLES), len(roles))


def _before_last_user(roles: Sequence[str]) -> int:
    """After the leading instructions instead, when no user speaks, or when a tool's result stands behind the user's
    words with no assistant between them: its call is before those words, and the two must not be parted.
    """
    last = max((index for index, role in enumerate(roles) if role == "user"), default=None)
    if last is None:
        return _after_system(roles)
    answer = next((role for role in roles[last:] if role == "assistant" or role in _TOOL_ROLES), "")
    return _after_system(roles) if answer in _TOOL_ROLES else last


# --- reading an answer -----------------------------------------------------------------------------------------------


class _Content(msgspec.Struct):
    content: str | list[_Part | str] | None = None


class _Choice(msgspec.Struct):
    index: int | None = 0
    message: _Content | None = None
    delta: _Content | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Reply(msgspec.Struct):
    """A whole answer, or one chunk of a streamed one."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    object: Any = None
    error: Any = None

    @property
    def failed(self) -> bool:
        return self.error is not None or self.object == "error"  # the second is how older vLLM says it


_reply = msgspec.json.Decoder(_Reply)


def _read_reply(text: bytes) -> _Reply | None:
    try:
        return decode_repaired(_reply, text)[0]
    except UNREADABLE:
        return None


def _answer(text: str, complete: bool, finish_reason: str | None, usage: _Usage | None) -> Answer:
    return Answer(
        text=text,
        complete=complete,
        finish_reason=finish_reason,
        filtered=finish_reason == "content_filter",
        calls_tool=finish_reason in _CALLS_TOOL,
        input_tokens=usage.prompt_tokens if usage else None,
        output_tokens=usage.completion_tokens if usage else None,
    )


class _JsonReader:
    """A whole body. Refusals, reasoning and tool calls are not text: such an answer is complete and empty."""

    __slots__ = ("_body", "_tail")

    def __init__(self, answer_bytes_max: int, body_bytes_max: int) -> None:
        self._tail = TextTail(bytes_max=answer_bytes_max)
        self._body = BoundedBody(bytes_max=body_bytes_max)

    def feed(self, chunk: bytes) -> None:
        self._body.append(chunk)

    def end(self) -> Answer:
        reply = _read_reply(self._body.whole()) or _Reply()
        if not reply.choices:
            return _answer("", False, None, reply.usage)
        first = reply.choices[0]
        if first.message is not None:
            self._tail.append(_text(first.message.content, "\n"))
        return _answer(self._tail.text(), not reply.failed, first.finish_reason, reply.usage)


class _StreamReader:
    """A stream of chunks. Of several choices only the first is read. ``[DONE]`` may be missing, usage may come last.

    An event that cannot be read, before the answer is finished, is a hole in the text: not complete.
    """

    __slots__ = ("_done", "_events", "_finish_reason", "_lost", "_tail", "_usage")

    def __init__(self, answer_bytes_max: int, event_bytes_max: int) -> None:
        self._tail = TextTail(bytes_max=answer_bytes_max)
        self._events = EventStream(event_bytes_max=event_bytes_max)
        self._finish_reason: str | None = None
        self._usage: _Usage | None = None
        self._done = False
        self._lost = False

    def feed(self, chunk: bytes) -> None:
        for name, data in self._events.feed(chunk):
            self._event(name, data.strip())

    def end(self) -> Answer:
        for name, data in self._events.end():
            self._event(name, data.strip())
        finished = self._done or self._finish_reason is not None
        complete = finished and not self._lost and not self._events.oversize
        return _answer(self._tail.text(), complete, self._finish_reason, self._usage)

    def _event(self, name: str, data: str) -> None:
        if self._done or not data:
            return
        if data == "[DONE]":
            self._done = True
            return
        reply = _read_reply(data.encode())
        if reply is None:
            self._lost |= self._finish_reason is None or name == "error"
            return
        self._lost |= reply.failed or name == "error"
        self._usage = reply.usage or self._usage
        for choice in reply.choices or ():
            if not choice.index:
                self._choice(choice)

    def _choice(self, choice: _Choice) -> None:
        if choice.delta is not None:
            self._tail.append(_text(choice.delta.content, ""))
        self._finish_reason = choice.finish_reason or self._finish_reason
