"""Whatever clients do with the history of a session: each block stands where it was shown first, or nowhere.

Random histories of two clients in one session are compared with what a simple reader can tell of each request alone.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.memory import STANDING, Scope
from semmem.retrieval.recall import RecallRules
from tests.core.exchange.sessions import TURN, Seen, Session
from tests.core.exchange.world import World
from tests.core.retrieval.ledger.records import Heard
from tests.core.test_tool_loops import INSTRUCTED, Json
from tests.support.examples import examples

WORDS = (
    "Which Hawaii budget?",
    "Why barks Rex?",
    "Which tyres, Volvo?",
    "Does Rex like Hawaii?",
    "Go on then",
    "Fine day",
)
ANSWERS = ("I see.", "Tell me more.", "Really?")
FACTS = {"trip": "Hawaii budget number", "dog": "Rex barks time", "car": "Volvo needs tyres pair"}
STYLE = "Hawaii answers shall be short"
OF_EVE = "Eve and Rex own Hawaii tyres"
ENDINGS = {"erased", "quarantined", "unfounded", "expired", "compacted", "late"}

Key = tuple[str, str]
"""What was said, and what before it."""


@dataclass
class Client:
    """``sent`` is the last request, ``of`` the history that it was of, ``touched`` are messages that others asked about
    since; ``begun``: another began the session anew since; ``heard`` is how many words there had been."""

    session: Session
    sent: Seen | None = None
    of: list[Json] = field(default_factory=list)
    touched: set[Key] = field(default_factory=set)
    begun: bool = False
    heard: int = 0

    @property
    def said(self) -> list[Json]:
        return self.session.said


class Reader:
    """Sees every request and knows what may stand in it."""

    def __init__(self, api: str, tokens_max: int) -> None:
        self.heard = Heard()
        self.rules: RecallRules = RecallRules(**{**vars_of(TURN), "tokens_max": tokens_max})
        self.world = World(rules=self.rules, announce=self.heard.append)
        self.api = INSTRUCTED[api]
        self.clients = [Client(Session(self.api, world=self.world)) for _ in range(2)]
        self.eve = Session(self.api, world=self.world, user="eve")
        self.at = 0
        self.places: dict[str, set[Key]] = defaultdict(set)
        self.versions = dict.fromkeys(FACTS, 0)
        self.gone: set[str] = set()

    @property
    def client(self) -> Client:
        return self.clients[self.at]

    async def begin(self) -> None:
        alice = self.clients[0].session
        for id in FACTS:
            await self.learn(id)
        await alice.knows("style", STYLE, metadata={STANDING: "style"})
        await self.eve.knows("eve", OF_EVE)

    def content(self, id: str) -> str:
        return f"{FACTS[id]} {id}{self.versions[id]}"

    async def learn(self, id: str) -> None:
        """It is said anew, as another version where it is there."""
        self.versions[id] += 1
        session = self.clients[0].session
        old = await self.world.memories.get(Scope("alice"), id)
        if old is None:
            await session.knows(id, self.content(id), created_at=self.world.now)
        else:
            await session.changes(id, content=self.content(id))

    async def forget(self, id: str) -> None:
        await self.world.memories.forget(Scope("alice"), id)
        self.gone.update(f"{FACTS[id]} {id}{number}" for number in range(1, self.versions[id] + 1))

    async def forget_all(self) -> None:
        for id in FACTS:
            await self.forget(id)
        await self.world.memories.forget_scope(Scope("alice"))
        self.world.ledger.forget("alice")
        self.gone.add(STYLE)

    # --- a request ---------------------------------------------------------------------------------------------------

    async def send(self) -> None:
        client = self.client
        seen = await client.session.sends()
        keys = self.keys(client.said)
        blocks = seen.blocks
        spoken = [block for block, words in zip(blocks, seen.contents, strict=True) if words.strip()]
        assert len(keys) == len(spoken)
        if self.is_new(client.said):
            self.places[spoken[-1]].add(keys[-1])
        for key, block in zip(keys, spoken, strict=True):
            assert not block or key in self.places[block], "it was shown there first"
        every = seen.every_block
        assert len(every) == len(set(every)), "nothing stands there twice"
        assert len(every) == len([block for block in blocks if block]) + ("<semmem-memory" in seen.instructions)
        body = seen.body.decode()
        assert OF_EVE not in body
        assert not [text for text in self.gone if text in body]
        assert seen.result.tokens <= self.rules.tokens_max
        self.compare(client, seen)
        for other in self.clients:
            if other is not client:
                other.touched.add(keys[-1])
                other.begun |= len(keys) == 1
        client.sent, client.of, client.touched, client.begun = seen, [*client.said], set(), False
        client.heard = len(self.heard.words)

    def compare(self, client: Client, seen: Seen) -> None:
        """Where the client only went on, what it was given before is the beginning of what it is given now."""
        before = client.sent
        went_on = (
            before is not None and len(client.said) > len(client.of) and client.said[: len(client.of)] == client.of
        )
        ended = ENDINGS & set(self.heard.words[client.heard :])
        if before is None or not went_on or ended or client.begun or client.touched & set(self.keys(client.of)):
            return
        assert seen.goes_on_from(before)

    def is_new(self, said: list[Json]) -> bool:
        return bool(said) and said[-1].get("role") == "user" and isinstance(said[-1]["content"], str)

    def keys(self, said: list[Json]) -> list[Key]:
        """Of the messages in which the user speaks."""
        keys, before = list[Key](), ""
        for item in said:
            if not isinstance(item.get("content"), str):
                continue
            if item["role"] == "user":
                keys.append((item["content"], before))
            before = f"{item['role']}{item['content']}"
        return keys

    # --- what clients do ---------------------------------------------------------------------------------------------

    async def say(self, words: str, answer: str) -> None:
        self.close(answer)
        self.client.said.append(self.api.user(words))
        await self.send()
        self.client.said.append({"role": "assistant", "content": answer})

    def close(self, answer: str) -> None:
        """Tools that were called in the end are answered."""
        if self.client.said and self.client.said[-1].get("role") != "assistant":
            self.client.said.append({"role": "assistant", "content": answer})

    def turns(self) -> list[list[Json]]:
        """The history in turns of the user's."""
        turns: list[list[Json]] = []
        for item in self.client.said:
            if item.get("role") == "user" and isinstance(item["content"], str):
                turns.append([])
            if turns:
                turns[-1].append(item)
        return turns

    def set(self, turns: list[list[Json]]) -> None:
        self.client.said[:] = [item for turn in turns for item in turn]

    async def do(self, what: str, one: int, two: int) -> None:
        words, answer, turns = WORDS[one % len(WORDS)], ANSWERS[two % len(ANSWERS)], self.turns()
        place, other = (one % len(turns), two % len(turns)) if turns else (0, 0)
        fact = sorted(FACTS)[one % len(FACTS)]
        self.world.now += 1
        match what:
            case "say":
                await self.say(words, answer)
            case "tools" if turns:
                self.set([*turns[:-1], [turns[-1][0]]])
                for number in range(1 + two % 2):
                    self.client.said.extend(self.api.rounds(number))
                    await self.send()
                self.client.said.append({"role": "assistant", "content": answer})
            case "retry" if turns:
                self.set([*turns[:-1], [turns[-1][0]]])
                await self.send()
                self.client.said.append({"role": "assistant", "content": answer})
            case "edit" if turns:
                turns[place][0] = self.api.user(WORDS[two % len(WORDS)])
                self.set(turns)
                await self.say(words, answer)
            case "cut" if turns:
                self.set(turns[place:])
                if two % 2:
                    del self.client.said[:1]
                await self.say(words, answer)
            case "merge" if len(turns) > 1:
                first = one % (len(turns) - 1)
                text = f"{turns[first][0]['content']}\n{turns[first + 1][0]['content']}"
                turns[first : first + 2] = [[self.api.user(text), *turns[first + 1][1:]]]
                self.set(turns)
                await self.say(words, answer)
            case "reorder" if turns:
                turns[place], turns[other] = turns[other], turns[place]
                self.set(turns)
                await self.say(words, answer)
            case "branch" if turns:
                self.set(turns[:place])
                await self.say(WORDS[two % len(WORDS)], answer)
            case "copy":
                self.clients[1 - self.at].said[:] = self.client.said
            case "switch":
                self.at = 1 - self.at
            case "eve":
                self.eve.said[:] = [*self.client.said, self.api.user(words)]
                seen = await self.eve.sends()
                assert not [text for text in (*FACTS.values(), STYLE) if text in seen.body.decode()]
            case "learn":
                await self.learn(fact)
            case "erase":
                await self.forget(fact)
            case "forget":
                await self.forget_all()


def vars_of(rules: RecallRules) -> dict[str, Any]:
    return {name: getattr(rules, name) for name in RecallRules.__slots__}


OFTEN = ("say", "say", "say", "say", "tools", "retry", "edit", "cut", "merge", "reorder", "branch", "copy", "switch")
STEPS = st.tuples(
    st.sampled_from([*OFTEN, "switch", "eve", "learn", "erase", "forget"]), st.integers(0, 11), st.integers(0, 11)
)


@pytest.mark.long(20)
def test_every_block_stands_where_it_was_shown_first_and_nothing_erased_stands_anywhere() -> None:
    with asyncio.Runner() as runner:

        @settings(max_examples=examples(600))
        @given(st.sampled_from(sorted(INSTRUCTED)), st.sampled_from([260, 400, 5000]), st.lists(STEPS, max_size=14))
        def histories(api: str, tokens_max: int, steps: list[tuple[str, int, int]]) -> None:
            runner.run(_played(api, tokens_max, steps))

        histories()


async def _played(api: str, tokens_max: int, steps: list[tuple[str, int, int]]) -> None:
    reader = Reader(api, tokens_max)
    await reader.begin()
    for what, one, two in steps:
        await reader.do(what, one, two)
