"""Conversations of an API that keeps them, kept in its place: which began here, how far they are, whose turn it is.

Only one request at a time goes on with a conversation: it *claims* it, in the database, before the model is asked. What
became of that request gives it free again: its answer as it is recorded, or that there was none. A claim of which
nothing is heard any more (a crash, a client that left before the answer began) stays, since nobody knows what the
client was told."""

from dataclasses import dataclass

IDLE, BROKEN = "idle", "broken"
"""How far a conversation is: nothing was asked yet; something was answered that its history has not. An empty word: it
did not begin here."""
OPEN, DONE, FAILED = "open", "done", "failed"
"""The same, before a space and the claim of a request: its answer is not known yet; that is recorded, and the
conversation's last; there was none."""
UNRESOLVED = "-"
"""The claim of a request that names a conversation and is not given its history from here."""


@dataclass(frozen=True, slots=True)
class Continued:
    """A conversation that a request names. ``progress``: one of the words above. ``last_answer``: the API's name of the
    answer that the next request goes on from, empty before the first one. ``messages``: how many are recorded."""

    id: str
    progress: str = ""
    last_answer: str = ""
    messages: int = 0

    @property
    def is_free(self) -> bool:
        """Whether the next request may go on with it."""
        return self.progress.partition(" ")[0] in (IDLE, DONE, FAILED)

    @property
    def is_open(self) -> bool:
        """Whether a request goes on with it of which nobody knows yet what became."""
        return self.progress.startswith(OPEN)
