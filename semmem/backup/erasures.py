"""Marks of erasures as a file: what a backup has to be given when it is put back, and cannot hold itself.

Digests and times; nobody reads from it who was erased, only whether a name that he knows was."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import msgspec

from semmem.backup import BackupError
from semmem.memory import Forgetting
from semmem.ports.erasure import ErasureRecords, KnownErasures, Mark

FORMAT = 1


class MarkedJournal(ErasureRecords, KnownErasures, Protocol):
    """One in which is erased what was erased elsewhere. Raises JournalError."""


async def erase_again(
    journal: MarkedJournal, scopes: Iterable[Forgetting], pending: Iterable[Forgetting], *, now: float
) -> Counter[str]:
    """Erase these scopes in a journal that has their marks, and whatever else it marks; how much of what. ``pending``:
    who serves finishes them, and shows nothing of it until then."""
    erased = Counter[str]()
    for what in scopes:
        hold_id, counts = await journal.begin_erasure(what, now=now)
        await journal.finish_erasure(what, hold_id)
        erased.update(counts)
    erased.update(await journal.erase_marked())
    for what in pending:
        hold_id, _ = await journal.begin_erasure(what, now=now)
        await journal.release(hold_id)
    return erased


class _File(msgspec.Struct, forbid_unknown_fields=True):
    erasures: int
    taken_at: float
    marks: list[Mark]
    digest: str


def told(marks: Sequence[Mark], taken_at: float) -> dict[str, Any]:
    listed = [_listed(mark) for mark in marks]
    return {"erasures": FORMAT, "taken_at": taken_at, "marks": listed, "digest": _digest(listed)}


def read(text: bytes) -> list[Mark]:
    """Raises BackupError."""
    try:
        found = msgspec.json.decode(text, type=_File)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BackupError(f"not a file of erasures: {error}") from None
    if found.digest != _digest([_listed(mark) for mark in found.marks]):
        raise BackupError("the file of erasures was changed: its digest is of other content")
    return found.marks


def _listed(mark: Mark) -> dict[str, Any]:
    """Without a conversation as builds wrote it that knew none."""
    told = asdict(mark)
    return told if mark.conversation else {name: told[name] for name in told if name != "conversation"}


def _digest(listed: Sequence[dict[str, Any]]) -> str:
    return hashlib.sha256(json.dumps(listed, sort_keys=True).encode("ascii")).hexdigest()
