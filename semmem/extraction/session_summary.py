"""What a session was about, as one memory: asked of a language model when the session has ended.

The summary is made of whole sentences, each of which must rest on the user's own words; the others are left out. It
carries the session's key, so that a session that goes on gets a new version of it and not a second one.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from semmem.extraction.answers import AskingModel, as_line, json_values, within
from semmem.extraction.llm import operators_rules
from semmem.extraction.reading import text_of
from semmem.memory import Fact, MemoryType, Scope, Turn
from semmem.ports.errors import ModelRefused
from semmem.ports.models import exactly
from semmem.text.grounding import SourceText

ENDS = frozenset({"idle", "end"})
"""Triggers of a batch after which nothing more is expected of its session."""

KEY_PREFIX = "session:"
GROUNDED_SHARE_MIN = 0.6

_RULES = Path(__file__).with_suffix(".txt").read_text("utf-8").rstrip("\n")
SCHEMA = exactly(summary={"type": "string"})

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'“(]?[^\W\d_])|(?<=[。！？])")
_THE_USER = re.compile(r"^the user\b", re.IGNORECASE)
_USER = re.compile(
    r"(?:user|(?:(?:der|die) )?(?:be)?nutzer(?:in)?|(?:(?:el|la) )?usuari[oa]|l['’]utilisat(?:eur|rice)"
    r"|l['’]utente|(?:[oa] )?(?:usuári[oa]|utilizadora?))\b|用[户戶]|ユーザー",
    re.IGNORECASE,
)
"""One word in the languages whose messages are understood without a model. A sentence about anybody else is none."""
_NARRATION = re.compile(
    r"\b(?:discuss|talk|ask|plann?|decid|mention|describ|explain|shar|compar|consider|explor|look|request|wonder|arrang"
    r"|choos|wrote|report|express|want|need|sought|seek|chose|said|told|inquir)(?:e[sd]?|s|ed|ing)?\b",
    re.IGNORECASE,
)
"""Verbs that only tell that something was said; every summary brings them along."""


@dataclass(eq=False, repr=False)
class SessionSummariser(AskingModel):
    """Asks for summaries of at most ``chars_max`` characters.

    Of a session its newest ``turns_max`` turns are shown, and of all their texts
    together ``text_chars_max`` characters, the newest first; a session of fewer than ``turns_min`` turns has none.
    ``custom_instructions`` and ``categories`` are as for facts."""

    name = "summary"

    _: KW_ONLY
    chars_max: int = 500
    turns_min: int = 2
    turns_max: int = 50
    text_chars_max: int = 12_000
    custom_instructions: str = ""
    categories: Sequence[str] = ()

    def __post_init__(self) -> None:
        rules = _RULES.format(chars_max=self.chars_max)
        self._rules = "\n\n".join([rules, *operators_rules(self.custom_instructions, self.categories)])

    async def summarise(self, turns: Sequence[Turn]) -> Fact | None:
        """The summary of one session's turns, oldest first; None when there is nothing to tell. Raises ModelError."""
        shown = self._shown(turns)
        if len(shown) < self.turns_min:
            return None
        answer = await self._answer(self._rules, within("conversation", map(_line, shown)), SCHEMA, shown)
        content = await asyncio.to_thread(self._content, answer, shown)
        last, began_at = turns[-1], turns[0].opened_at
        if not content:
            return None
        return Fact(MemoryType.EPISODIC, content, last.id, occurred_at=began_at, key=session_key(last.scope))

    def _content(self, answer: str, shown: Sequence[Turn]) -> str:
        return grounded(parse_summary(answer), SourceText(text_of(shown)), chars_max=self.chars_max)

    def _shown(self, turns: Sequence[Turn]) -> list[Turn]:
        shown: list[Turn] = []
        room = self.text_chars_max
        for turn in reversed(turns[-self.turns_max :]):
            room -= len(turn.user_text) + len(turn.answer or "") // 4
            if room < 0 and shown:
                break
            shown.insert(0, turn)
        return shown


def session_key(scope: Scope) -> str:
    """Under which the summary of a session is found again: one for each project and agent of the session.

    A batch has turns of one project and agent only, so no summary tells of another's. Names are escaped: no two scopes
    share a key, whatever signs are in them."""
    of = [scope.project or "", scope.session or "", *([scope.agent] if scope.agent else [])]
    return KEY_PREFIX + "/".join(name.replace("%", "%25").replace("/", "%2F") for name in of)


def parse_summary(answer: str) -> str:
    """The text of ``{"summary": text}`` somewhere in an answer. Raises ModelRefused when it is not there."""
    for value in json_values(answer):
        if isinstance(value, dict) and isinstance(value.get("summary"), str):
            return str(value["summary"])
    raise ModelRefused("no summary in the answer")


def grounded(summary: str, said: SourceText, *, chars_max: int) -> str:
    """The sentences that speak of the user in the user's words and language, as many as fit."""
    kept = ""
    for sentence in _SENTENCE_END.split(" ".join(summary.split())):
        told = _THE_USER.sub("User", sentence.strip())
        longer = f"{kept} {told}".strip()
        subject = _USER.match(told)
        if subject is None or len(longer) > chars_max:
            continue
        if said.grounds(_NARRATION.sub(" ", told[subject.end() :]), share_min=GROUNDED_SHARE_MIN):
            kept = longer
    return kept


def _line(turn: Turn) -> str:
    said: dict[str, object] = {"user": turn.user_text}
    if turn.answer:
        said["assistant"] = turn.answer[: max(200, len(turn.answer) // 4)]
    return as_line(said)
