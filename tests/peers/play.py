"""Which part plays which step, and in which house."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.peers import blocks, calls, talk, upkeep
from tests.peers.known import NOT_PLAYED
from tests.peers.steps import Step, stories
from tests.peers.world import World, configured, world
from tests.support.harness import StandInModel, stand_in_model

Tell = Callable[[str, list[str]], None]
PlayOne = Callable[[World, Step], list[str]]

ONE: dict[str, tuple[frozenset[str], PlayOne]] = {
    "inject": (blocks.FIELDS, blocks.inject),
    "control": (blocks.FIELDS, blocks.control),
    "api": (calls.FIELDS, calls.call),
    "search": (upkeep.SEARCH_FIELDS, upkeep.search),
    "store": (upkeep.FIELDS, upkeep.stored),
    "consolidate": (upkeep.FIELDS, upkeep.consolidate),
    "summarize": (upkeep.FIELDS, upkeep.summarise),
    "gate": (talk.FIELDS, talk.gate),
    "budget": (upkeep.SEARCH_FIELDS, upkeep.over_budget),
}
TALKS = frozenset({"talk", "extract"})
IN_WORDS = frozenset(
    {"or_special_chars", "or_sum_other_owner_untouched", "or_no_memory_header", "or_budget_always_one"}
)
"""Scenarios whose ``expect`` is a sentence that their kind is judged by."""


def play(folder: Path, steps: Sequence[Step], tell: Tell) -> dict[str, list[str]]:
    """What differs, by step. Each configuration has a house of its own while its steps are played."""
    found: dict[str, list[str]] = {}
    with ExitStack() as stack:
        model = stack.enter_context(stand_in_model())
        houses = Houses(folder, model, stack)
        for story in stories(steps):
            for step, wrong in _story(houses, story):
                found[step.id] = wrong
                tell(step.id, wrong)
    return found


def play_in(world: World, steps: Sequence[Step]) -> dict[str, list[str]]:
    """The same in one house, for steps that have no configuration."""
    return {step.id: wrong for story in stories(steps) for step, wrong in play_story(world, story)}


class Houses:
    """The one at default settings stays; another is there while its step is played."""

    def __init__(self, folder: Path, model: StandInModel, stack: ExitStack) -> None:
        self._folder = folder
        self._model = model
        self._stack = stack
        self._home: World | None = None
        self._others = 0

    def home(self) -> World:
        if self._home is None:
            self._home = self._stack.enter_context(world(self._folder / "home", self._model, configured({})))
        return self._home

    def play(self, story: list[Step]) -> list[tuple[Step, list[str]]]:
        config = next((step.row["config"] for step in story if step.row.get("config")), None)
        if config is None:
            return list(play_story(self.home(), story))
        self._others += 1
        with world(self._folder / f"house-{self._others}", self._model, configured(config)) as other:
            return list(play_story(other, story))


def _story(houses: Houses, story: list[Step]) -> Iterator[tuple[Step, list[str]]]:
    """What cannot be played differs."""
    unjudged = {step.id: problem for step in story if (problem := cannot_be_judged(step))}
    if unjudged:
        yield from ((step, [f"{NOT_PLAYED}: {'; '.join(unjudged.values())}"]) for step in story)
        return
    try:
        yield from houses.play(story)
    except (AssertionError, KeyError, ValueError, TypeError, json.JSONDecodeError) as failure:
        yield from ((step, [f"{NOT_PLAYED}: {type(failure).__name__}: {failure}"[:200]]) for step in story)


def play_story(world: World, story: Sequence[Step]) -> Iterator[tuple[Step, list[str]]]:
    said = [step for step in story if kind(step) in TALKS]
    yield from talk.talk(world, said)
    for step in story:
        if kind(step) not in TALKS:
            yield step, ONE[kind(step)][1](world, step)


def kind(step: Step) -> str:
    row = step.row
    if "expect_search" in row or "not_greeting" in row:
        return "gate"
    if "given_recipe" in row:
        return "budget"
    return str(row.get("kind", "talk" if "message" in row else "none"))


def cannot_be_judged(step: Step) -> str:
    """Why, empty when it can: an expectation that is looked at by nobody would count as met."""
    of = kind(step)
    if of not in ONE and of not in TALKS:
        return f"no way to play a step of kind {of}"
    unknown = sorted(step.row.keys() - (talk.FIELDS if of in TALKS else ONE[of][0]))
    if unknown:
        return f"nobody looks at {', '.join(unknown)}"
    expected = step.row.get("expect")
    known = step.scenario in blocks.EXPECTED.keys() | calls.BY_HAND.keys() | IN_WORDS
    return "an expectation in words that nobody knows" if isinstance(expected, str) and not known else ""
