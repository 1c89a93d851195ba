"""Marks of erasures as a file: what a backup has to be given when it is put back, and cannot hold itself.

Digests and times; nobody reads from it who was erased, only whether a name that he knows was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from semmem.backup import BackupError
from semmem.ports.erasure import Mark

FORMAT = 1


class _File(msgspec.Struct, forbid_unknown_fields=True):
    erasures: int
    taken_at: float
    marks: list[Mark]
    digest: str


def told(marks: Sequence[Mark], taken_at: float) -> dict[str, Any]:
    """What the file holds, as JSON."""
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
