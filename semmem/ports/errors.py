"""The errors that may come through a port. None shows content, or names a user.

    SemmemError               what semmem depends on failed in a way that is expected
    ├── StoreError            the memory store failed
    │   ├── StoreUnavailable  it cannot be reached, or is closed
    │   │   ├── StoreDamaged  a file of it cannot be read; the message names it and the remedy
    │   │   └── StoreFull     it has no room for a write (disk full, quota, read-only); nothing was changed, reads go on
    │   ├── StoreMismatch     its data was made with other settings: waiting will not help
    │   ├── StoreTimeout      it did not answer within the deadline
    │   ├── StoreRefused      it will never take this memory: another try will not help
    │   └── Erased            what was to be written was said before its scope was erased: nothing was
    ├── JournalError          the journal failed (locked, full, unreadable)
    │   ├── JournalDamaged    its file cannot be read; the message names it and the remedy
    │   ├── JournalUnavailable  its server cannot be reached: worth another try
    │   └── JournalFull         it has no room for a write (disk full, quota, read-only); reads go on
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
``asyncio.CancelledError`` and programming errors."""


class SemmemError(Exception): ...


class StoreError(SemmemError): ...


class StoreUnavailable(StoreError): ...


class StoreDamaged(StoreUnavailable): ...


class StoreFull(StoreUnavailable): ...


class StoreMismatch(StoreError): ...


class StoreTimeout(StoreError): ...


class Erased(StoreError): ...


class StoreRefused(StoreError):
    """``field`` says what of the memory."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field} {why}")
        self.field = field


class JournalError(SemmemError): ...


class JournalDamaged(JournalError): ...


class JournalUnavailable(JournalError): ...


class JournalFull(JournalError): ...


class NewsError(SemmemError): ...


class EmbedderError(SemmemError): ...


class EmbedderBusy(EmbedderError): ...


class ModelError(SemmemError): ...


class ModelUnavailable(ModelError): ...


class ModelRefused(ModelError): ...


class WorkError(SemmemError): ...


class WorkTooSlow(WorkError): ...


class WorkLost(WorkError): ...


class WorkUnavailable(WorkError): ...
