"""What goes wrong, by what the caller can do about it. No message has a user, a key or anything of a value in it.

SemmemStoreError
├── Refused (also a ValueError)                 this item or argument will never be taken: another one may
├── NotServed (also a NotImplementedError)      BaseStore has the option, semmem has not
└── Unavailable                                 semmem did not answer, or not with what was asked: try again later
"""

from __future__ import annotations


class SemmemStoreError(Exception):
    """``code``: semmem's own word for the refusal, empty where it was this side that refused."""

    def __init__(self, place: str, reason: str, code: str = "") -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason
        self.code = code


class Refused(SemmemStoreError, ValueError):
    """What was given will never be taken."""


class NotServed(SemmemStoreError, NotImplementedError):
    """LangGraph knows the option; semmem has nothing that would do it."""


class Unavailable(SemmemStoreError):
    """Nothing is wrong with what was asked."""
