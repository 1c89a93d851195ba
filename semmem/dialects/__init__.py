"""Everything that knows an API's JSON lives here, one file per API.

A dialect reads a request into a Conversation, splices memory into the request's bytes, and reads an answer (JSON or
SSE, split anywhere) back into text. It knows nothing of users, signals, search or config, and no other package may
say what a request's members are called. Adding an API is one file, one row in DIALECTS and one sample in the
contract suite.

``chat``, ``messages`` and ``responses`` are the APIs. What they share stands by phase in ``request`` (reading one),
``inject`` (rewriting it), ``elements`` (parting it) and ``answer``; ``json_splice`` and ``sse`` know the formats,
``parsing`` and ``json_size`` how much is parsed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from semmem.memory import Answer, Conversation, Element, Injection, Past, Replacement


class Malformed(ValueError):
    """The body is not a request of this dialect. The message names the place and the reason, never the content."""


class ParsedRequest(Protocol):
    """One request body, decoded once."""

    @property
    def conversation(self) -> Conversation: ...

    def rewrite(self, *injections: Injection, replacement: Replacement | None = None) -> bytes | None:
        """The body with semmem's own members removed and the injections added, and with the replacement made; None
        when there is nothing to change. No two injections go to the same place, and none to what is replaced.

        Every other member keeps its place and its bytes, and so does every element that is not replaced.
        """

    def elements(self) -> Sequence[Element]:
        """What the request's list of messages consists of, each element in its place; empty where there is no list.

        Raises Malformed.
        """

    def placed(self, injection: Injection) -> Injection:
        """The injection with its position as exactly as a later request of the same tool loop needs it."""

    def keeps(self, injection: Injection) -> bool:
        """Whether the API hands on, with the history it keeps, what was injected like this beside the user's words.

        A request that goes on from such an answer, and does not bring those words itself, has the injection already.
        """

    @property
    def whole(self) -> bool:
        """Whether results of tools and words of the user's, as ``conversation`` has them, are all that the request adds
        to the history that it goes on from, or begins; whoever keeps that history."""

    def with_history(self, history: Sequence[Past]) -> bytes | None:
        """The body with this history, which may be empty, before what it brings, and no longer going on from an answer
        or a conversation that the API keeps.

        Every other member keeps its place and its bytes. None where the two do not fit together: a call would stand
        without its result, or the request goes on from something else as well. Raises Malformed.
        """


class AnswerReader(Protocol):
    """Reads one answer as it passes. Pure: bytes in, an Answer out; never raises on hostile input."""

    def feed(self, chunk: bytes) -> None: ...

    def end(self) -> Answer:
        """The answer as far as it was seen. Called once, after the last chunk."""


class Dialect(Protocol):
    """One API."""

    name: str

    def parse(self, body: bytes) -> ParsedRequest:
        """Raises Malformed."""

    def reader(
        self, *, content_type: str, answer_bytes_max: int, body_bytes_max: int, calls_bytes_max: int = 0
    ) -> AnswerReader | None:
        """A reader for an answer of this content type, or None when it is neither JSON nor SSE.

        ``answer_bytes_max`` bounds the text that is kept (its tail, UTF-8 bytes); ``body_bytes_max`` bounds what is
        buffered of a JSON body or of one SSE event: beyond it the answer is not complete. ``calls_bytes_max`` bounds
        what is kept of calls of tools (names and arguments); 0: they are only counted.
        """


from semmem.dialects.chat import ChatCompletions  # noqa: E402  (the table needs the protocols above)
from semmem.dialects.messages import AnthropicMessages  # noqa: E402
from semmem.dialects.responses import Responses  # noqa: E402

DIALECTS: Mapping[str, Dialect] = {
    "/v1/chat/completions": ChatCompletions(),
    "/v1/messages": AnthropicMessages(),
    "/v1/responses": Responses(),
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
