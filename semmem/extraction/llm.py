"""Facts and summaries by a language model: one prompt each, and the best that can be made of whatever comes back."""

import asyncio
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from semmem.extraction.answers import AskingModel, as_line, json_values, within
from semmem.extraction.model_items import Facts, Item, line_of, read_items, wrong_notes
from semmem.extraction.reading import text_of
from semmem.memory import MEMORY_TYPES, Fact, Memory, MemoryType, Scope, Standing, Turn
from semmem.ports.errors import ModelError, ModelRefused, ModelUnavailable
from semmem.ports.learning import Batch, Extracted
from semmem.ports.models import exactly
from semmem.text.grounding import SourceText

PROMPT_EXAMPLES = (
    "User's rowing club in Tromsø trains on Tuesday mornings",
    "User does not like aniseed",
    "User's brother Odd cannot swim",
    "User waxes the skis before every race, base first and edges last",
    "User returned the rented harp on 3 March",
)
"""The examples shown in the prompt. Small models repeat them as facts about anybody, so the screen refuses them."""

_EXAMPLES = "\n".join(f"- {each}" for each in PROMPT_EXAMPLES)
_INSTRUCTIONS = Path(__file__).with_suffix(".txt").read_text("utf-8") + _EXAMPLES

OTHER = "other"
CALLS_MAX = 6
"""A batch that is too long for one question, or whose answer is cut off, is asked about in so many calls at most."""


def _schema(categories: Sequence[str]) -> dict[str, object]:
    text: dict[str, object] = {"type": "string"}
    kinds = [kind.value for kind in MEMORY_TYPES if kind is not MemoryType.REFLECTIVE]
    category = {"category": {**text, "enum": [*categories, OTHER]}} if categories else {}
    fact = exactly(
        turn={"type": "integer"},
        type={**text, "enum": kinds},
        subject=text,
        content=text,
        standing={**text, "enum": [*(standing.value for standing in Standing), "none"]},
        topic=text,
        importance={"type": "number"},
        when=text,
        until=text,
        **category,
    )
    wrong = exactly(number={"type": "integer"}, why=text)
    return exactly(facts={"type": "array", "items": fact}, wrong={"type": "array", "items": wrong})


SCHEMA = _schema(())


@dataclass(eq=False, repr=False)
class LlmExtractor(AskingModel):
    """Asks for facts.

    ``timeout_s`` bounds one extraction, retries and all its calls included. ``turn_chars_max`` is what is shown of one
    user text (its beginning and its end); of an assistant text a quarter of that is shown. ``text_chars_max`` is what
    is asked about in one call, and a quarter of it is shown of what came before; rules and schema come to about 5,200
    characters, of which four are about a token. ``custom_instructions`` are the operator's and are added to the rules.
    With ``categories`` the model names one for each fact, and those of another are dropped."""

    name = "llm"

    _: KW_ONLY
    facts_max: int = 20
    turn_chars_max: int = 4000
    text_chars_max: int = 24_000
    custom_instructions: str = ""
    categories: Sequence[str] = ()

    def __post_init__(self) -> None:
        self._categories = frozenset(category.casefold() for category in self.categories)
        self._schema = _schema(self.categories)
        parts = [_INSTRUCTIONS, f"Give at most {self.facts_max} facts, in the order of the lines."]
        if self.categories:
            parts.append(f'Each fact also has a "category": one of those named below, or "{OTHER}".')
        self._rules = "\n\n".join([*parts, *operators_rules(self.custom_instructions, self.categories)])

    async def extract(self, batch: Batch, notes: Sequence[Memory] = ()) -> Extracted:
        """At most ``facts_max`` facts in the order the model gave them, the most important of more; and which notes it
        named as wrong. Raises ModelError. What does not fit into one question, and what an answer that was cut off did
        not come to, is asked about next. Each note is shown with its turn."""
        ends_at = time.monotonic() + self.timeout_s
        items: list[Item] = []
        wrong: list[Item] = []
        shown: set[int] = set()
        first = 0
        for _ in range(CALLS_MAX):
            lines = self._fitting(batch.turns, first)
            left_s = ends_at - time.monotonic() if first else self.timeout_s
            noted = self._noted(batch, notes, lines)
            try:
                found, named, cut = await self._ask(batch, lines, noted, left_s)
            except ModelError as error:
                if first == 0 or (isinstance(error, ModelUnavailable) and batch.attempt == 1):
                    raise
                break  # what was found stays, rather than being asked for again and again
            done, first = _gone_on(found, lines) if cut else (found, lines.stop)
            items += done
            wrong += named
            shown |= noted.keys()
            if first >= len(batch.turns):
                break
        places, ignored = wrong_notes(wrong, shown)
        return Extracted(await asyncio.to_thread(self._facts, items, batch), places, ignored)

    async def _ask(
        self, batch: Batch, lines: range, noted: Mapping[int, str], timeout_s: float
    ) -> tuple[list[Item], list[Item], bool]:
        """The items of the lines (from 0), the notes that were named, and whether the answer was cut off."""
        told = self._conversation(batch, lines) + (f"\n{within('notes', noted.values())}" if noted else "")
        answer = await self._answer(self._rules, told, self._schema, batch.turns, timeout_s)
        items, wrong, cut = await asyncio.to_thread(read_items, answer)
        return [item for item in items if (line := line_of(item)) is None or line - 1 in lines], wrong, cut

    def _facts(self, items: Sequence[Item], batch: Batch) -> list[Fact]:
        """A model that names no category at all was still told which ones count."""
        named = ((item, item.get("category")) for item in items)
        known = self._categories
        wanted = [item for item, of in named if not known or of is None or str(of).strip().casefold() in known]
        facts = list(Facts(batch.turns, batch.context).of(wanted))
        kept = sorted(range(len(facts)), key=lambda place: -facts[place].importance)[: self.facts_max]
        return [facts[place] for place in sorted(kept)]

    def _fitting(self, turns: Sequence[Turn], first: int) -> range:
        """The lines from ``first`` on that fit into one question; at least that one."""
        room = self.text_chars_max
        for number in range(first, len(turns)):
            room -= len(self._line({"turn": number + 1}, turns[number]))
            if room < 0 and number > first:
                return range(first, number)
        return range(first, len(turns))

    def _conversation(self, batch: Batch, lines: range) -> str:
        """What was said before is shown as far as it takes no more than a quarter of the room."""
        known: list[str] = []
        room = self.text_chars_max // 4
        for turn in reversed((*batch.context, *batch.turns[: lines.start])):
            known.insert(0, self._line({"known": True}, turn))
            if (room := room - len(known[0])) < 0:
                del known[0]
                break
        asked_about = [self._line({"turn": number + 1}, batch.turns[number]) for number in lines]
        return within("conversation", [*known, *asked_about])

    def _noted(self, batch: Batch, notes: Sequence[Memory], lines: range) -> dict[int, str]:
        """The notes of these lines by their place, each as one line, as far as a quarter of the room takes them."""
        numbers = {batch.turns[number].id: number + 1 for number in lines}
        found: dict[int, str] = {}
        room = self.text_chars_max // 4
        for place, note in enumerate(notes):
            if note.source.turn in numbers:
                line = as_line({"number": place + 1, "turn": numbers[note.source.turn], "noted": note.content})
                if (room := room - len(line)) < 0:
                    break
                found[place] = line
        return found

    def _line(self, head: dict[str, object], turn: Turn) -> str:
        said: dict[str, object] = {**head, "user": _shorten(turn.user_text, self.turn_chars_max)}
        if turn.answer:
            said["assistant"] = _shorten(turn.answer, self.turn_chars_max // 4)
        return as_line(said)


def _gone_on(found: Sequence[Item], lines: range) -> tuple[Sequence[Item], int]:
    """Of an answer that was cut off what is done, and the line to go on from. The last line that it came to is asked
    about again, if there was another before it: more may be in it."""
    last = max((line for item in found if (line := line_of(item)) is not None), default=lines.stop) - 1
    if last > lines.start:
        return [item for item in found if line_of(item) != last + 1], last
    return found, last + 1


def operators_rules(custom_instructions: str, categories: Sequence[str]) -> list[str]:
    """What the operator adds to a prompt, as paragraphs."""
    rules = []
    if categories:
        named = ", ".join(json.dumps(category, ensure_ascii=False) for category in categories)
        rules.append(f"Keep nothing but what belongs to one of these categories: {named}.")
    return [*rules, custom_instructions.strip()] if custom_instructions.strip() else rules


def _shorten(text: str, chars_max: int) -> str:
    if len(text) <= chars_max:
        return text
    half = chars_max // 2
    return f"{text[:half]} […] {text[-half:]}"


ENDS = frozenset({"idle", "end"})
"""Triggers of a batch after which nothing more is expected of its session."""

KEY_PREFIX = "session:"
GROUNDED_SHARE_MIN = 0.6

_SUMMARY_RULES = Path(__file__).with_name("session_summary.txt").read_text("utf-8").rstrip("\n")
SUMMARY_SCHEMA = exactly(summary={"type": "string"})

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
    """What a session was about, as one memory of at most ``chars_max`` characters, asked for when it has ended.

    It is made of whole sentences, each of which must rest on the user's own words; the others are left out. It carries
    the session's key, so that a session that goes on gets a new version of it and not a second one.

    Of a session its newest ``turns_max`` turns are shown, and of all their texts together ``text_chars_max``
    characters, the newest first; a session of fewer than ``turns_min`` turns has none. ``custom_instructions`` and
    ``categories`` are as for facts."""

    name = "summary"

    _: KW_ONLY
    chars_max: int = 500
    turns_min: int = 2
    turns_max: int = 50
    text_chars_max: int = 12_000
    custom_instructions: str = ""
    categories: Sequence[str] = ()

    def __post_init__(self) -> None:
        rules = _SUMMARY_RULES.format(chars_max=self.chars_max)
        self._rules = "\n\n".join([rules, *operators_rules(self.custom_instructions, self.categories)])

    async def summarise(self, turns: Sequence[Turn]) -> Fact | None:
        """The summary of one session's turns, oldest first; None when there is nothing to tell. Raises ModelError."""
        shown = self._shown(turns)
        if len(shown) < self.turns_min:
            return None
        answer = await self._answer(self._rules, within("conversation", map(_as_told, shown)), SUMMARY_SCHEMA, shown)
        content = await asyncio.to_thread(self._content, answer, shown)
        if not content:
            return None
        last, began_at = turns[-1], turns[0].opened_at
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
    """Under which the summary of a session is found again: one for each project and agent of the session. A batch has
    turns of one project and agent only, so no summary tells of another's. Names are escaped: no two scopes share a key,
    whatever signs are in them."""
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


def _as_told(turn: Turn) -> str:
    said: dict[str, object] = {"user": turn.user_text}
    if turn.answer:
        said["assistant"] = turn.answer[: max(200, len(turn.answer) // 4)]
    return as_line(said)
