"""The user's messages of one request: which are current, which are its history, and how each is recognised later.

A client that keeps the history itself sends all of it with every request. So a message is recognised by a digest of
the user, the session and its text, and by its place among the user's messages. The session is taken without the time
at which it began: the same history after a pause belongs to another session, but its messages are not new."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property

import msgspec

from semmem.memory import Conversation, Role
from semmem.text.digest import known_digest
from semmem.turns.sessions import message_id, session_without_start

_USER, _ASSISTANT, _TOOL = Role.USER, Role.ASSISTANT, Role.TOOL
"""Looked up once: each look costs more than comparing."""


class UserMessage(msgspec.Struct, frozen=True):
    """One user message that has text. ``ordinal`` counts the request's user messages, those without text too, from 1.
    ``id`` is the same wherever in the conversation the words stand. ``text`` is stripped, else as it came."""

    id: str
    ordinal: int
    text: str

    @property
    def place(self) -> str:
        return f"{self.id}.{self.ordinal}"


class UserMessages:
    """The user's messages of one request, each read when somebody asks for it, and once. Current are the last one and
    those before it without an answer between them: what the request is about. At most ``chars_max`` characters of a
    text tell it from others. What somebody else says in the user's role, by its name, has its place, and counts as
    without text."""

    def __init__(self, conversation: Conversation, *, user: str, session: str, chars_max: int) -> None:
        self._messages = messages = conversation.messages
        self._places = places = [i for i, message in enumerate(messages) if message.role is _USER]
        self._first_current = self._first_of_run(len(places) - 1)
        self._name = (user, session_without_start(session))
        self._read = dict[int, UserMessage]()
        self._user = user
        self.chars_max = chars_max
        self.current_count = len(places) - self._first_current
        after = {message.role for message in messages[places[-1] + 1 :]} if places else set[Role]()
        self.tool_spoke = _TOOL in after
        """Whether a tool speaks behind the user's words: an earlier request has brought them."""
        self.answered = self.tool_spoke or _ASSISTANT in after
        """Whether anybody speaks behind them."""

    def named(self, user: str, session: str) -> UserMessages:
        """Itself, from here on as this user's messages in this session."""
        self._name, self._user = (user, session_without_start(session)), user
        self._read.clear()
        self.__dict__.pop("key", None)
        return self

    @cached_property
    def key(self) -> str:
        """The bare name of the conversation, whenever it began. To be asked for when the session is known."""
        return known_digest(*self._name)

    @property
    def speak(self) -> bool:
        """Whether the user says anything in the current messages."""
        return any(self._own_text(number) for number in range(len(self._places) - 1, self._first_current - 1, -1))

    @property
    def of_others(self) -> int:
        """How many of the current messages somebody else says."""
        return sum(not self._messages[place].is_own(self._user) for place in self._places[self._first_current :])

    def current(self) -> Iterator[UserMessage]:
        """Oldest first."""
        return self._with_text(range(self._first_current, len(self._places)))

    def current_backwards(self) -> Iterator[UserMessage]:
        """Newest first."""
        return self._with_text(range(len(self._places) - 1, self._first_current - 1, -1))

    def history_backwards(self) -> Iterator[UserMessage]:
        """Everything before the current messages, newest first."""
        return self._with_text(range(self._first_current - 1, -1, -1))

    def answered_before_backwards(self) -> Iterator[UserMessage]:
        """The messages that the newest answer of the history was given to, newest first."""
        last = self._first_current - 1
        return self._with_text(range(last, self._first_of_run(last) - 1, -1))

    def answer_to(self, said: UserMessage) -> str:
        """What assistants said from there to the next user message."""
        end = self._places[said.ordinal] if said.ordinal < len(self._places) else len(self._messages)
        spoken = self._messages[self._places[said.ordinal - 1] : end]
        return "\n".join(message.text for message in spoken if message.role is _ASSISTANT and message.text)

    def _first_of_run(self, last: int) -> int:
        """The number of the first user message behind the assistant's last words before message number ``last``."""
        if last < 0:
            return 0
        before = range(self._places[last] - 1, -1, -1)
        answer = next((place for place in before if self._messages[place].role is _ASSISTANT), -1)
        return bisect_right(self._places, answer)

    def _with_text(self, numbers: Iterable[int]) -> Iterator[UserMessage]:
        for number in numbers:
            said = self._read.get(number)
            if said is None and (text := self._own_text(number)):
                said = UserMessage(message_id(*self._name, text[: self.chars_max]), number + 1, text)
                self._read[number] = said
            if said is not None:
                yield said

    def _own_text(self, number: int) -> str:
        message = self._messages[self._places[number]]
        return message.text.strip() if message.is_own(self._user) else ""
