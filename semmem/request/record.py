"""What is noted of a request for whoever asks later why it went so: names and numbers, nothing that was said."""

from __future__ import annotations

from msgspec import Struct

NAME_CHARS_MAX = 256
"""Of a request's id and of its model's name so much is kept."""


class RequestRecord(Struct, frozen=True):
    """``id``: the ``x-request-id``, empty where there is no usable one. ``turn``: the name of what is learnt from.
    ``api``: the dialect. ``shown``: ids of the memories in its prompt; ``weighed``: those of them that were found anew,
    with the log-odds that the request needs them, None where the decision has none."""

    id: str
    user: str
    project: str | None = None
    session: str | None = None
    turn: str = ""
    api: str = ""
    model: str = ""
    shown: tuple[str, ...] = ()
    weighed: tuple[tuple[str, float | None], ...] = ()
