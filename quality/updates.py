"""Values that change inside ordinary requests: is the new one in the notes later, and the outdated one?

The rows are this project's own and lie beside this file, so the figure needs no folder of data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from quality.folder import Folder, Row, is_in, read_rows
from quality.scores import Json, Share
from quality.stories import said
from quality.telling import tell
from quality.wiring import Semmem

UPDATES = Path(__file__).with_name("updates.jsonl")


def updates(fifth: str) -> list[Row]:
    """{turns: [{session, days_ago, text}], ask, new, old}; ``new`` and ``old`` are spellings of a value."""
    rows = read_rows(UPDATES, ("turns", "ask", "new", "old"))
    return [row for row in rows if is_in(fifth, row["ask"])]


async def updated(folder: Folder, semmem: Semmem) -> tuple[dict[str, float | None], Json]:
    """Each row told by a user of its own, then asked in a new session."""
    users = {f"update/{number}": row for number, row in enumerate(updates(folder.fifth))}
    await tell(semmem, {user: said(row["turns"]) for user, row in users.items()})
    notes = {user: await semmem.notes(row["ask"], user) for user, row in users.items()}
    new = Share.of(holds(notes[user], row["new"]) for user, row in users.items())
    old = Share.of(holds(notes[user], row["old"]) for user, row in users.items())
    return {"update_new": new.percent, "update_old": old.percent}, {
        "new": new.json(),
        "old": old.json(),
        "lines": sum(map(len, notes.values())),
        "missed": [{**row, "notes": notes[user]} for user, row in users.items() if not holds(notes[user], row["new"])],
    }


def holds(notes: Iterable[str], spellings: Sequence[str]) -> bool:
    text = "\n".join(notes).casefold()
    return any(spelling.casefold() in text for spelling in spellings)
