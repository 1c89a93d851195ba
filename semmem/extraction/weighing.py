"""What a new fact is to its neighbours among the memories: an opinion where it loses nothing, else the closed forms.

Pure, so that it can be done wherever it holds up nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from semmem.extraction.contradiction import Judged, Verdict, may
from semmem.extraction.screen import same_text
from semmem.memory import MemoryType

Judge = Callable[[str, str, float], Verdict | None]
"""What a new text is to an old one, given the cosine of the two; None: it cannot tell. Pure: it runs wherever
``text_work`` has it done."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A memory near a new fact. ``opinion``: what a model thinks the fact is to it, if one was asked. ``dated``: its
    day is known. ``later``: it was said when what the fact tells had happened already."""

    content: str
    type: MemoryType
    cosine: float
    opinion: Verdict | None = None
    dated: bool = False
    later: bool = False


@dataclass(frozen=True, slots=True)
class Weighing:
    """``judge`` None: only the nearest memory may be meant by a fact, above ``update_threshold``. ``judge_cosine_min``:
    from where the judge is asked. Both are cosines."""

    judge: Judge | None
    judge_cosine_min: float
    update_threshold: float

    def verdicts(self, neighbours: Sequence[Neighbour], said: str, type: MemoryType) -> list[Judged | None]:
        """In the order of the neighbours, nearest first. None: it is open, for who can tell more than words do."""
        return [self._weighed(each, said, type, nearest=place == 0) for place, each in enumerate(neighbours)]

    def _weighed(self, old: Neighbour, said: str, type: MemoryType, *, nearest: bool) -> Judged | None:
        if same_text(old.content) == same_text(said):
            return Judged(Verdict.SAME)
        if old.opinion is not None and may(old.opinion, old.content, said):
            return Judged(old.opinion)
        verdict = self._verdict(old, said, type, nearest=nearest)
        if verdict is None and old.opinion is None:
            return None
        if verdict is not None and may(verdict, old.content, said):
            return Judged(verdict)
        doubtful = Verdict.CONTRADICTION in (old.opinion, verdict)
        return Judged(Verdict.DIFFERENT, unsettled=doubtful)

    def _verdict(self, old: Neighbour, said: str, type: MemoryType, *, nearest: bool) -> Verdict | None:
        """What happened on a day stays true whatever holds now: only an opinion lets a fact retire such an event. Nor
        does what happened before change what was said to hold afterwards."""
        event = old.type is MemoryType.EPISODIC and type is not MemoryType.EPISODIC
        if (event and old.dated) or old.later:
            return Verdict.SAME
        if self.judge is None:
            meant = nearest and old.cosine > self.update_threshold and not event
            return Verdict.CONTRADICTION if meant else Verdict.DIFFERENT
        return self.judge(old.content, said, old.cosine) if old.cosine >= self.judge_cosine_min else Verdict.DIFFERENT


def unweighed(neighbours: Sequence[Neighbour], said: str) -> list[Judged | None]:
    """Verdicts for when weighing took too long: all memories stay, and only a repetition word for word is dropped."""
    same = [same_text(old.content) == same_text(said) for old in neighbours]
    return [Judged(Verdict.SAME if repeated else Verdict.DIFFERENT) for repeated in same]
