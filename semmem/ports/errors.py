"""The errors that may come through a port.

    SemmemError
    ├── StoreError            the memory store failed
    │   ├── StoreUnavailable  it cannot be reached, or is closed
    │   │   ├── StoreDamaged  a file of it cannot be read; the message names it and the remedy
    │   │   └── StoreFull     it has no room for a write; nothing was changed, reads go on
    │   ├── StoreMismatch     its data was made with other settings: waiting will not help
    │   ├── StoreTimeout      it did not answer within the deadline
    │   ├── StoreRefused      it will never take this memory: another try will not help
    │   └── Erased            what was to be written was said before its scope was erased
    ├── JournalError          the journal failed (locked, full, unreadable)
    │   ├── JournalDamaged    its file cannot be read; the message names it and the remedy
    │   ├── JournalUnavailable  its server cannot be reached: worth another try
    │   └── JournalFull         it has no room for a write; reads go on
    ├── NewsError             other replicas could not be told, or heard: worth another try
    ├── EmbedderError         no vector could be made
    │   └── EmbedderBusy      not in time: it is there, and has too much to do
    ├── ModelError            a language model, or a reranker, failed
    │   ├── ModelUnavailable  unreachable, timeout, 429, 5xx, circuit open: worth another try
    │   └── ModelRefused      any other 4xx, or an answer that is not an answer: another try will not help
    └── WorkError             reading a text came to no end
        ├── WorkTooSlow       it took more time than it was given, and was stopped
        ├── WorkLost          whoever did it died of it
        └── WorkUnavailable   nobody is there to do it: worth another try

Every backend maps its third party's errors onto these in one place. Nothing else crosses a port, except
``asyncio.CancelledError`` and programming errors.
"""

from __future__ import annotations


class SemmemError(Exception):
    """Every expected failure of something semmem depends on."""


class StoreError(SemmemError):
    """The memory store failed."""


class StoreUnavailable(StoreError):
    """The memory store cannot be reached."""


class StoreDamaged(StoreUnavailable):
    """A file of the embedded store cannot be read. The message names files and the remedy, no content."""


class StoreFull(StoreUnavailable):
    """The store cannot write: disk full, quota, read-only. The write changed nothing, and reads go on."""


class StoreMismatch(StoreError):
    """The existing data was made with other settings than those configured."""


class StoreTimeout(StoreError):
    """The memory store did not answer within its deadline."""


class Erased(StoreError):
    """Nothing was written: the memory was said before its scope was erased."""


class StoreRefused(StoreError):
    """The memory store will never take this memory. ``field`` says what of it; the message never shows content."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field} {why}")
        self.field = field


class JournalError(SemmemError):
    """The journal failed."""


class JournalDamaged(JournalError):
    """The journal's file is damaged. The message names the file and the remedy, no content."""


class JournalUnavailable(JournalError):
    """The journal's server cannot be reached; the same call may succeed later."""


class JournalFull(JournalError):
    """The journal cannot write: disk full, quota, read-only. Reads go on."""


class NewsError(SemmemError):
    """Other replicas could not be told something, or are not heard any more. The message names no user."""


class EmbedderError(SemmemError):
    """No vector could be made for a text."""


class EmbedderBusy(EmbedderError):
    """The vector comes too late, or would: the embedder is there, and has too much to do."""


class ModelError(SemmemError):
    """A language model failed."""


class ModelUnavailable(ModelError):
    """The model cannot answer now; the same call may succeed later."""


class ModelRefused(ModelError):
    """The model will not answer this call, now or later."""


class WorkError(SemmemError):
    """Work on a text came to no end."""


class WorkTooSlow(WorkError):
    """It took longer than it was given, and was stopped."""


class WorkLost(WorkError):
    """It ended whoever did it."""


class WorkUnavailable(WorkError):
    """Nobody can do it now; the same call may succeed later."""
