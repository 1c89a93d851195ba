"""Files in the shape of LoCoMo or of LongMemEval, as stories: who said what when, and what is asked about it.

LoCoMo: a list of {sample_id, conversation: {speaker_a, speaker_b, session_N: [{speaker, dia_id, text}],
session_N_date_time}, qa: [{question, answer, category, evidence: [dia_id]}]}. Two people talk; each is a user of semmem
whose assistant the other one is, and each is asked.

LongMemEval: a list of {question_id, question_type, question, answer, haystack_sessions: [[{role, content,
has_answer}]], haystack_session_ids, answer_session_ids}. Each row is a user of its own, with one question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

USER = "user"
"""Who speaks to the assistant, where the file has roles rather than people."""
NOTHING = "5"
"""LoCoMo's category of questions that the conversation does not answer."""
_TURN = re.compile(r"D0*(\d+):0*(\d+)")
_SESSION = re.compile(r"session_(\d+)")


class DatasetError(Exception):
    """The file cannot be read as either shape; the message names the place, and nothing of what is there."""


@dataclass(frozen=True, slots=True)
class Said:
    """``id``: of the turn, one in its story."""

    id: str
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    said: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """``evidence``: ids of turns. None of them: nothing that was said answers it."""

    id: str
    text: str
    kind: str
    evidence: frozenset[str]
    answer: str


@dataclass(frozen=True, slots=True)
class Story:
    """``users``: those of the speakers who have a memory, and are asked."""

    id: str
    users: tuple[str, ...]
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]

    def session_of(self) -> Mapping[str, str]:
        """The session of each turn."""
        return {said.id: session.id for session in self.sessions for said in session.said}


def read(path: Path) -> list[Story]:
    """Raises DatasetError, also for a file that cannot be opened."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path.name}: is no JSON file that can be read ({type(error).__name__})") from None
    if not isinstance(rows, list) or not rows:
        raise DatasetError(f"{path.name}: is no list of conversations")
    return [_story(row, f"{path.name}[{number}]") for number, row in enumerate(rows)]


def _story(row: Any, place: str) -> Story:
    try:
        if "haystack_sessions" in row:
            return _longmemeval(row)
        if "conversation" in row:
            return _locomo(row)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise DatasetError(f"{place}: {type(error).__name__} at {error}") from None
    raise DatasetError(f"{place}: has neither conversation (LoCoMo) nor haystack_sessions (LongMemEval)")


# --- LoCoMo ----------------------------------------------------------------------------------------------------------


def _locomo(row: Mapping[str, Any]) -> Story:
    told = row["conversation"]
    numbers = sorted(int(name[1]) for name in map(_SESSION.fullmatch, told) if name is not None)
    sessions = [Session(f"D{number}", tuple(_spoken(told[f"session_{number}"]))) for number in numbers]
    known = {said.id for session in sessions for said in session.said}
    questions = [_locomo_question(str(number), asked, known) for number, asked in enumerate(row["qa"])]
    users = (str(told["speaker_a"]), str(told["speaker_b"]))
    return Story(str(row["sample_id"]), users, tuple(sessions), tuple(questions))


def _spoken(turns: Sequence[Mapping[str, Any]]) -> Iterator[Said]:
    for turn in turns:
        yield Said(_turn_id(turn["dia_id"]), str(turn["speaker"]), str(turn["text"]))


def _locomo_question(number: str, asked: Mapping[str, Any], known: set[str]) -> Question:
    """Evidence is written in several ways ("D8:6; D9:17", "D30:05"); what names no turn is left out."""
    kind = str(asked["category"])
    named = {f"D{part}:{turn}" for text in asked.get("evidence") or () for part, turn in _TURN.findall(str(text))}
    evidence = frozenset() if kind == NOTHING else frozenset(named & known)
    return Question(number, str(asked["question"]), f"category {kind}", evidence, str(asked.get("answer", "")))


def _turn_id(written: str) -> str:
    found = _TURN.search(written)
    if found is None:
        raise ValueError("dia_id")
    return f"D{found[1]}:{found[2]}"


# --- LongMemEval -----------------------------------------------------------------------------------------------------


def _longmemeval(row: Mapping[str, Any]) -> Story:
    ids = [str(one) for one in row["haystack_session_ids"]]
    sessions, marked = [], set()
    for place, (name, turns) in enumerate(zip(ids, row["haystack_sessions"], strict=True)):
        said = []
        for number, turn in enumerate(turns):
            said.append(Said(f"{place}:{number}", str(turn["role"]), str(turn["content"])))
            if turn.get("has_answer"):
                marked.add(said[-1].id)
        sessions.append(Session(f"{place}-{name}", tuple(said)))
    answering = {str(one) for one in row.get("answer_session_ids") or ()}
    whole = {said.id for name, session in zip(ids, sessions, strict=True) if name in answering for said in session.said}
    name = str(row["question_id"])
    evidence = frozenset() if name.endswith("_abs") else frozenset(marked or whole)
    question = Question(name, str(row["question"]), str(row["question_type"]), evidence, str(row.get("answer", "")))
    return Story(name, (USER,), tuple(sessions), (question,))
