"""Everything that knows an API's JSON lives here, one file per API.

A dialect reads a request into a Conversation, splices memory into the request's bytes, and reads an answer (JSON or
SSE, split anywhere) back into text. It knows nothing of users, signals, search or config, and no other package may
say what a request's members are called. Adding an API is one file, one row in DIALECTS and one sample in the
contract suite.

A request is read leniently (a role, a part or an item that we do not know is no reason to go without memory) but never
guessed: what cannot be spliced with certainty is Malformed. Answers are read tolerantly and judged strictly: an answer
is complete only when its proper end was seen and nothing on the way was lost.

``chat``, ``messages`` and ``responses`` are the APIs. What they share stands by phase in ``request`` (reading one),
``inject`` (rewriting it), ``elements`` (parting it) and ``answer``; ``json_splice`` and ``sse`` know the formats,
``parsing`` how much is parsed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from semmem.dialects import chat, messages, responses
from semmem.dialects.answer import AnswerBuilder, AnswerReader, EventStreamReader, JsonReader
from semmem.dialects.inject import ParsedRequest
from semmem.dialects.json_splice import Malformed

__all__ = ["BY_NAME", "DIALECTS", "AnswerReader", "Dialect", "Malformed", "ParsedRequest", "Paths"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One API. ``parse`` reads a request's body, and raises Malformed; ``answer`` knows what its answers say."""

    name: str
    parse: Callable[[bytes], ParsedRequest]
    answer: type[AnswerBuilder]

    def reader(
        self, *, content_type: str, answer_bytes_max: int, body_bytes_max: int, calls_bytes_max: int = 0
    ) -> AnswerReader | None:
        """A reader for an answer of this content type (its parameters are ignored), or None: neither JSON nor SSE.
        ``answer_bytes_max`` bounds the text that is kept (its tail, UTF-8 bytes); ``body_bytes_max`` bounds what is
        buffered of a JSON body or of one SSE event: beyond it the answer is not complete. ``calls_bytes_max`` bounds
        what is kept of calls of tools (names and arguments); 0: they are only counted."""
        answer = self.answer(answer_bytes_max, calls_bytes_max)
        match content_type.partition(";")[0].strip().lower():
            case "application/json":
                return JsonReader(answer, body_bytes_max)
            case "text/event-stream":
                return EventStreamReader(answer, body_bytes_max)
            case _:
                return None


DIALECTS: Mapping[str, Dialect] = {
    "/v1/chat/completions": Dialect("chat", chat.parse, chat.ChatAnswer),
    "/v1/messages": Dialect("messages", messages.parse, messages.MessagesAnswer),
    "/v1/responses": Dialect("responses", responses.parse, responses.ResponsesAnswer),
}
BY_NAME: Mapping[str, Dialect] = {dialect.name: dialect for dialect in DIALECTS.values()}
ANY_PART = "*"


class Paths:
    """Which API a request's path belongs to, by the paths of each API. ``*`` stands for any one part between slashes:
    ``/openai/deployments/*/chat/completions``."""

    def __init__(self, by_name: Mapping[str, Sequence[str]] | None = None) -> None:
        given = {dialect.name: [path] for path, dialect in DIALECTS.items()} if by_name is None else by_name
        self._exact: dict[str, Dialect] = {}
        self._patterns: dict[int, list[tuple[list[str], Dialect]]] = {}
        for name, path in ((name, path) for name, paths in given.items() for path in paths):
            parts = path.split("/")
            if ANY_PART in parts:
                self._patterns.setdefault(len(parts), []).append((parts, BY_NAME[name]))
            else:
                self._exact[path] = BY_NAME[name]

    def dialect(self, path: str) -> Dialect | None:
        """The dialect of a request's path, whatever query it has, or None. A path without ``*`` goes first."""
        plain = path.partition("?")[0]
        found = self._exact.get(plain)
        if found is not None or not self._patterns:
            return found
        parts = plain.split("/")
        of_length = self._patterns.get(len(parts), ())
        return next((dialect for pattern, dialect in of_length if _fits(pattern, parts)), None)


def _fits(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    return all(one == part or (one == ANY_PART and part) for one, part in zip(pattern, parts, strict=True))
