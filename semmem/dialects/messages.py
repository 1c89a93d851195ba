"""The Anthropic Messages API: ``POST /v1/messages``, as Anthropic, LiteLLM, vLLM and others speak it.

What is particular about it: instructions stand outside the messages, in ``system``; a tool's result comes back inside
a user message, so the role alone does not say who speaks; and roles alternate, so memory is added as a text block and
never as a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from semmem.dialects.answer import ABSENT, AnswerBuilder, Usage, counted, readable
from semmem.dialects.elements import Told, elements_of, named
from semmem.dialects.inject import ParsedRequest, add_part, first_system, nth, string_token
from semmem.dialects.json_splice import UNREADABLE, Edit, JsonObject, Malformed, insert_member, read_object
from semmem.dialects.request import (
    OTHER_ROLE,
    ROLES,
    conversation_of,
    decoded,
    name_in,
    name_of,
    object_of,
)
from semmem.memory import Conversation, Element, Injection, Message, Role


class _Block(msgspec.Struct):
    type: str = ""
    text: Any = None  # a string in a text block; what other blocks call text is theirs
    tool_use_id: Any = None
    content: msgspec.Raw = msgspec.Raw()  # looked into only in a tool's result: there may be megabytes of images
    id: Any = None

    @property
    def is_result(self) -> bool:
        return self.type == "tool_result" or self.type.endswith("_tool_result")

    @property
    def is_call(self) -> bool:
        return self.type == "tool_use" or self.type.endswith("_tool_use")


_Content = str | list[_Block | str] | None


class _MessageParam(msgspec.Struct):
    role: str = ""
    content: _Content = None


_messages = msgspec.json.Decoder(list[_MessageParam])
_content: msgspec.json.Decoder[_Content] = msgspec.json.Decoder(_Content)


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where the user's own words begin: a message, and the block behind its last tool result."""

    message: int
    block: int


def parse(body: bytes) -> MessagesRequest:
    """Raises Malformed."""
    source = read_object(body)
    top = source.values()
    messages = decoded(_messages, top.get("messages", b"[]"), "messages")
    if not messages:
        raise Malformed(f"messages: {'empty' if 'messages' in top else 'missing'}")
    system = decoded(_content, top.get("system", b"null"), "system")
    instructions = () if system is None else (Message(Role.SYSTEM, _text(system)),)
    conversation = conversation_of(
        top,
        (*instructions, *[said for message in messages for said in _said(message)]),
        tool_turn=_awaits_tool_result(messages) or name_of(object_of(top, "tool_choice"), "name") is not None,
    )
    return MessagesRequest(source, messages, system, conversation)


class MessagesRequest(ParsedRequest):
    """Position ``turn``: in front of the user's own words in the message, as below; nowhere else, since another
    injection may stand in ``system``.

    Position ``system``: behind what ``system`` says, in the same string, or as one more block of a list; as the user at
    the beginning of the user's last own words, in the same way. At the other positions it is one more block always.

    Role ``system`` or ``developer``: in front of the other blocks of ``system`` (position ``first``) or behind them
    (``after_system``). Providers cache prompts by their beginning, in the order tools, system, messages: a block behind
    the client's own, and behind its ``cache_control``, leaves the cached part as it was; one in front makes the
    provider read everything anew whenever the memories change.

    Position ``before_last_user``, or role ``user`` at any position: in front of the user's last own words, in the same
    message, behind the results of tools, which must come first there. In front of ``system`` or behind it, as above,
    when no user speaks.
    """

    __slots__ = ("_messages", "_own", "_system")

    def __init__(
        self, source: JsonObject, messages: Sequence[_MessageParam], system: _Content, conversation: Conversation
    ) -> None:
        super().__init__(source, conversation)
        self._messages = messages
        self._own: list[_Spot] | None = None
        self._system = system

    def elements(self) -> Sequence[Element]:
        messages = self._source.members["messages"]
        return elements_of(messages, [_told(each) for each in decoded(_messages, messages.value, "messages")])

    def _edits(self, injection: Injection) -> list[Edit]:
        if injection.position == "turn":
            if self._own is None:  # read once, however many injections there are
                self._own = _spots(self._messages)
            if (spot := nth(self._own, injection.at)) is None:
                return []
            return self._merged_into(spot.message, injection.text, behind=False, at=spot.block)
        as_user = injection.role == "user" or injection.position == "before_last_user"
        beside_user = self._beside_user(injection.text, injection.position) if as_user else []
        return beside_user or self._beside_system(injection.text, injection.position)

    def _beside_user(self, text: str, position: str) -> list[Edit]:
        """Nothing when no user speaks, or when a message names its content twice: no reader would read it alike."""
        if (spot := _spot(self._messages)) is None:
            return []
        if position == "system":
            return self._merged_into(spot.message, text, behind=False, at=spot.block)
        try:
            content = self._element(spot.message).members.get("content")
        except Malformed:
            return []
        return [] if content is None or content.value == b"null" else add_part(content, text, index=spot.block)

    def _beside_system(self, text: str, position: str) -> list[Edit]:
        """A message with instructions takes the place of a missing ``system``: servers other than Anthropic's accept
        that."""
        if position == "system" and not _text(self._system).strip():
            instructing = first_system([message.role for message in self._messages])
            if instructing is not None and (merged := self._merged_into(instructing, text, behind=True)):
                return merged
        system = self._source.members.get("system")
        if system is None:
            return [insert_member(self._source, "system", string_token(text))]
        if position == "system":
            return self._merged(system, text, behind=True)
        index = 0 if position == "first" else len(_blocks(self._system))
        return add_part(system, text, index=index)


# --- reading a request -----------------------------------------------------------------------------------------------


def _said(message: _MessageParam) -> Iterator[Message]:
    """A user message apart: what tools say in it, then what the user does."""
    if message.role != "user":
        answered = message.role == "assistant"
        yield Message(ROLES.get(message.role, OTHER_ROLE), (_spoken if answered else _text)(message.content))
        return
    results, own = _results(message), _text(message.content)
    yield from (Message(Role.TOOL, _result_text(result), name_in(result.tool_use_id)) for result in results)
    if not results or own.strip():
        yield Message(Role.USER, own)


def _blocks(content: _Content) -> Sequence[_Block | str]:
    return content if isinstance(content, list) else () if content is None else (content,)


def _results(message: _MessageParam) -> list[_Block]:
    return [block for block in _blocks(message.content) if isinstance(block, _Block) and block.is_result]


def _is_text(block: _Block) -> bool:
    return block.type == "text" and isinstance(block.text, str)


def _text(content: _Content) -> str:
    blocks = _blocks(content)
    return "\n".join([b if isinstance(b, str) else b.text for b in blocks if isinstance(b, str) or _is_text(b)])


def _spoken(content: _Content) -> str:
    """The assistant's earlier words, joined like those of an answer."""
    voice = _Voice()
    blocks = (_Block("text", b) if isinstance(b, str) else b for b in _blocks(content))
    return "".join([voice.block(block.type, block.text if _is_text(block) else "") for block in blocks])


def _result_text(result: _Block) -> str:
    try:
        return _text(_content.decode(result.content))
    except UNREADABLE:
        return ""  # of a shape yet unknown


def _awaits_tool_result(messages: Sequence[_MessageParam]) -> bool:
    """Whether the last thing that happened, apart from instructions and the model's own words, is a tool's result."""
    last = next((message for message in reversed(messages) if message.role == "user"), _MessageParam())
    return bool(_results(last)) and not _text(last.content).strip()


def _spot(messages: Sequence[_MessageParam]) -> _Spot | None:
    """Of the user's last words; of the first message without any where there are none."""
    spoken = (index for index in reversed(range(len(messages))) if messages[index].content is not None)
    found = next((spot for index in spoken if (spot := _spot_in(messages, index)) is not None), None)
    return found or next(iter(_spots(messages)), None)


def _spots(messages: Sequence[_MessageParam]) -> list[_Spot]:
    """Of each Message that the user is read to say."""
    return [spot for index in range(len(messages)) if (spot := _spot_in(messages, index)) is not None]


def _spot_in(messages: Sequence[_MessageParam], index: int) -> _Spot | None:
    message = messages[index]
    if message.role != "user":
        return None
    ends = [at + 1 for at, b in enumerate(_blocks(message.content)) if isinstance(b, _Block) and b.is_result]
    return _Spot(index, ends[-1] if ends else 0) if not ends or _text(message.content).strip() else None


# --- parting it ------------------------------------------------------------------------------------------------------


def _told(message: _MessageParam) -> Told:
    said, role = list(_said(message)), ROLES.get(message.role, OTHER_ROLE)
    blocks = [block for block in _blocks(message.content) if isinstance(block, _Block)]
    calls, results = [b for b in blocks if b.is_call], [b for b in blocks if b.is_result]
    text = "\n".join(each.text for each in said)
    return Told(
        role,
        text,
        messages=len(said),
        speaks=any(each.role is Role.USER and each.text.strip() for each in said),
        concludes=role is Role.ASSISTANT and not calls and not results and bool(text.strip()),
        calls=named(block.id for block in calls),
        answers=named(block.tool_use_id for block in results),
        open=bool(results),
    )


# --- reading an answer -----------------------------------------------------------------------------------------------


class _Piece(msgspec.Struct):
    """A block of an answer, or what a stream adds to one."""

    type: str = ""
    text: Any = None
    stop_reason: str | None = None
    id: Any = None
    name: Any = None
    input: msgspec.Raw = ABSENT
    partial_json: Any = None

    @property
    def is_hole(self) -> bool:
        return self.type in ("text", "text_delta") and not isinstance(self.text, str)


class _MessagesUsage(Usage, gc=False):
    """Input that was read from the provider's cache, or written to it, is not in ``input_tokens``."""

    cache_read_input_tokens: msgspec.Raw = ABSENT
    cache_creation_input_tokens: msgspec.Raw = ABSENT

    def cached(self) -> int | None:
        return counted(self.cache_read_input_tokens)

    def uncached_beside(self) -> int | None:
        return counted(self.cache_creation_input_tokens)


class _AnswerMessage(msgspec.Struct):
    """A whole answer, or the beginning of a streamed one."""

    id: Any = None
    type: Any = None
    model: Any = None
    content: list[_Piece] | None = None
    stop_reason: str | None = None
    usage: _MessagesUsage | None = None
    error: Any = None


class _MessageEvent(msgspec.Struct):
    """One event of a stream; which members it has depends on its type."""

    type: str = ""
    message: _AnswerMessage | None = None
    content_block: _Piece | None = None
    delta: _Piece | None = None
    usage: _MessagesUsage | None = None
    error: Any = None


_answer_message = msgspec.json.Decoder(_AnswerMessage)
_event = msgspec.json.Decoder(_MessageEvent)


class _Voice:
    """Joins text blocks. Neighbours are one text, cut where a citation begins; after anything else a line begins."""

    __slots__ = ("_apart", "_spoke")

    def __init__(self) -> None:
        self._spoke = False
        self._apart = False

    def block(self, kind: str, text: str) -> str:
        """A block begins: what to add to the text."""
        self._apart |= kind != "text"
        return self.say(text)

    def say(self, text: str) -> str:
        """The block goes on: what to add to the text."""
        if not text:
            return ""
        line_end = "\n" if self._apart and self._spoke else ""
        self._apart, self._spoke = False, True
        return line_end + text


class MessagesAnswer(AnswerBuilder):
    """Thinking and calls of tools are not text: such an answer is complete and empty. Events of a stream are told apart
    by the type in their data or else by their name: gateways drop the one or the other. Those of types yet unknown are
    none of our business, as the API's contract asks of clients."""

    REFUSALS = frozenset({"refusal"})
    TOOL_CALLS = frozenset({"tool_use", "pause_turn"})
    COUNTS_CACHED_APART = True

    def __init__(self, answer_bytes_max: int, calls_bytes_max: int = 0) -> None:
        super().__init__(answer_bytes_max, calls_bytes_max)
        self._voice = _Voice()

    def read_body(self, body: bytes) -> None:
        message = readable(_answer_message, body) or _AnswerMessage()
        self._begin(message)
        self.finish_reason = message.stop_reason
        for block in message.content or ():
            self._block(block)
            self.lost |= block.is_hole
        self.lost |= message.error is not None or message.type == "error" or message.content is None
        self.ended = True

    def read_event(self, name: str, data: str) -> None:
        event = self.decoded(_event, name, data)
        if event is None:
            return
        kind = event.type or name
        self.lost |= "error" in (kind, name) or event.error is not None
        match kind:
            case "message_start" if event.message is not None:
                self._begin(event.message)
            case "content_block_start" if event.content_block is not None:
                self._block(event.content_block)
            case "content_block_delta" if event.delta is not None:
                self._delta(event.delta)
            case "message_delta":
                self.count(event.usage)
                self.finish_reason = (event.delta and event.delta.stop_reason) or self.finish_reason
            case "message_stop":
                self.ended = True

    def _begin(self, message: _AnswerMessage) -> None:
        self.answer_id = message.id if isinstance(message.id, str) and message.id else None
        self.count(message.usage)
        self.named(message.model)

    def _block(self, block: _Piece) -> None:
        if block.type == "tool_use":
            self.tool_calls += 1
            told = bytes(block.input).decode("utf-8", "replace")
            arguments = None if told == "{}" else told  # a stream begins with that, and goes on in pieces
            self.calls.add(self.tool_calls, id=block.id, name=block.name, arguments=arguments)
        text = block.text if block.type == "text" and isinstance(block.text, str) else ""
        self.tail.append(self._voice.block(block.type, text))

    def _delta(self, delta: _Piece) -> None:
        self.lost |= delta.is_hole
        if delta.type == "text_delta" and not delta.is_hole:
            self.tail.append(self._voice.say(delta.text))
        elif delta.type == "input_json_delta" and self.tool_calls:
            self.calls.add(self.tool_calls, arguments=delta.partial_json)
