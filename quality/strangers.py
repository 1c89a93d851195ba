"""People whom nobody learnt from: what is kept of what they say, and what their requests are shown.

The rows are this project's own and lie beside this file: 88 people in four languages by five writers who had seen
neither code nor data. Each talked for five sessions, with what is worth knowing later marked by the writer, who then
judged every memory that the rules had kept (28 November 2026) before each of twelve requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quality.folder import Folder, Row, is_in, read_rows
from quality.scores import Json, Share
from quality.telling import Said, tell
from quality.voices import says
from quality.wiring import DAY_S, NOW, Semmem
from semmem.memory import STANDING
from semmem.text.grounding import content_words

PEOPLE = Path(__file__).with_name("strangers.jsonl")
WEEK_S, SPACE_S = 7 * DAY_S, 60.0
"""Between two sessions, and between two messages of one."""

Figures = dict[str, float | None]


async def strangers(folder: Folder, semmem: Semmem) -> tuple[Figures, Json]:
    """Of what is worth knowing the share that is in a memory, and of memories the share that is worth it. Of requests
    that need something those that are shown all of it; of the lines those that are needed or may help; of requests
    for which something is out of place those that are shown it; lines for a request."""
    people = [
        row for row in read_rows(PEOPLE, ("id", "sessions", "memories", "asks")) if is_in(folder.fifth, row["id"])
    ]
    kept, worth = await _told(semmem, people)
    needed, relevant, forbidden, asks = Share(0, 0), Share(0, 0), Share(0, 0), 0
    for row in people:
        user = f"stranger/{row['id']}"
        for number, memory in enumerate(row["memories"]):
            metadata = {STANDING: memory["standing"]} if memory["standing"] else {}
            at = NOW - 10 * DAY_S + number
            await semmem.remember(user, f"{user}/{memory['id']}", memory["text"], at=at, metadata=metadata)
        for ask in row["asks"]:
            _, hits = await semmem.request(ask["q"], user)
            shown = {hit.memory.id.rpartition("/")[2] for hit in hits}
            useful = {*ask["needed"], *ask["may"]}
            needed += Share(set(ask["needed"]) <= shown, 1) if ask["needed"] else Share(0, 0)
            forbidden += Share(not shown.isdisjoint(ask["never"]), 1) if ask["never"] else Share(0, 0)
            relevant += Share(len(shown & useful), len(shown))
            asks += 1
    shares = {"kept": kept, "worth": worth, "needed": needed, "relevant": relevant, "forbidden": forbidden}
    figures: Figures = {f"stranger_{name}": share.percent for name, share in shares.items()}
    return figures | {"stranger_lines": relevant.total / asks if asks else None}, {
        name: share.json() for name, share in shares.items()
    }


async def _told(semmem: Semmem, people: Sequence[Row]) -> tuple[Share, Share]:
    """The marked pieces that a memory has, and the memories that have a piece."""
    users = {f"stranger/told/{row['id']}": row for row in people}
    await tell(semmem, {user: _said(row["sessions"]) for user, row in users.items()})
    kept, worth = Share(0, 0), Share(0, 0)
    for user, row in users.items():
        memories = await semmem.retrievable(user)
        marked = (piece for session in row["sessions"] for message in session for piece in message.get("keep", ()))
        pieces = [piece for piece in marked if content_words(piece)]
        kept += Share.of(says(piece, memories) for piece in pieces)
        worth += Share.of(any(says(piece, [memory]) for piece in pieces) for memory in memories)
    return kept, worth


def _said(sessions: Sequence[Sequence[Row]]) -> list[Said]:
    return [
        Said(message["text"], NOW - (len(sessions) - number) * WEEK_S + place * SPACE_S, str(number), "Sure.")
        for number, session in enumerate(sessions)
        for place, message in enumerate(session)
    ]
