"""Feedback replayed with the shipped weights: what did not help stops crowding, and everything else is still found."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from semmem.memory import Memory, MemoryType, Scope
from semmem.ports.embedder import Embedder
from semmem.ports.memory_records import VoteRow
from semmem.retrieval.decide.decision import Decision
from semmem.retrieval.decide.trained import SHIPPED, SHIPPED_READER, Reader, Trained
from semmem.retrieval.feedback import Votes
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.search import ResolvedQuery, Strategy, best_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOWNS = 4
LINES = 5


@dataclass(frozen=True)
class Script:
    """Somebody whose ``clutter`` comes up where it is of no use (``crowded``), and what they ask beside that, with the
    memory that answers it. ``clearly``: questions that ask for a piece of clutter itself."""

    clutter: tuple[str, ...]
    crowded: tuple[str, ...]
    asks: tuple[tuple[str, str], ...]
    clearly: tuple[tuple[str, str], ...]

    @property
    def memories(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.clutter, *(answer for _, answer in self.asks))))


TEA = Script(
    clutter=(
        "User bought a clay teapot in Kyoto.",
        "User once got a tea sampler from a colleague.",
        "User visited a tea plantation years ago.",
    ),
    crowded=(
        "What tea should I buy for the weekend?",
        "Which tea do I drink in the morning?",
        "Which tea should I bring back from Japan?",
    ),
    asks=(
        ("Which tea do I drink in the morning?", "User drinks green tea every morning."),
        ("What does my sister do?", "User's sister Maren keeps bees."),
        ("Who is my dentist?", "User's dentist is Dr. Lindqvist in Mill Street."),
        ("How old is my daughter?", "User's daughter Ida turns seven in May."),
        ("Which car do I drive?", "User's car is a grey Volvo from 2012."),
        ("Recommend a snack for the train.", "User is allergic to peanuts."),
    ),
    clearly=(
        ("Do you remember my teapot?", "User bought a clay teapot in Kyoto."),
        ("Did I ever visit a tea plantation?", "User visited a tea plantation years ago."),
    ),
)
BIKES = Script(
    clutter=(
        "User's cousin rides a folding bicycle to work.",
        "User once rented a tandem bicycle on an island.",
        "User's neighbour sells used bicycles.",
    ),
    crowded=("What size are my bicycle's tyres?", "Help me choose a new bicycle.", "Is my bicycle good for tours?"),
    asks=(
        ("What size are my bicycle's tyres?", "User's bicycle has 28-inch tyres."),
        ("What is my landlord's name?", "User's landlord is called Mr. Okafor."),
        ("Where do I keep my spare key?", "User keeps a spare key under the blue flowerpot."),
        ("What instrument do I play?", "User plays the viola in an amateur quartet."),
        ("What could I cook for dinner tonight?", "User has coeliac disease and eats nothing with gluten."),
    ),
    clearly=(("What does my neighbour sell?", "User's neighbour sells used bicycles."),),
)
SCRIPTS = {"tea": TEA, "bikes": BIKES}


class Person:
    """Somebody of a script. ``shown``: the lines in the prompt of a question, given what was said of the clutter."""

    def __init__(self, embedder: Embedder, memories: list[Memory]) -> None:
        self._embedder = embedder
        self._trained, self._reader = Trained.load(SHIPPED), Reader.load(SHIPPED_READER)
        self._index = MemoryIndex(memories)
        self._ids = {memory.content: memory.id for memory in memories}

    def unhelpful(self, contents: tuple[str, ...]) -> Votes:
        return Votes(VoteRow("ada", self._ids[content], 0, DOWNS, 1.0, 1) for content in contents)

    async def shown(self, text: str, votes: Votes) -> list[str]:
        query = ResolvedQuery(text, Scope("ada"), 0.0, Strategy.HYBRID, LINES)
        found = best_of(
            self._index, query, await self._embedder.embed(text), Decision(self._trained, votes, self._reader)
        )
        return [hit.memory.content for hit in found.hits if hit.memory.id not in found.cuts][:LINES]


async def played(embedder: Embedder, script: Script) -> Person:
    memories = [
        Memory(f"mem_{place}", 1, MemoryType.SEMANTIC, text, "ada", embedding=await embedder.embed(text))
        for place, text in enumerate(script.memories)
    ]
    return Person(embedder, memories)


@pytest.mark.parametrize("name", SCRIPTS)
async def test_what_did_not_help_stops_crowding(embedder: Embedder, name: str) -> None:
    script = SCRIPTS[name]
    person = await played(embedder, script)
    before, after = Votes(), person.unhelpful(script.clutter)
    crowd = [
        sum([len(set(await person.shown(text, votes)) & set(script.clutter)) for text in script.crowded])
        for votes in (before, after)
    ]
    assert crowd[0] >= 2
    assert crowd[1] <= crowd[0] // 3, crowd


@pytest.mark.parametrize("name", SCRIPTS)
async def test_everything_else_is_found_as_before(embedder: Embedder, name: str) -> None:
    script = SCRIPTS[name]
    person = await played(embedder, script)
    for text, answer in script.asks:
        for votes in (Votes(), person.unhelpful(script.clutter)):
            assert answer in await person.shown(text, votes), text


@pytest.mark.parametrize("name", SCRIPTS)
async def test_what_is_clearly_asked_for_is_shown_whatever_was_said_of_it(embedder: Embedder, name: str) -> None:
    script = SCRIPTS[name]
    person = await played(embedder, script)
    for text, answer in script.clearly:
        assert answer in await person.shown(text, person.unhelpful(script.clutter)), text


@pytest.mark.parametrize("name", SCRIPTS)
async def test_an_allergy_is_not_voted_away(embedder: Embedder, name: str) -> None:
    script = SCRIPTS[name]
    person = await played(embedder, script)
    text, must = script.asks[-1]
    assert must in await person.shown(text, person.unhelpful((must,)))
