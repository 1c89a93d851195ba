"""The OpenAI Responses API: ``POST /v1/responses``, as OpenAI, vLLM and others speak it.

A request is a list of items (messages, calls of tools, their outputs, reasoning) and perhaps ``instructions``. The API
does not carry instructions over to the next response of a chain, so every request gets the injection of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from semmem.dialects.answer import AnswerBuilder, Usage, readable
from semmem.dialects.elements import Told, elements_of
from semmem.dialects.inject import (
    ParsedRequest,
    after_system,
    first_system,
    last_user,
    message_json,
    nth,
    string_token,
)
from semmem.dialects.json_splice import (
    UNREADABLE,
    Edit,
    JsonObject,
    cut_members,
    insert_element,
    insert_member,
    read_object,
    splice,
)
from semmem.dialects.request import (
    OTHER_ROLE,
    OWN_MEMBERS,
    ROLES,
    Content,
    conversation_of,
    decoded,
    name_in,
    name_of,
    object_of,
    text_of,
    texts_of,
)
from semmem.memory import Conversation, Element, Injection, Message, Past, Role, ToolCall

_PREVIOUS, _CONVERSATION, _PROMPT = "previous_response_id", "conversation", "prompt"
"""Members by which something stands before the input that a request does not bring."""
_CHOOSES_FREELY = frozenset({"allowed_tools", "auto", "none", "required"})
_NULL = msgspec.Raw(b"null")


class _Item(msgspec.Struct):
    """One item of ``input`` or ``output``. What an item means by content depends on its type, so it stays unread."""

    type: str | None = None
    role: str | None = None
    id: Any = None
    call_id: Any = None
    approval_request_id: Any = None
    content: msgspec.Raw = _NULL
    output: msgspec.Raw = _NULL
    name: Any = None
    arguments: Any = None
    input: Any = None

    @property
    def is_message(self) -> bool:
        """A message need not say that it is one."""
        return self.type == "message" or (not self.type and self.role is not None)

    @property
    def is_output(self) -> bool:
        return self.type is not None and (self.type.endswith("_output") or self.type == "mcp_approval_response")

    @property
    def is_call(self) -> bool:
        return self.type is not None and (self.type.endswith("_call") or self.type == "mcp_approval_request")

    @property
    def is_reference(self) -> bool:
        return self.type == "item_reference" or (not self.type and self.role is None)

    @property
    def call(self) -> str:
        """What a call and its output have in common."""
        names = (self.call_id, self.approval_request_id, self.id)
        return next((name for name in names if isinstance(name, str) and name), "")


_items = msgspec.json.Decoder(list[_Item])
_content: msgspec.json.Decoder[Content] = msgspec.json.Decoder(Content)
_instructions: msgspec.json.Decoder[str | None] = msgspec.json.Decoder(str | None)


def parse(body: bytes) -> ResponsesRequest:
    """Raises Malformed. A request without ``input`` (a stored prompt has its own) has no user message."""
    source = read_object(body)
    top = source.values()
    instructions = decoded(_instructions, top.get("instructions", b"null"), "instructions")
    items = _read_input(top.get("input", b"null"))
    conversation = conversation_of(
        top,
        _messages(instructions, items),
        tool_turn=_awaits_output(items) or _names_a_tool(top),
        conversation_id=name_of(top, _CONVERSATION) or name_of(object_of(top, _CONVERSATION), "id"),
        previous_id=name_of(top, _PREVIOUS),
    )
    return ResponsesRequest(source, items, conversation)


class ResponsesRequest(ParsedRequest):
    """Position ``turn``: at the beginning of the user item.

    Position ``system``: at the end of ``instructions``; where there are none but a system or developer item in
    ``input``, at the end of that, since a server puts instructions before it as one more message; as the user at the
    beginning of the last user item.

    Otherwise system and developer texts go into ``instructions``, before the client's own words (``first``) or behind
    them; before the last user message, and whatever is said as the user, stands as an item of ``input``.
    """

    __slots__ = ("_items",)

    POSITIONS = (*ParsedRequest.POSITIONS, "input_item")
    LIST, PART = "input", "input_text"

    def __init__(self, source: JsonObject, items: Sequence[_Item], conversation: Conversation) -> None:
        super().__init__(source, conversation)
        self._items = items

    def elements(self) -> Sequence[Element]:
        """None where the API keeps the history itself: what a request brings is not all of it."""
        given, said = self._source.members.get("input"), self.conversation
        if given is None or not given.value.startswith(b"[") or said.previous_id or said.conversation_id:
            return ()
        told = zip(self._items, _seams(self._items), strict=False)
        return elements_of(given, [_told(item, may_part=seam) for item, seam in told])

    def keeps(self, injection: Injection) -> bool:
        """Items of ``input`` become part of the chain or conversation; ``instructions`` are said anew each time."""
        return injection.position in ("turn", "before_last_user", "input_item") or injection.role == "user"

    def placed(self, injection: Injection) -> Injection:
        """``input_item`` instead of ``system`` where it goes into an item of ``input``, which the API keeps."""
        if injection.position == "system" and injection.role != "user" and self._host(as_user=False) is not None:
            return replace(injection, position="input_item")
        return injection

    @property
    def whole(self) -> bool:
        """The user's words alone, or results of an earlier response's calls alone. Of both together a retry with other
        results would be recorded as the same step."""
        said = self.conversation
        if self.is_shortened or self._says(_PROMPT) or (self._says(_CONVERSATION) and said.conversation_id is None):
            return False
        if len(self._items) == 1 and _is_plain(self._items[0], "user", "input_text"):
            return True
        goes_on = said.previous_id is not None or said.conversation_id is not None
        return bool(self._items and goes_on) and all(map(_is_result, self._items))

    def with_history(self, history: Sequence[Past]) -> bytes | None:
        given = self._source.members.get("input")
        leads = [name for name in (_PREVIOUS, _CONVERSATION) if self._says(name)]
        if given is None or len(leads) != 1 or not _fits(self._items, history):
            return None
        edits = cut_members(self._source, leads)
        if not history:
            return splice(self._source.body, edits)
        before = b",".join(item for message in history for item in _past_items(message))
        if given.value.startswith(b'"'):
            opening = b"[" + before + b',{"type":"message","role":"user","content":'
            edits += [Edit(given.value_start, given.value_start, opening), Edit(given.end, given.end, b"}]")]
        else:
            edits.append(Edit(given.value_start + 1, given.value_start + 1, before + b","))
        return splice(self._source.body, edits)

    def _says(self, *names: str) -> bool:
        return any(name in self._source.members and self._source.members[name].value != b"null" for name in names)

    def _edits(self, injection: Injection) -> list[Edit]:
        if injection.position == "turn":
            users = (index for index, item in enumerate(self._items) if _speaks(item, "user"))
            index = nth(users, injection.at)
            return [] if index is None else self._merged_at(index, injection.text, behind=False)
        if injection.position in ("system", "input_item"):
            as_user = injection.role == "user"
            host = self._host(as_user=as_user)
            if host is not None and (merged := self._merged_at(host, injection.text, behind=not as_user)):
                return merged
        last_user = self._host(as_user=True)
        if injection.position == "before_last_user" and last_user is not None:
            return _insert_item(self._source, self._items, last_user, injection)
        if injection.role == "user" and self._items:
            index = 0 if injection.position == "first" else after_system(_roles(self._items))
            return _insert_item(self._source, self._items, index, injection)
        return self._instruct(injection)

    def _merged_at(self, index: int, text: str, *, behind: bool) -> list[Edit]:
        given = self._source.members["input"]
        if not given.value.startswith(b"["):
            return self._merged(given, text, behind=False)
        return self._merged_into(index, text, behind=behind)

    def _instruct(self, injection: Injection) -> list[Edit]:
        """Into the client's own string token, whose bytes stay; or a whole one where the client has none."""
        member = self._source.members.get("instructions")
        if member is None:
            return [insert_member(self._source, "instructions", string_token(injection.text), cutting=OWN_MEMBERS)]
        return self._merged(member, injection.text, behind=injection.position != "first")

    def _host(self, *, as_user: bool) -> int | None:
        """The item that takes the injection in: the user's last, or the first with instructions if it is they that a
        server puts in front."""
        if as_user:
            return last_user(_roles(self._items))
        if (own := self._source.members.get("instructions")) and (_instructions.decode(own.value) or "").strip():
            return None
        return first_system(_roles(self._items))


# --- reading a request -----------------------------------------------------------------------------------------------


def _read_input(raw: bytes) -> list[_Item]:
    """The items of ``input``. A string is short for one user message."""
    if raw == b"null":
        return []
    if raw.startswith(b'"'):
        return [_Item(role="user", content=msgspec.Raw(raw))]
    return decoded(_items, raw, "input")


def _messages(instructions: str | None, items: Sequence[_Item]) -> Iterator[Message]:
    if instructions:
        yield Message(Role.SYSTEM, instructions)
    for index, item in enumerate(items):
        if item.is_message:
            content = decoded(_content, item.content, f"input[{index}].content")
            yield Message(ROLES.get(item.role or "", OTHER_ROLE), text_of(content))
        elif item.is_output:
            yield Message(Role.TOOL, _output_text(item), name_in(item.call))


def _output_text(item: _Item) -> str:
    """What a tool said, when it said it in text; screenshots and the like have other shapes."""
    try:
        return text_of(_content.decode(item.output))
    except UNREADABLE:
        return ""


def _speaks(item: _Item, role: str) -> bool:
    return item.is_message and item.role == role


def _roles(items: Sequence[_Item]) -> list[str]:
    """Who says each item; nobody, what is no message."""
    return [item.role or "" if item.is_message else "" for item in items]


def _awaits_output(items: Sequence[_Item]) -> bool:
    """Whether the last thing that happened, apart from instructions and the model's own items, is a tool's output."""
    return next((item.is_output for item in reversed(items) if item.is_output or _speaks(item, "user")), False)


def _names_a_tool(top: Mapping[str, bytes]) -> bool:
    """``tool_choice`` {"type": "function", "name": ...}, or a hosted tool by its type: {"type": "file_search"}."""
    kind = name_of(object_of(top, "tool_choice"), "type")
    return kind is not None and kind not in _CHOOSES_FREELY


def _is_result(item: _Item) -> bool:
    """A result of a tool that is known whole by its text."""
    return item.type == "function_call_output" and bool(name_in(item.call)) and _is_text(item.output, "input_text")


def _is_plain(item: _Item, role: str, part: str) -> bool:
    """A message of this role that is known whole by its text."""
    return _speaks(item, role) and _is_text(item.content, part)


def _is_text(raw: msgspec.Raw, part: str) -> bool:
    """Whether a content is a string, or one part of this type."""
    try:
        content = _content.decode(raw)
    except UNREADABLE:
        return False
    if isinstance(content, str):
        return True
    if content is None or len(content) != 1:
        return False
    (only,) = content
    return not isinstance(only, str) and only.type == part and isinstance(only.text, str)


# --- parting it ------------------------------------------------------------------------------------------------------


def _told(item: _Item, *, may_part: bool) -> Told:
    said = list(_messages(None, [item]))
    role, text = said[0].role if said else Role.ASSISTANT, said[0].text if said else ""
    is_answer = item.is_message and role is Role.ASSISTANT
    return Told(
        role,
        text,
        messages=len(said),
        speaks=item.is_message and role is Role.USER and bool(text.strip()),
        concludes=is_answer and bool(text.strip()),
        calls=(item.call,) if item.is_call else (),
        open=not may_part,
    )


# --- rewriting it ----------------------------------------------------------------------------------------------------


def _insert_item(source: JsonObject, items: Sequence[_Item], index: int, injection: Injection) -> list[Edit]:
    member = source.members["input"]
    item = message_json(injection)
    if member.value.startswith(b'"'):
        before = b"[" + item + b',{"role":"user","content":'
        return [Edit(member.value_start, member.value_start, before), Edit(member.end, member.end, b"}]")]
    return [insert_element(member, _nearest_seam(items, index), item)]


def _fits(items: Sequence[_Item], history: Sequence[Past]) -> bool:
    """Whether the items go on from this history: they begin with the results of its last calls, each once, and nothing
    in them points to what a server keeps. There may be no history yet."""
    if not items or any(item.is_reference for item in items):
        return False
    wanted = sorted(call.id for call in history[-1].calls) if history else []
    first, rest = items[: len(wanted)], items[len(wanted) :]
    if sorted(item.call for item in first) != wanted or any(item.type != "function_call_output" for item in first):
        return False
    called = {item.call for item in rest if item.is_call}
    return all(item.call in called for item in rest if item.is_output)


def _past_items(message: Past) -> Iterator[bytes]:
    """A message of a history as items: words, then calls; or a result."""
    if message.role is Role.TOOL:
        yield _item_json(type="function_call_output", call_id=message.answers, output=message.text)
        return
    if message.text or not message.calls:
        yield _item_json(type="message", role=message.role.value, content=message.text)
    for call in message.calls:
        yield _item_json(type="function_call", call_id=call.id, name=call.name, arguments=call.arguments)


def _item_json(**members: str) -> bytes:
    return b"{" + b",".join(string_token(name) + b":" + string_token(text) for name, text in members.items()) + b"}"


def _nearest_seam(items: Sequence[_Item], index: int) -> int:
    """Where an item may stand: at ``index`` or, where that would part what belongs together, as little before as
    possible; behind it only when the first items go on from calls of an earlier response."""
    seams = _seams(items)
    before = next((place for place in range(index, -1, -1) if seams[place]), None)
    return before if before is not None else seams.index(True, index)


def _seams(items: Sequence[_Item]) -> list[bool]:
    """For every place in the list, the end included: whether it parts neither a call from its output nor reasoning from
    the item that it led to (either is refused with 400). An item given by reference may be any call."""
    seams = [True] * (len(items) + 1)
    open_outputs: set[str] = set()
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if item.is_output:
            open_outputs.add(item.call)
        elif item.is_call:
            open_outputs.discard(item.call)
        elif item.is_reference:
            open_outputs.clear()
        seams[index] = not open_outputs and (index == 0 or items[index - 1].type != "reasoning")
    return seams


# --- reading an answer -----------------------------------------------------------------------------------------------

_PROPER_ENDS = frozenset({"completed", "max_output_tokens", "content_filter"})
_CLIENTS_CALLS = frozenset(
    {"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"}
    | {"mcp_approval_request"}
)
_FAILED = frozenset({"failed", "cancelled"})
_FINAL = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})


class _Details(msgspec.Struct, gc=False):
    reason: str | None = None


class _Response(msgspec.Struct):
    id: str | None = None
    model: Any = None
    status: str | None = None
    error: Any = None
    incomplete_details: _Details | None = None
    output: list[_Item] | None = None
    usage: Usage | None = None

    @property
    def finish_reason(self) -> str | None:
        """Why it ended, as precisely as it says."""
        code = self.error.get("code") if isinstance(self.error, dict) else None
        why = self.incomplete_details.reason if self.incomplete_details else None
        return (code if isinstance(code, str) else None) or why or self.status

    def text(self) -> str | None:
        """The visible text of all messages, a line end between two parts; None when there is no readable output."""
        if not self.output:
            return None
        try:
            parts = [
                part for item in self.output if item.is_message for part in texts_of(_content.decode(item.content))
            ]
        except UNREADABLE:
            return None
        return "\n".join(part for part in parts if part)


class _ResponseEvent(msgspec.Struct):
    type: str = ""
    response: _Response | None = None
    output_index: int | None = None
    content_index: int | None = None
    delta: Any = None  # a string in a delta of text
    text: Any = None
    code: Any = None
    error: Any = None


_response = msgspec.json.Decoder(_Response)
_event = msgspec.json.Decoder(_ResponseEvent)


class ResponsesAnswer(AnswerBuilder):
    """Refusals, reasoning and calls are not text: such an answer is complete and empty. A stream's last event repeats
    the whole output. Where it does, its word counts and no hole in the deltas matters; where it does not, an event that
    cannot be read before it makes the answer incomplete."""

    REFUSALS = frozenset({"content_filter", "invalid_prompt", "image_content_policy_violation"})

    def __init__(self, answer_bytes_max: int, calls_bytes_max: int = 0) -> None:
        super().__init__(answer_bytes_max, calls_bytes_max)
        self._is_recorded = calls_bytes_max > 0
        self._final = _Response()
        self._repeats_all = False
        self._part: tuple[int | None, int | None] | None = None

    @property
    def complete(self) -> bool:
        intact = self._repeats_all or not self.lost
        return intact and self._final.error is None and self.finish_reason in _PROPER_ENDS

    @property
    def calls_tool(self) -> bool:
        """Whether the client has to do something; tools that the provider runs itself are done by now."""
        return self.tool_calls > 0

    def read_body(self, body: bytes) -> None:
        response = readable(_response, body) or _Response()
        self._end(response)
        self.lost = response.output != []

    def read_event(self, name: str, data: str) -> None:
        if data == "[DONE]":
            return
        event = self.decoded(_event, name, data) or _ResponseEvent()
        kind = event.type or name
        if event.response is not None:
            self.answer_id = event.response.id or self.answer_id
        if kind == "error" or event.error is not None:
            self._end(_Response(error=event.error or {"code": event.code}))
        elif kind == "response.output_text.delta":
            self._append(event, event.delta)
        elif kind == "response.output_text.done" and self._part != (event.output_index, event.content_index):
            self._append(event, event.text)  # a server that streams whole parts
        elif kind in _FINAL:
            final = event.response or _Response()
            final.status = final.status or kind.removeprefix("response.")
            self._end(final)

    def _end(self, response: _Response) -> None:
        text = response.text()
        if text:
            self.tail.clear()
            self.tail.append(text)
        self._final, self._repeats_all, self.ended = response, text is not None, True
        self.broke = response.error is not None or response.status in _FAILED
        calls = [item for item in response.output or () if item.type in _CLIENTS_CALLS]
        self.tool_calls = len(calls)
        for place, item in enumerate(calls):
            told = item.arguments if item.arguments is not None else item.input
            self.calls.add(place, id=item.call, name=item.name or item.type, arguments=told)
        self.named(response.model)
        self.finish_reason, self.answer_id = response.finish_reason, response.id or self.answer_id
        self.count(response.usage)
        if self._is_recorded:  # nobody else asks, and it reads the output once more
            self.whole = text is not None and text == self.tail.text() and self._tells_all(response.output or [])

    def _tells_all(self, output: Sequence[_Item]) -> bool:
        """Whether text and calls, in this order, are all of it but reasoning."""
        told = [item for item in output if item.type != "reasoning"]
        calls = told[next((at for at, item in enumerate(told) if item.type == "function_call"), len(told)) :]
        kept = tuple(ToolCall(item.call, item.name, item.arguments) for item in calls)
        spoken = told[: len(told) - len(calls)]
        return (
            self.finish_reason == "completed"
            and all(item.type == "function_call" for item in calls)
            and kept == self.calls.told()
            and len(spoken) <= 1
            and all(_is_plain(item, "assistant", "output_text") for item in spoken)
        )

    def _append(self, event: _ResponseEvent, piece: Any) -> None:
        if not isinstance(piece, str):
            self.lost = True
            return
        part = (event.output_index, event.content_index)
        if piece and self._part not in (None, part):
            self.tail.append("\n")
        if piece:
            self._part = part
        self.tail.append(piece)
