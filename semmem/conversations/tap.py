"""From a request, and from its answer, to what the record of its turn is told.

The user's own words are not told: the journal has them with the turn. A request tells which results of tools it brings
that are new, and where in its turn the answer will stand; whoever observes the answer knows that place by the ticket,
on whatever replica that is.
"""

from collections.abc import Callable, Sequence

from semmem.memory import Answer, Conversation, Message, Role, ToolCall, TurnEnding
from semmem.ports.continuing import UNRESOLVED
from semmem.ports.conversations import FIRST_ANSWER, USER_NUMBER, Said, SaidHalf, Step, Whole, step_name
from semmem.ports.names import bounded, fits, usable
from semmem.ports.recording import TURN_CHARS_MAX

RESULTS_MAX = 100
"""Results of tools that one request adds: the newest."""
NAME_BYTES_MAX = 200
TOKENS_MAX = 10**9
"""More than an answer can have; a provider may say anything."""
KEPT = (TurnEnding.ANSWERED, TurnEnding.CONTINUES)
"""Endings of answers that were seen whole."""


class Tap:
    """``add`` must neither wait nor raise. ``chars_max`` characters are kept of a message, and as many
    bytes of an answer's calls of tools."""

    def __init__(self, add: Callable[[SaidHalf], None], *, chars_max: int) -> None:
        self._add = add
        self.chars_max = chars_max

    def said(
        self,
        turn_id: str,
        earlier: Sequence[str],
        conversation: Conversation,
        at: float,
        *,
        whole: bool = False,
        claim: str = "",
    ) -> Step:
        """A request of this turn, which is in the journal or on its way there; where its answer will stand. ``whole``:
        the conversation has all that the request adds to a history. ``claim``: see Step."""
        results, spoken = new_results(conversation.messages)
        name = "" if spoken else step_name(conversation.previous_id or "", [message.text for _, message in results])
        kept = Whole.NO
        if whole and not earlier and len(results) <= RESULTS_MAX and self._keeps_all(conversation.messages):
            kept = Whole.GOES_ON if conversation.previous_id else Whole.BEGINS
        since = conversation.messages[_last(conversation.messages, Role.USER) + 1 :]
        number = FIRST_ANSWER + 2 * sum(message.role is Role.TOOL for message in since)
        step = Step(name, number, at, kept, claim)
        messages = tuple(self._result(number, message, at) for number, message in results[-RESULTS_MAX:])
        after = bounded(conversation.previous_id) or ""
        self._add(SaidHalf(turn_id, step, messages, tuple(earlier), after))
        return step

    def answered(
        self, turn_id: str, step: Step, ending: TurnEnding, answer: Answer | None, now: float, *, failed: bool = False
    ) -> None:
        """What was answered at this place, if it was seen whole and says or calls anything. ``failed``: it is known
        that nothing was, which is of interest to what goes on from there."""
        if failed and step.claim not in ("", UNRESOLVED):
            self._add(SaidHalf(turn_id, step, failed=True))
        if answer is None or ending not in KEPT or not answer.complete or not (answer.text or answer.calls):
            return
        content, cut = self._kept(answer.text)
        said = Said(
            number=step.number,
            role=Role.ASSISTANT,
            content=content,
            at=now,
            cut=cut,
            calls=tuple(ToolCall(_name(call.id), _name(call.name), call.arguments) for call in answer.calls),
            model=_name(answer.model),
            tokens_in=_tokens(answer.input_tokens),
            tokens_out=_tokens(answer.output_tokens),
            answer_id=bounded(answer.answer_id) or "",
            finish_reason=_name(answer.finish_reason),
            whole=step.whole if answer.whole and not cut else Whole.NO,
        )
        self._add(SaidHalf(turn_id, step, (said,)))

    def _result(self, number: int, message: Message, at: float) -> Said:
        content, cut = self._kept(message.text)
        return Said(number, Role.TOOL, content, at, cut, answers=message.answers)

    def _keeps_all(self, messages: Sequence[Message]) -> bool:
        """Whether texts are recorded to the letter: journal and database replace what they cannot hold."""
        chars_max = min(self.chars_max, TURN_CHARS_MAX)
        said = [message.text for message in messages if message.role in (Role.USER, Role.TOOL)]
        return all(len(text) <= chars_max and _is_storable(text) for text in said)

    def _kept(self, text: str) -> tuple[str, bool]:
        return text[: self.chars_max], len(text) > self.chars_max


def new_results(messages: Sequence[Message]) -> tuple[list[tuple[int, Message]], bool]:
    """What tools said since the model spoke last, each with its number in the turn; and whether the user speaks in the
    request at all."""
    user = _last(messages, Role.USER)
    begin = _last(messages, Role.ASSISTANT) + 1
    found: list[tuple[int, Message]] = []
    before = [message for message in messages[begin : max(user, begin)] if message.role is Role.TOOL]
    found += [(USER_NUMBER - len(before) + place, message) for place, message in enumerate(before)]
    behind = [at for at in range(user + 1, len(messages)) if messages[at].role is Role.TOOL]
    found += [(FIRST_ANSWER + 1 + 2 * place, messages[at]) for place, at in enumerate(behind) if at >= begin]
    return found, user >= 0


def _last(messages: Sequence[Message], role: Role) -> int:
    return next((at for at in reversed(range(len(messages))) if messages[at].role is role), -1)


def _is_storable(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _name(name: str | None) -> str:
    known = usable(name)
    return known if known and fits(known, NAME_BYTES_MAX) else ""


def _tokens(counted: int | None) -> int | None:
    return None if counted is None else min(max(counted, 0), TOKENS_MAX)
