"""What happens, for whoever counts it. A part is given one ``Announce`` and calls it with one of these values.

A listener is called on the event loop in the middle of the work: it neither waits nor raises. What it does with an
event is its own affair (semmem.telemetry counts it, and writes the log line that goes with it); without a listener
nothing changes. Events carry words, numbers and ids of batches, never content and never a user."""

from collections.abc import Callable, Mapping

from msgspec import Struct


class Event(Struct, frozen=True):
    """Something happened."""


Announce = Callable[[Event], None]


def nobody_listens(_event: Event) -> None:
    """The default listener."""


class StreamOpened(Event, frozen=True):
    """Envoy opened a stream in this role (``mutate``, ``observe``)."""

    role: str


class StreamClosed(Event, frozen=True):
    """A stream that was opened has ended, however it ended."""

    role: str


class StreamShed(Event, frozen=True):
    """A stream was closed at once, since as many as are allowed in its role are open."""

    role: str


class StreamFailed(Event, frozen=True):
    """A failure that nobody expected; the client's request went on."""

    role: str


class RequestEnded(Event, frozen=True):
    """The request phase ended. ``seconds`` from the body (or the head that was enough) to the answer, ``memories`` and
    ``tokens`` (estimated) put into the prompt. ``switched``: what a switch kept from it (``reading``, ``storing``,
    ``both``), empty for nothing."""

    outcome: str
    seconds: float
    memories: int = 0
    tokens: int = 0
    switched: str = ""


class LongRequest(Event, frozen=True):
    """How it went with compressing a request that is long enough, in one word (see semmem.compression.compressor);
    where it was done, the estimated tokens of its messages before and after."""

    result: str
    tokens_before: int = 0
    tokens_after: int = 0


class StateMade(Event, frozen=True):
    """A state of a session was to be made: ``rules``, ``model`` (by what it was), ``empty``, ``refused`` (it may not be
    kept), ``failed``, ``dropped`` (too many wait)."""

    result: str


class Searched(Event, frozen=True):
    """A search on the request path: ``hit``, ``miss`` or ``error``, the number of hits that passed the cut, seconds."""

    status: str
    hits: int
    seconds: float


class PromptPrefix(Event, frozen=True):
    """What became of a session's earlier blocks in a request, in one word: ``kept``; ``edited``, some belong to
    messages that its history does not have; and why none is there: ``erased``, ``quarantined``, ``undone``,
    ``asked_to_forget``, ``unfounded``, ``expired``, ``compacted``, ``late``. ``unwritten``: no other process will have
    them."""

    result: str


class Rewritten(Event, frozen=True):
    """A model was wanted for a query: ``written``, ``cached``, ``failed``, ``late`` or ``unusable``."""

    result: str


class Reranked(Event, frozen=True):
    """A search was to be reranked: ``reranked``, ``failed`` or ``late``."""

    result: str


class HistoryRead(Event, frozen=True):
    """Messages of a request were recovered from its history, or are not learnt from: ``recovered``, ``unproven``,
    ``declined``, ``erased``, ``other_speaker``, ``over_limit`` or ``unread``."""

    result: str
    messages: int


class TurnEnded(Event, frozen=True):
    status: str


class PromptReported(Event, frozen=True):
    """A provider reported how many tokens a prompt has, and how many of them its prompt cache had."""

    prompt_tokens: int
    cached_tokens: int


class JournalCommitted(Event, frozen=True):
    """One group commit: ``ok`` or ``error``, and seconds."""

    status: str
    seconds: float


class JournalCounted(Event, frozen=True):
    turns: Mapping[str, int]


class TurnsUnread(Event, frozen=True):
    """Rules gave up reading turns of this batch, for this reason."""

    batch_id: str
    reason: str
    turns: int


class MemoriesRemoved(Event, frozen=True):
    """So many memories went for this reason; zero when it was looked for and none had to go."""

    reason: str
    number: int


class ErasureEnded(Event, frozen=True):
    """An erasure is ``done``, ``pending`` or ``finished`` after that. The numbers say what went."""

    result: str
    turns: int
    halves: int
    memories: int
    sentences: int = 0


class ChangesTold(Event, frozen=True):
    """Users whose memories changed were ``told`` to other replicas or ``heard`` of from them; or, counted as one,
    ``told_everything``, ``heard_everything``, ``untold`` (later told as everything) or ``foreign`` (another key's)."""

    result: str
    users: int = 1


class NewsLost(Event, frozen=True):
    """Other replicas are not told any more, or not heard; said once until NewsBack."""

    why: str


class NewsBack(Event, frozen=True):
    """They are told and heard again."""


class ApiAnswered(Event, frozen=True):
    """A management call was answered. ``route`` is the path's pattern, ``none`` for what reached no route."""

    route: str
    status: int


class FeedbackGiven(Event, frozen=True):
    """So many memories were called ``helpful``, or ``unhelpful``."""

    result: str
    memories: int


class ConfigReloaded(Event, frozen=True):
    """The configuration was read again: ``applied``, ``refused`` or ``unchanged``."""

    outcome: str


class ApiLimited(Event, frozen=True):
    """A management call came too soon after others of its ``caller``, or of its ``address`` that were refused."""

    who: str


class ApiAudited(Event, frozen=True):
    """A line of the audit log was ``written``, or ``failed`` to be."""

    result: str


class ApiScreened(Event, frozen=True):
    """The write screen did not simply keep a text (``reject``, ``redact``, ``quarantine``, ``overridden``), and why."""

    result: str
    reason: str
