"""How a command fails: a place, a reason, a code that stays the same, and an exit status for the kind of failure."""

from __future__ import annotations

import json
import sys
from typing import Any

DONE, NOT_DONE, MISUSED, NO_ANSWER, REFUSED, NOT_FOUND, NOT_NOW, PENDING = range(8)
INTERRUPTED = 130
"""What shells say of a program that Ctrl-C ended."""
PIPE_CLOSED = 141
"""What they say of one whose reader went away."""

EXITS = {
    DONE: "done",
    NOT_DONE: "not done, or not all of it",
    MISUSED: "the arguments or the configuration are wrong; nothing was begun",
    NO_ANSWER: "no semmem answered: nothing listens there, or it took too long",
    REFUSED: "no token, one that is not good (401), or one that may not do this (403)",
    NOT_FOUND: "there is no such thing (404)",
    NOT_NOW: "not now: too many calls (429), somebody else is at it (409), or a part is away (503)",
    PENDING: "the erasure is pending: hidden from now on, and finished later (503 ERASURE_PENDING)",
    INTERRUPTED: "interrupted by Ctrl-C",
    PIPE_CLOSED: "whoever read standard output went away",
}
"""Every exit status, and what it means."""


class Failure(Exception):
    """A command cannot go on. ``path``: the place, a URL, file, option or configuration key; ``reason``: a sentence
    without a full stop; ``code``: stable, in capitals; ``status``: one of EXITS; ``text``: what people read, where that
    is more than place and reason; ``more``: further JSON members."""

    def __init__(
        self, code: str, path: str, reason: str, status: int = NOT_DONE, *, text: str = "", **more: Any
    ) -> None:
        super().__init__(text or (f"{path}: {reason}" if path else reason))
        self.code = code
        self.path = path
        self.reason = reason
        self.status = status
        self.more = more

    def shown(self) -> dict[str, Any]:
        """For a program to read."""
        told = {"code": self.code, "path": self.path, "reason": self.reason, "exit_status": self.status}
        return {"error": told | self.more}


def misused(path: str, reason: str) -> Failure:
    """Arguments that no command can be run with."""
    return Failure("USAGE", path, reason, MISUSED)


def report(failure: Failure, command: str, *, as_json: bool) -> None:
    """One line on standard error. ``command``: as it was called."""
    sys.stderr.write(f"{json.dumps(failure.shown())}\n" if as_json else f"{command}: {failure}\n")
