"""A state out of what was said, word for word: no model, nothing that nobody said.

What the user states is told from what is merely said by the classifier that learning has; numbers, names and decisions
make a sentence dearer, its length makes it cheaper. Of what the assistant answered, figures and names are kept that the
user did not say. A sentence that says no more than a later one is left out. The dearest that fit are told in the order
they were said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import groupby
from math import sqrt

from msgspec import Struct

from semmem.compression.cutting import Part
from semmem.extraction.lasting.classifier import judge
from semmem.extraction.lasting.clauses import clauses, squeezed
from semmem.extraction.lasting.features import features
from semmem.extraction.rules import is_decision
from semmem.extraction.voice.hearing import heard
from semmem.memory import Role
from semmem.ports.session_states import CurrentState
from semmem.retrieval.context import STATE_HEADER, estimate_tokens, fenced, neutralise
from semmem.text.grounding import SourceText, content_words, names, numbers
from semmem.text.screening import is_instruction, redact

PART_CHARS_MAX = 8_000
"""Read of one message: its beginning and its end."""
CLAUSES_MAX = 60
"""Of one message of the user's."""
SENTENCES_MAX = 40
"""Of one message of the assistant's."""
SENTENCE_CHARS_MAX = 280
TELLING_MIN = 2
"""Words, numbers and names (which are words as well) that a sentence has at least."""
CANDIDATES_MAX = 3_000
"""Sentences that are compared, the newest."""
TOPIC_CHARS_MAX = 140
ANSWERS_SHARE = 0.4
"""Of the room, at most so much for what the assistant said."""
SAME_SHARE_MIN = 0.75
"""A sentence is said again by another that has so many of its words, and all its numbers."""
ALIKE = 0.7
"""What a sentence is worth less, all of whose words stand in those that are chosen already."""
GROUNDED_SHARE_MIN = 0.6
"""Of the words of a line that a model wrote; its numbers and names must all have been said."""

_NUMBER, _NAME, _DECISION, _NEWEST = 0.6, 0.4, 0.5, 0.15
"""What a sentence is worth more with a number, a name or a decision in it, and the newest of all."""
_ASKED, _ANSWERED = 0.1, 0.1
"""What a question of the user's, or a sentence of the assistant's, is worth by itself; a statement of the user's is
worth the probability that it lasts."""
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_LIST_MARK = re.compile(r"^\s*(?:[-*•#>|]+|\d{1,2}[.)])\s+")
_DIGIT = re.compile(r"\d")


class _Sentence(Struct):
    """``kind``: the member of CurrentState that it belongs to. ``at``: its place among all."""

    text: str
    kind: str
    worth: float
    at: int
    words: frozenset[str]
    numbers: frozenset[float]

    def repeats(self, other: _Sentence) -> bool:
        """Whether it says no more than the other."""
        if not self.numbers <= other.numbers:
            return False
        return self.share_in(other.words) >= SAME_SHARE_MIN

    def share_in(self, told: Set[str]) -> float:
        """The share of its words that are among these."""
        return len(self.words & told) / max(1, len(self.words))


def extracted(
    parts: Sequence[Part], written: CurrentState | None, before: CurrentState | None, tokens_max: int
) -> CurrentState:
    """The state of these parts, oldest first, whose block has at most so many tokens. Linear in their length, but for
    the comparison of sentences. ``written``: what a model made of them, as far as it is made of their words, goes
    first. ``before``: what stood for what was said before them."""
    found = _sentences(parts, before)
    wanted, chosen, topic = list[_Sentence](), list[_Sentence](), ""
    room = tokens_max - FRAME_TOKENS
    if written is not None:
        told = SourceText("\n".join([*(part.text for part in parts), *told_lines(before)]))
        topic = _usable(written.topic, told)
        wanted = [each for each in _as_sentences(written, len(found)) if _usable(each.text, told)]
    topic = topic or (before.topic if before else "") or _topic(parts)
    topic = topic if line_tokens(topic) <= room else ""
    room -= line_tokens(topic) if topic else 0
    for each in wanted:
        if (cost := line_tokens(each.text)) <= room:
            chosen.append(each)
            room -= cost
    filled = _filled(chosen, found, room, answers_room=int(ANSWERS_SHARE * tokens_max))
    in_order = sorted(filled, key=lambda each: each.at)
    return CurrentState(topic, **{kind: tuple(each.text for each in in_order if each.kind == kind) for kind in KINDS})


def _filled(chosen: list[_Sentence], found: Sequence[_Sentence], room: int, *, answers_room: int) -> list[_Sentence]:
    """These, and of what was found, one by one, what is worth most for its length and least like those before it, as
    far as there is room."""
    left = {place: line_tokens(each.text) for place, each in enumerate(found)}
    told = set[str]().union(*(each.words for each in chosen))
    while left:
        best = max(
            left, key=lambda place: found[place].worth * (1 - ALIKE * found[place].share_in(told)) / sqrt(left[place])
        )
        each, cost = found[best], left.pop(best)
        is_answer = each.kind == "answers"
        if cost > room or (is_answer and cost > answers_room) or any(each.repeats(other) for other in chosen):
            continue
        chosen.append(each)
        room -= cost
        answers_room -= cost if is_answer else 0
        left = {place: cost for place, cost in left.items() if cost <= room}
        told |= each.words
    return [each for each in chosen if not any(other.at > each.at and each.repeats(other) for other in chosen)]


LABELS = {"decisions": "Decided", "facts": "Told", "answers": "Answered", "open": "Open"}
"""How a line of each kind begins."""
KINDS = tuple(LABELS)


# --- sentences -------------------------------------------------------------------------------------------------------


def _sentences(parts: Sequence[Part], before: CurrentState | None) -> list[_Sentence]:
    found = [*_as_sentences(before, 0)] if before is not None else []
    for number, part in enumerate(parts):
        last = number + 1 == len(parts) or parts[number + 1].role is Role.USER
        read = _of_user(part.text, unanswered=last) if part.role is Role.USER else _of_assistant(part.text)
        newest = _NEWEST * (number + 1) / len(parts)
        for text, kind, worth in read:
            if each := _sentence(text, kind, worth + newest, len(found)):
                found.append(each)
    return found[-CANDIDATES_MAX:]


def _sentence(text: str, kind: str, worth: float, at: int) -> _Sentence | None:
    """None for what is an order to a model, or says nothing. Secrets are hidden."""
    line = _trimmed(redact(" ".join(text.split())), SENTENCE_CHARS_MAX)
    said, found, named = frozenset(content_words(line)), frozenset(numbers(line)), names(line)
    if len(said) + len(found) + len(named) < TELLING_MIN or is_instruction(line):
        return None
    worth += _NUMBER * bool(found) + _NAME * bool(named)
    return _Sentence(line, kind, worth, at, said, found)


def _of_user(text: str, *, unanswered: bool) -> Iterator[tuple[str, str, float]]:
    """What the user states, decides and asks, with what each is worth by itself."""
    written = squeezed(heard(ends(text)).text)
    found = clauses(written, clauses_max=CLAUSES_MAX)
    judged = judge(features(found), None)
    pairs = zip(found, judged, strict=True)
    for _, some in groupby(pairs, key=lambda pair: pair[0].sentence):
        sentence = list(some)
        said = written[sentence[0][0].start : sentence[-1][0].end].strip(" ,;–—-(")
        lasting = max(judgement.lasting for _, judgement in sentence)
        asks = sentence[-1][0].asked
        if asks:
            yield said, "open" if unanswered else "facts", _ASKED
        elif is_decision(said):
            yield said, "decisions", lasting + _DECISION
        else:
            yield said, "facts", lasting


def _of_assistant(text: str) -> Iterator[tuple[str, str, float]]:
    """Figures and names; courtesy and advice have neither."""
    for line in _SENTENCE_END.split(ends(text))[:SENTENCES_MAX]:
        said = _LIST_MARK.sub("", line).strip()
        if said and not said.endswith("?") and (_DIGIT.search(said) or names(said)):
            yield said, "answers", _ANSWERED


def _as_sentences(state: CurrentState, at: int) -> Iterator[_Sentence]:
    """Those of a state, each worth as much as can be: it was chosen once."""
    for kind in KINDS:
        for text in getattr(state, kind):
            if each := _sentence(text, kind, 1.0, at):
                yield each
                at += 1


def told_lines(state: CurrentState | None) -> list[str]:
    """Its topic, then what it tells, a line each."""
    return [] if state is None else [state.topic, *(text for kind in KINDS for text in getattr(state, kind))]


def _usable(line: str, told: SourceText) -> str:
    """The line, if it is made of what was told; else nothing."""
    plain = _trimmed(redact(" ".join(line.split())), SENTENCE_CHARS_MAX)
    if not plain or is_instruction(plain):
        return ""
    return plain if told.grounds(plain, share_min=GROUNDED_SHARE_MIN) else ""


def _topic(parts: Sequence[Part]) -> str:
    """The user's first sentence."""
    first = next((part.text for part in parts if part.role is Role.USER and part.text.strip()), "")
    line = next(iter(_SENTENCE_END.split(first.strip()[:PART_CHARS_MAX])), "")
    topic = _trimmed(redact(" ".join(line.split())), TOPIC_CHARS_MAX)
    return "" if is_instruction(topic) else topic


def ends(text: str, chars_max: int = PART_CHARS_MAX, gap: str = "\n") -> str:
    """Of a longer text its beginning and its end."""
    half = chars_max // 2
    return text if len(text) <= chars_max else f"{text[:half]}{gap}{text[-half:]}"


def _trimmed(line: str, chars_max: int) -> str:
    """So many characters at most, whole words where there are any."""
    if len(line) <= chars_max:
        return line
    cut = line[:chars_max]
    return f"{cut.rpartition(' ')[0] or cut[:-1]}…"


# --- how the model sees it -------------------------------------------------------------------------------------------


def rendered(state: CurrentState, mark: Callable[[str], str]) -> str:
    """The block. The same state gives the same bytes."""
    inside = "\n".join([STATE_HEADER, *lines(state)])
    return fenced(inside, mark(inside))


def lines(state: CurrentState) -> Iterator[str]:
    """Topic, decisions, what was said, what was answered, what is open: one line each."""
    if state.topic:
        yield f"- Topic: {neutralise(state.topic)}"
    for kind, label in LABELS.items():
        yield from (f"- {label}: {line}" for each in getattr(state, kind) if (line := neutralise(each)))


def line_tokens(text: str) -> int:
    """What one line costs, at most."""
    return estimate_tokens(f"- Answered: {neutralise(text)}\n")


FRAME_TOKENS = estimate_tokens(fenced(STATE_HEADER, "0" * 16))
"""What a state costs before it says anything."""
