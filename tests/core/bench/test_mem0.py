"""mem0 beside semmem: what is made of the answers, and its process, with a stand-in for the library."""

from __future__ import annotations

import stat
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from bench.facts import first, world
from bench.keys import verdicts
from bench.mem0_figures import FLOOR, ON_MILVUS, ON_QDRANT, OURS, OURS_COLD, Found, Tally, figures, table
from bench.mem0_part import Ask, ask_all, ask_what_nobody_knows, measure
from bench.mem0_process import mem0_process
from bench.plan import Place, Plan
from demo.processes import Failed
from semmem.config import Settings

LIBRARY = '''
class Embedding:
    def embed(self, text, action=None):
        return [len(text)]

class Memory:
    """Finds what shares a word."""

    def __init__(self):
        self.embedding_model, self.kept = Embedding(), []
        print("a library that prints")

    @classmethod
    def from_config(cls, config):
        assert config["vector_store"]["config"]["embedding_model_dims"] == 384
        return cls()

    def add(self, content, user_id, infer, metadata):
        assert infer is False
        self.kept.append((content, user_id, metadata))

    def search(self, question, filters, top_k):
        self.embedding_model.embed(question)
        if question == "fail":
            raise RuntimeError("the store is gone")
        words = set(question.split())
        found = [m for c, u, m in self.kept if u == filters["user_id"] and words & set(c.split())]
        return {"results": [{"metadata": m} for m in found[:top_k]]}
'''


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A Python that has a mem0."""
    library = tmp_path / "library"
    for name, text in (("mem0", LIBRARY), ("torch", "def set_num_threads(count): assert count == 1\n")):
        (library / name).mkdir(parents=True)
        (library / name / "__init__.py").write_text(text)
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={library} exec {sys.executable} "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


async def test_a_question_goes_to_the_process_and_numbers_come_back(python: Path, tmp_path: Path) -> None:
    known = first(world(), 60)
    fact = known.facts[0]
    async with mem0_process(python, tmp_path, "mem0") as mem0:
        await mem0.open("qdrant", "", tmp_path / "its", "facts", Settings().memory.embedding)
        assert await mem0.add(known.facts) >= 0.0
        found = await mem0.search(fact.content, fact.user, 5)
        assert fact.number in found["numbers"]
        assert 0 <= found["embed_seconds"] <= found["seconds"]
        assert (await mem0.search("wholly unrelated", fact.user, 5))["numbers"] == []
        with pytest.raises(Failed, match="the store is gone"):
            await mem0.search("fail", fact.user, 5)
        assert (await mem0.search(fact.content, fact.user, 5))["numbers"] == found["numbers"]


async def test_a_process_that_ends_is_a_failure(tmp_path: Path) -> None:
    async with mem0_process(Path("/bin/false"), tmp_path, "mem0") as mem0:
        with pytest.raises(Failed):
            await mem0.open("qdrant", "", tmp_path / "its", "facts", Settings().memory.embedding)


def test_without_mem0_nothing_is_measured_and_the_reason_is_said(tmp_path: Path) -> None:
    found = measure(Plan(), Place(tmp_path, tmp_path), lambda _line: None, environment=tmp_path / ".venv-mem0")
    assert found["keys"] == {}
    assert verdicts({"mem0": found}) == []
    assert "mem0_search_ratio not measured: mem0 is not installed: make .venv-mem0/.ready" in table(found)


def _tally(search_s: float, embed_s: float) -> Tally:
    found = [Found([1], search_s + embed_s, embed_s, 0.001)]
    return Tally([found, found], recalls=[1.0, 0.5], strangers=[0, 2], general=[0])


def test_ratios_are_without_embedding_and_as_shipped() -> None:
    tallies = {OURS: _tally(0.001, 0.004), OURS_COLD: _tally(0.002, 0.0), FLOOR: _tally(0.0001, 0.0)}
    tallies |= {ON_MILVUS: _tally(0.010, 0.010), ON_QDRANT: _tally(0.005, 0.010)}
    found = figures(tallies)
    assert found["keys"]["mem0_search_ratio"]["value"] == pytest.approx(10.0)
    assert found["keys"]["mem0_total_ratio"]["value"] == pytest.approx(4.0)
    assert found["ratios"]["mem0_qdrant_search_ratio"]["value"] == pytest.approx(5.0)
    assert found["ratios"]["mem0_milvus_search_ratio_cold"]["value"] == pytest.approx(5.0)
    ours = found["systems"][OURS]
    assert (ours["recall_at_5"], ours["noise_strangers"], ours["noise_general"]) == (0.75, 0.5, 0.0)
    assert "50%" in table(found)


def test_without_a_server_there_is_no_verdict() -> None:
    tallies = {OURS: _tally(0.001, 0.004), OURS_COLD: _tally(0.002, 0.0), ON_QDRANT: _tally(0.005, 0.010)}
    found = figures(tallies)
    assert found["keys"] == {}
    assert set(found["not_measured"]) == {"mem0_search_ratio", "mem0_total_ratio"}


class _Asked:
    """Systems that find the fact of the question's own number, and write down who was asked what."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str, str]] = []
        self.number_of = {(one.text, one.user): next(iter(one.gold)) for one in world().asked}

    def system(self, name: str, *, finds: bool) -> Ask:
        async def ask(text: str, user: str) -> Found:
            self.log.append((name, text, user))
            return Found([self.number_of.get((text, user), -1)] if finds else [], 0.002, 0.001, 0.001)

        return ask


NAMES = (OURS, OURS_COLD, FLOOR, ON_MILVUS, ON_QDRANT)
PLAN = Plan(mem0_questions=6, mem0_rounds=2, mem0_noise=4)


async def test_every_system_is_asked_every_question_once_and_they_take_turns_in_being_first() -> None:
    asked = _Asked()
    systems = {name: asked.system(name, finds=name != ON_QDRANT) for name in NAMES}
    times = Counter(one.text for one in world().asked)
    known = replace(world(), asked=tuple(sorted(world().asked, key=lambda one: (-times[one.text], one.text))))
    assert known.asked[0].text == known.asked[1].text
    tallies = await ask_all(systems, PLAN, known, lambda _line: None)
    said = [(name, text) for name, text, _ in asked.log if not text.endswith("Please.")]
    assert len(said) == len(set(said)) == 6 * len(NAMES)
    assert len({text for _, text in said}) == 6  # no cache has seen it
    assert {name for name, _ in said[:: len(NAMES)]} == {OURS, ON_MILVUS, ON_QDRANT}
    for start in range(0, len(said), len(NAMES)):
        names = [name for name, _ in said[start : start + len(NAMES)] if name in (OURS, OURS_COLD, FLOOR)]
        assert names == [OURS, OURS_COLD, FLOOR]
    assert tallies[OURS].recalls == [1.0] * 6
    assert tallies[ON_QDRANT].recalls == [0.0] * 6
    assert [len(some) for some in tallies[ON_MILVUS].rounds] == [3, 3]


async def test_strangers_are_asked_about_people_whom_only_another_user_knows() -> None:
    asked = _Asked()
    systems = {OURS: asked.system(OURS, finds=True), FLOOR: asked.system(FLOOR, finds=True)}
    tallies = {OURS: Tally(), FLOOR: Tally()}
    known = first(world(), 60)
    await ask_what_nobody_knows(systems, tallies, PLAN, known)
    assert {name for name, _, _ in asked.log} == {OURS}
    by_text = {one.text: one for one in known.asked if one.named}
    strange = [(text, user) for _, text, user in asked.log if text in by_text]
    assert len(strange) == len(tallies[OURS].strangers) == 4
    assert all(by_text[text].user != user for text, user in strange)
    assert len(tallies[OURS].general) == 4
