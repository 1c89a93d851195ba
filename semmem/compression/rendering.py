"""A state as the model sees it: the same fence as memories have, and lines that nothing in them can break out of."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from semmem.ports.session_states import CurrentState
from semmem.retrieval.context import STATE_HEADER, estimate_tokens, fenced, neutralise


def rendered(state: CurrentState, mark: Callable[[str], str]) -> str:
    """The block. The same state gives the same bytes."""
    inside = "\n".join([STATE_HEADER, *lines(state)])
    return fenced(inside, mark(inside))


def lines(state: CurrentState) -> Iterator[str]:
    """Topic, decisions, what was said, what was answered, what is open: one line each."""
    if state.topic:
        yield f"- Topic: {neutralise(state.topic)}"
    for label, said in (
        ("Decided", state.decisions),
        ("Told", state.facts),
        ("Answered", state.answers),
        ("Open", state.open),
    ):
        yield from (f"- {label}: {line}" for each in said if (line := neutralise(each)))


def line_tokens(text: str) -> int:
    """What one line costs, at most."""
    return estimate_tokens(f"- Answered: {neutralise(text)}\n")


FRAME_TOKENS = estimate_tokens(fenced(STATE_HEADER, "0" * 16))
"""What a state costs before it says anything."""
