"""What the stand-in model says: the line of its prompt that shares most words with the question, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]

UNKNOWN = "I don't know that yet."
ACKNOWLEDGED = "Got it, thank you for telling me."
TOLD = "From what I was told: "
PERHAPS = "My notes do not say it in those words. The nearest one: "
"""Before the first of semmem's notes, when semmem found them by meaning and no word is shared."""

_BLOCK = re.compile(r"<semmem-memory[^<>]*>\n(.*?)</semmem-memory>", re.DOTALL)
_NOTE = re.compile(r"^- (.+?)(?: \((?:said|noted|undated|on|in|meaning|may)\b[^()\n]*\))?$", re.MULTILINE)
_ASKS = re.compile(
    r"(?:what|when|where|which|who|whose|why|how|do|does|did|is|are|was|were|can|could|should|would|will"
    r"|tell me|remind|recommend|suggest)\b",
    re.IGNORECASE,
)
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|e|s)$")
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a about an and are as at be been but by can could did do does for from had has have how i in is it its me my
        of on or our remember s should so t tell that the their them there they this to user was we what when where
        which who why will with would you your""",
    )
)


def answer_to(messages: list[Json]) -> str:
    """The answer to the last user message; an acknowledgement when that was not a question.

    Messages are of plain text, each {role, content}; others are passed over. semmem's notes are found wherever they
    stand, in the question itself as well.
    """
    texts = [(message.get("role"), message.get("content")) for message in messages]
    told = [(role, text) for role, text in texts if isinstance(text, str) and role != "assistant"]
    asked = next((i for i in reversed(range(len(told))) if told[i][0] == "user"), None)
    if asked is None:
        return UNKNOWN
    question = _without_notes(told[asked][1])
    if not _is_question(question):
        return ACKNOWLEDGED
    notes = [note for _, text in told for note in _notes(text)]
    said = [sentence for i, (_, text) in enumerate(told) if i != asked for sentence in _sentences(_without_notes(text))]
    if best := _best(question, notes + said):
        return TOLD + best
    return PERHAPS + notes[0] if notes else UNKNOWN


def _notes(text: str) -> list[str]:
    """The lines of semmem's blocks in the text, best first, without their days."""
    return [note for block in _BLOCK.findall(text) for note in _NOTE.findall(block)]


def _without_notes(text: str) -> str:
    return _BLOCK.sub("\n", text).strip()


def _is_question(text: str) -> bool:
    sentences = _sentences(text)
    return bool(sentences) and (sentences[-1].endswith("?") or _ASKS.match(sentences[-1]) is not None)


def _sentences(text: str) -> list[str]:
    lines = [line.strip(" -*\t") for line in text.splitlines()]
    return [part for line in lines for part in re.split(r"(?<=[.!?])\s+", line) if part]


def _best(question: str, candidates: Iterable[str]) -> str | None:
    """The first of those that share most words with the question; None when no word is shared."""
    wanted = _content_words(question)
    best = max(candidates, key=lambda text: len(wanted & _content_words(text)), default="")
    return best if wanted & _content_words(best) else None


def _content_words(text: str) -> set[str]:
    """Words without their endings, so that "Where do I live?" finds "lives in Lisbon"."""
    words = set(re.findall(r"[^\W_]+", text.lower())) - _STOP_WORDS
    return {_ENDING.sub("", word) for word in words}
