"""Requests and answers as turns in the journal: every new user message opens one, and so do messages of the history
that semmem never saw.

Of several messages without an answer between them the last is the turn that the answer is observed for; the others end
as it does. A message that is recovered from the history is closed with the answer that the client resends with it:
that answer will not be observed any more."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from semmem.memory import Answer, Conversation, Role, Scope, Turn, TurnEnding
from semmem.ports import spans
from semmem.ports.names import bounded, usable
from semmem.ports.recording import TURN_CHARS_MAX, TurnClosed
from semmem.turns.observation import Ticket
from semmem.turns.recovery import Chosen, Recovery, UnreadHistories, UnreadHistory
from semmem.turns.sessions import AnsweredTurn, Sessions, turn_id
from semmem.turns.user_messages import UserMessage, UserMessages

OBSERVING = ("observe", "single_filter")
"""Ways of capturing answers that need a ticket; ``history`` takes them from the next request, ``off`` does without."""

APART_S = 1e-6
"""Between the openings of two turns of one request: their order in time is the order they were said in."""


class TurnJournal(Protocol):
    """Takes halves of turns without waiting."""

    def offer(self, half: Turn | TurnClosed) -> bool: ...


class CurrentTurn(Struct, frozen=True):
    """The turn that a request belongs to; ``scope`` has its session, where that is known. ``opened``: the request
    brings words of the user's own, which begin this turn or are resent. Without them (a tool's result) ``id`` is the
    turn whose answer the request goes on from; None where that is not known. ``messages``: those that the request
    brings, if anybody speaks in the user's role. ``after``: the answer that they go on from, where the API keeps the
    history; ``after_turn``: the id of that answer's turn, as far as it is known."""

    scope: Scope
    id: str | None = None
    opened: Turn | None = None
    messages: UserMessages | None = None
    after: str = ""
    after_turn: str = ""


@dataclass(eq=False)
class TurnRecorder:
    """Makes turns of requests and answers, and offers them to the journal. ``turn_chars_max`` characters are kept of a
    user's text, ``answer_bytes_max`` of an answer."""

    sessions: Sessions
    journal: TurnJournal
    recovery: Recovery = field(default_factory=Recovery)
    _: KW_ONLY
    capture: str = "observe"
    turn_chars_max: int = TURN_CHARS_MAX
    answer_bytes_max: int = 64 * 1024
    unread: UnreadHistories = field(default_factory=UnreadHistories)

    async def current(
        self,
        conversation: Conversation,
        scope: Scope,
        now: float,
        request_id: str,
        *,
        before: AnsweredTurn | None = None,
    ) -> CurrentTurn:
        """The turn that the request's own words begin or belong to; without any, the one it goes on from: ``before``,
        where that is known."""
        messages = self._messages(conversation, scope)
        if not messages.speak:
            if messages.of_others:  # what is answered is no turn of the user's
                return CurrentTurn(scope, messages=messages)
            before = before or await self._continued(conversation, scope)
            return CurrentTurn(replace(scope, session=before.session), before.turn_id) if before else CurrentTurn(scope)
        session = await self.sessions.name(scope, conversation, now)
        scope, messages = Scope(scope.user, scope.project, scope.agent, session), messages.named(scope.user, session)
        said, after = next(messages.current_backwards()), await self._after(conversation, scope)
        turn = Turn(
            id=turn_id(scope, said.ordinal, said.text, after=after),
            scope=scope,
            ordinal=said.ordinal,
            user_text=storable(said.text, self.turn_chars_max),
            opened_at=now,
            request_id=request_id,
            resumed=messages.tool_spoke,
            message_id=said.id,
            model=usable(conversation.model) or "",
            trace=spans.current().place.traceparent,
        )
        before = await self.sessions.answered(scope.user, after) if after else None
        return CurrentTurn(scope, turn.id, turn, messages, after, before.turn_id if before else "")

    async def record(self, current: CurrentTurn, conversation: Conversation, dialect: str) -> Ticket | None:
        """Offer to the journal what the request brings; a ticket when its answer is to be observed."""
        if current.messages is not None:
            self.recovery.passes_over(current.messages)
        if current.opened is not None and current.messages is not None:
            return await self._record_opened(current.opened, current.messages, current.after, conversation, dialect)
        if current.id is None or self.capture not in OBSERVING:
            return None
        self.sessions.opened(current.id, current.scope)
        return Ticket(current.id, dialect)

    async def decline(self, scope: Scope | None, conversation: Conversation, now: float) -> None:
        """Remember that the request's own words are not to be kept, not from a later history either."""
        if scope is None:
            messages = UserMessages(conversation, user="", session="", chars_max=self.turn_chars_max)
            oldest = islice(messages.current(), self.recovery.rules.new_turns_max)
            self.recovery.seen.declined_anonymously(said.text for said in oldest)
        elif any(message.role is Role.USER for message in conversation.messages):
            scope = replace(scope, session=await self.sessions.name_without_start(scope, conversation))
            for said in self.recovery.declines(self._messages(conversation, scope), now):
                self.journal.offer(TurnClosed(said.place, TurnEnding.DECLINED, now))

    def close(self, ticket: Ticket, ending: TurnEnding, answer: Answer | None, now: float) -> None:
        """Offer to the journal how the answer to a ticket's turn ended, for that turn and the earlier ones with it."""
        name = bounded(answer.answer_id) if answer is not None else None
        if name:
            self.sessions.closed(ticket.turn_id, name, now)
        if ending is TurnEnding.UNKNOWN_ENCODING:  # a word of its own for the operator only
            ending = TurnEnding.ANSWER_LOST
        goes_on = ending is TurnEnding.CONTINUES
        if goes_on and not name:
            return
        for earlier in () if goes_on else ticket.earlier:
            self.journal.offer(TurnClosed(earlier, ending, now))
        text = storable(answer.text) if answer is not None and ending is TurnEnding.ANSWERED else None
        reason = usable(answer.finish_reason) if answer is not None else None
        here = spans.current().place.traceparent
        self.journal.offer(TurnClosed(ticket.turn_id, ending, now, text, reason, name, here))

    async def read_again(self) -> None:
        """Recover what stands in histories that were not compared with the journal, as far as it answers now."""
        for unread in self.unread.waiting():
            newest, messages = unread.newest, unread.messages
            user, session = newest.scope.user, newest.scope.session or ""
            chosen = await self.recovery.choose(messages, user=user, session=session, now=newest.opened_at)
            if chosen.unread:
                return
            last = next(messages.current_backwards())
            opened = self._opened(newest, replace(chosen, current=(last,)), unread.after)
            if unread in self.unread.waiting() and self._offer_all(messages, replace(chosen, current=()), opened[:-1]):
                self.unread.drop(unread)

    async def _record_opened(
        self, turn: Turn, messages: UserMessages, after: str, conversation: Conversation, dialect: str
    ) -> Ticket | None:
        session, now = turn.scope.session or "", turn.opened_at
        chosen = await self.recovery.choose(
            messages, user=turn.scope.user, session=session, now=now, history=not _kept_by_api(conversation)
        )
        opened = self._opened(turn, chosen, after)
        accepted = self._offer_all(messages, chosen, opened)
        if not chosen.current or chosen.current[-1].ordinal != turn.ordinal:
            return None  # the turn itself is not to be kept
        if chosen.unread:
            self.unread.keep(conversation, UnreadHistory(turn, messages, after))
        if accepted and chosen.complete and not _kept_by_api(conversation):
            self.recovery.seen.settled.put(messages.key, chosen.current[-1].place)
            self.unread.settled(messages.key)
        if self.capture == "history" and not _kept_by_api(conversation):
            self._close_from_history(messages, turn)
        if not accepted or self.capture not in OBSERVING:
            return None
        self.sessions.opened(turn.id, turn.scope)
        earlier = opened[len(chosen.recovered) : -1]
        return Ticket(turn.id, dialect, tuple(each.id for each in earlier))

    def _messages(self, conversation: Conversation, scope: Scope) -> UserMessages:
        return UserMessages(conversation, user=scope.user, session=scope.session or "", chars_max=self.turn_chars_max)

    async def _after(self, conversation: Conversation, scope: Scope) -> str:
        """The answer that a request goes on from, where the API keeps the history: it tells the same words apart."""
        if conversation.previous_id or conversation.conversation_id is None:
            return conversation.previous_id or ""
        latest = await self.sessions.latest(scope)
        return latest.answer_id if latest else ""

    async def _continued(self, conversation: Conversation, scope: Scope) -> AnsweredTurn | None:
        """A request without words of the user's own (a tool's result) extends the turn whose answer it goes on from."""
        if conversation.previous_id:
            return await self.sessions.answered(scope.user, conversation.previous_id)
        return await self.sessions.latest(replace(scope, session=scope.session or conversation.conversation_id))

    def _opened(self, newest: Turn, chosen: Chosen, after: str) -> list[Turn]:
        """One turn for each message that was chosen, a moment apart, the request's newest words at its own time."""
        every, opened = (*chosen.recovered, *chosen.current), list[Turn]()
        for number, said in enumerate(every):
            at = newest.opened_at - (len(every) - 1 - number) * APART_S
            resumed = said.place in chosen.again or (newest.resumed and said in chosen.current)
            turn = newest
            if (said.ordinal, at, resumed) != (newest.ordinal, newest.opened_at, newest.resumed):
                turn = replace(
                    newest,
                    id=turn_id(newest.scope, said.ordinal, said.text, after=after),
                    ordinal=said.ordinal,
                    user_text=storable(said.text, self.turn_chars_max),
                    opened_at=at,
                    resumed=resumed,
                    message_id=said.id,
                )
            opened.append(turn)
        return opened

    def _offer_all(self, messages: UserMessages, chosen: Chosen, opened: Sequence[Turn]) -> bool:
        taken = True
        for said, turn in zip((*chosen.recovered, *chosen.current), opened, strict=True):
            if self.journal.offer(turn):
                self.recovery.seen.journalled(said, turn.opened_at)
            else:
                taken = False
        for said, turn in zip(chosen.recovered, opened, strict=False):
            self._close(turn.id, messages.answer_to(said), opened[-1].opened_at)
        return taken

    def _close_from_history(self, messages: UserMessages, newest: Turn) -> None:
        """The client resends what was answered before: the newest answer closes the turns before this one."""
        before = [*islice(messages.answered_before_backwards(), self.recovery.rules.new_turns_max)]
        answer = messages.answer_to(before[0]) if before else ""
        for said in before:
            if answer and self._was_kept(said):
                closed = turn_id(newest.scope, said.ordinal, said.text)
                self._close(closed, answer if said is before[0] else "", newest.opened_at, TurnEnding.ANSWERED)

    def _was_kept(self, said: UserMessage) -> bool:
        """Not what was declined: neither is its answer kept."""
        known = self.recovery.seen.here(said)
        return said.ordinal in known.journalled and not known.is_declined(said.ordinal)

    def _close(self, turn_id: str, answer: str, at: float, ending: TurnEnding | None = None) -> None:
        ending = ending or (TurnEnding.ANSWERED if answer else TurnEnding.ANSWER_LOST)
        tail = storable(answer[-self.answer_bytes_max :]) if answer else None
        self.journal.offer(TurnClosed(turn_id, ending, at, answer=tail))


def _kept_by_api(conversation: Conversation) -> bool:
    """Whether the API keeps the history: then a request brings what is new, and nothing that it holds is history."""
    return conversation.conversation_id is not None or conversation.previous_id is not None


def storable(text: str, chars_max: int | None = None) -> str:
    """Text that every database takes: no lone surrogates, no NUL; the head of it when it is too long."""
    head = text[:chars_max]
    if not head.isascii():
        head = head.encode("utf-8", "replace").decode()
    return head.replace("\x00", " ")
