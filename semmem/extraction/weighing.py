"""What a new fact is to its neighbours among the memories: an opinion where it loses nothing, else the judge's verdict.

Pure, so that it can be done wherever it holds up nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from semmem.extraction.contradiction import Verdict, may
from semmem.extraction.screen import same_text
from semmem.memory import MemoryType

Judge = Callable[[str, str, float], Verdict]
"""What a new text is to an old one, given the cosine of the two. Pure: it runs wherever ``text_work`` has it done."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A memory near a new fact. ``opinion``: what a model thinks the fact is to it, if one was asked."""

    content: str
    type: MemoryType
    cosine: float
    opinion: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Weighing:
    """``judge`` None: only the nearest memory may be meant by a fact, above ``update_threshold``. ``judge_cosine_min``:
    from where the judge is asked. Both are cosines."""

    judge: Judge | None
    judge_cosine_min: float
    update_threshold: float

    def verdicts(self, neighbours: Sequence[Neighbour], said: str, type: MemoryType) -> list[Verdict]:
        """In the order of the neighbours, nearest first."""
        return [self._weighed(each, said, type, nearest=place == 0) for place, each in enumerate(neighbours)]

    def _weighed(self, old: Neighbour, said: str, type: MemoryType, *, nearest: bool) -> Verdict:
        if same_text(old.content) == same_text(said):
            return Verdict.SAME
        if old.opinion is not None and may(old.opinion, old.content, said):
            return old.opinion
        verdict = self._verdict(old, said, type, nearest=nearest)
        return verdict if may(verdict, old.content, said) else Verdict.DIFFERENT

    def _verdict(self, old: Neighbour, said: str, type: MemoryType, *, nearest: bool) -> Verdict:
        """What happened stays true whatever holds now: only an opinion lets a fact retire an event."""
        if old.type is MemoryType.EPISODIC and type is not MemoryType.EPISODIC:
            return Verdict.SAME
        if self.judge is None:
            meant = nearest and old.cosine > self.update_threshold
            return Verdict.CONTRADICTION if meant else Verdict.DIFFERENT
        if old.cosine < self.judge_cosine_min:
            return Verdict.DIFFERENT
        return self.judge(old.content, said, old.cosine)


def unweighed(neighbours: Sequence[Neighbour], said: str) -> list[Verdict]:
    """Verdicts for when weighing took too long: all memories stay, and only a repetition word for word is dropped."""
    return [Verdict.SAME if same_text(old.content) == same_text(said) else Verdict.DIFFERENT for old in neighbours]
