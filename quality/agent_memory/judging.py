"""Whether answers are right, where a model is configured that answers and one that judges: its figure, not semmem's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import httpx

from quality.agent_memory.talking import Asked, blocks_in

Json = dict[str, Any]

UNKNOWN = "It is not known: nothing that was said answers this."
_ANSWERS = "Answer in one short sentence. Say that you do not know where the notes do not answer the question."
_JUDGES = (
    "Below are a question, the answer that is expected, and an answer that was given. Say yes if the answer that was"
    " given means the same or holds it, also in other words or with more around it; a date may be written in any way."
    " Say no otherwise. Reply with the one word yes or no."
)


class NotAnswered(Exception):
    """A model did not answer, or not with text."""


@dataclass(frozen=True, slots=True)
class Model:
    """An OpenAI-compatible one; ``url`` with its ``/v1``. ``key`` empty: none is sent."""

    url: str
    name: str
    key: str = ""

    def says(self, http: httpx.Client, messages: list[Json]) -> str:
        """Its answer to messages. Raises NotAnswered."""
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        body = {"model": self.name, "messages": messages, "temperature": 0}
        try:
            told = http.post(f"{self.url.rstrip('/')}/chat/completions", json=body, headers=headers).json()
            text = told["choices"][0]["message"]["content"]
        except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
            raise NotAnswered(type(error).__name__) from None
        if not isinstance(text, str):
            raise NotAnswered("no text")
        return text


def accuracy(asked: Iterable[Asked], answers: Model, judge: Model, *, timeout_s: float = 120.0) -> Json:
    """How many answers the judge calls right. Where a model does not answer, a question is not judged, and counted."""
    counts = {"right": 0, "judged": 0, "unjudged": 0}
    with httpx.Client(timeout=timeout_s) as http:
        for each in asked:
            try:
                verdict = _is_right(http, each, answers, judge)
            except NotAnswered:
                verdict = None
            counts["unjudged" if verdict is None else "judged"] += 1
            counts["right"] += bool(verdict)
    return {**counts, "model": answers.name, "judge": judge.name}


def _is_right(http: httpx.Client, asked: Asked, answers: Model, judge: Model) -> bool | None:
    """None for a verdict that is neither."""
    given = answers.says(http, prompt(asked))
    expected = asked.question.answer if asked.question.evidence else UNKNOWN
    case = f"Question: {asked.question.text}\nExpected: {expected}\nGiven: {given}"
    word = judge.says(http, [{"role": "system", "content": _JUDGES}, {"role": "user", "content": case}])
    return {"yes": True, "no": False}.get(word.strip().strip(".!").casefold())


def prompt(asked: Asked) -> list[Json]:
    """What the model received for the question, of all users together, and how to answer."""
    blocks = [block for given in asked.given for block in blocks_in(given.prompt)]
    notes = [{"role": "system", "content": block} for block in blocks]
    return [{"role": "system", "content": _ANSWERS}, *notes, {"role": "user", "content": asked.question.text}]
