"""What the shipped weights and the shipped embedding model decide together."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from semmem.memory import Memory, MemoryType, Scope
from semmem.ports.embedder import Embedder
from semmem.retrieval.decide.decision import Decision
from semmem.retrieval.decide.trained import SHIPPED, Trained
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.search import Candidates, ResolvedQuery, Strategy, best_of
from tests.support.shipped import shipped_embedder

NUTS = "User is allergic to peanuts."
COELIAC = "User has coeliac disease and eats nothing with gluten."
CORIANDER = "User thinks that cilantro tastes of soap."
HOME = "User grew up in Trondheim."
WORK = "User is a physiotherapist at a children's hospital."
FERRY = "User takes the ferry to the island every other Sunday."
SHED = "User is building a bicycle shed behind the house."
SISTER = "User's sister Maren keeps bees."
LANTERN = "User collects old ship's lanterns."
PHONE = "User's phone is a red Fairphone."
STORE = (NUTS, COELIAC, CORIANDER, HOME, WORK, FERRY, SHED, SISTER, LANTERN, PHONE)


class Person:
    """Somebody with these memories, and what the prompt of a request of his would hold."""

    def __init__(self, embedder: Embedder, index: MemoryIndex) -> None:
        self._embedder = embedder
        self._index = index
        self._decision = Decision(Trained.load(SHIPPED))

    async def asks(self, text: str) -> Candidates:
        vector = await self._embedder.embed(text)
        query = ResolvedQuery(text, Scope("ada"), 0.0, Strategy.HYBRID, limit=5)
        return best_of(self._index, query, vector, self._decision)

    async def shown(self, text: str) -> list[str]:
        found = await self.asks(text)
        return [hit.memory.content for hit in found.hits if hit.memory.id not in found.cuts]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def person() -> AsyncIterator[Person]:
    embedder = shipped_embedder()
    await embedder.open()
    memories = [
        Memory(f"mem_{place}", 1, MemoryType.SEMANTIC, text, "ada", embedding=await embedder.embed(text))
        for place, text in enumerate(STORE)
    ]
    yield Person(embedder, MemoryIndex(memories))
    await embedder.close()


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("request_", "wanted"),
    [
        ("Recommend a snack for the train.", NUTS),
        ("What could I cook for dinner tonight?", COELIAC),
        ("Suggest a taco recipe with fresh herbs.", CORIANDER),
        ("Which town do I come from?", HOME),
        ("What does my sister do?", SISTER),
        ("Any tips for my next project at home?", SHED),
    ],
)
async def test_what_matters_for_a_request_is_shown_though_it_shares_no_word(
    person: Person, request_: str, wanted: str
) -> None:
    assert wanted in await person.shown(request_)


@pytest.mark.parametrize("text", ["What do you know about me?", "What do you remember?", "Who am I?", "Wer bin ich?"])
async def test_whoever_asks_what_is_known_of_him_is_told_most_of_it(person: Person, text: str) -> None:
    found = await person.asks(text)
    assert found.request is not None
    assert found.request.lists_profile
    assert len(found.hits) - len(found.cuts) >= 8


async def test_a_text_about_the_user_is_written_with_what_is_known_of_him(person: Person) -> None:
    shown = await person.shown("Write my bio for the club's website.")
    assert {HOME, WORK} <= set(shown)


@pytest.mark.parametrize(
    "text",
    [
        "Good morning!",
        "thanks a lot, that helped",
        "How far is the moon from the earth?",
        "Who painted The Night Watch?",
        "What is 17 times 23?",
        "Write a poem about bees.",
        "Write a short poem about an old lantern at sea.",
    ],
)
async def test_where_nothing_is_wanted_nothing_is_shown(person: Person, text: str) -> None:
    assert await person.shown(text) == []


async def test_what_plainly_concerns_nobody_is_called_so(person: Person) -> None:
    general = (await person.asks("What is the capital of Peru?")).request
    courtesy = (await person.asks("thanks a lot, bye then")).request
    assert general is not None
    assert courtesy is not None
    assert (general.is_general, courtesy.is_general, courtesy.purpose) == (True, True, "courtesy")


async def test_the_weights_are_for_the_default_embedder(person: Person) -> None:
    assert Trained.load(SHIPPED).signature == shipped_embedder().signature
