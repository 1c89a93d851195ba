"""What other systems' own tests tell, ask and expect, as far as no running Envoy is needed to judge it.

A row is a step of a scenario: a message with what the prompt must hold before it is answered, and what must be stored
after it was learnt from. Scenarios with a step that needs headers, configurations, signals, faults or the API are left
to the tests against a running semmem, and counted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from quality.folder import Folder, Row
from quality.scores import Json, Share, each, pooled
from quality.telling import Said, tell
from quality.wiring import DAY_S, NOW, Semmem
from semmem.text.stems import stems

JUDGED = frozenset(
    """
    expect_in_prompt must_not match given store expect_stored stored_must_not expect_min_facts expect_facts
    expect_count expect_max_length must_not_stored_as assistant_answer
    """.split()
)
"""Fields that are looked at."""
BESIDE = frozenset(
    """
    scenario source step user session api kind message note corrected conflict sr_expect or_type or_keys semmem_type
    system history expect_system_kept expect_role expect_position expect_last_message_kept expect_stored_session
    """.split()
)
"""Fields that say where a step is from, or ask for what the place of a block in a request decides."""
SPACE_S = 60.0

Scenarios = Mapping[str, Sequence[Row]]


async def peers(folder: Folder, semmem: Semmem) -> tuple[dict[str, float | None], Json]:
    """The share of scenarios all of whose steps come out as expected; by file, and what did not."""
    shares: dict[str, Share] = {}
    failed: list[Json] = []
    left: dict[str, int] = {}
    for file, rows in folder.files("peers").items():
        scenarios = by_scenario(rows)
        judged = {name: steps for name, steps in scenarios.items() if all(map(can_be_judged, steps))}
        wrong = {name: await _wrong(semmem, f"peer/{name}", steps) for name, steps in judged.items()}
        failed += [{"scenario": name, "wrong": found} for name, found in wrong.items() if found]
        shares[file] = Share.of(not found for found in wrong.values())
        left[file] = len(scenarios) - len(judged)
    return {"peers_passed": pooled(shares.values())}, {"passed": each(shares), "left_out": left, "failed": failed}


def by_scenario(rows: Sequence[Row]) -> Scenarios:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["scenario"]].append(row)
    return found


def can_be_judged(step: Row) -> bool:
    return "message" in step and step.get("kind", "extract") == "extract" and step.keys() <= JUDGED | BESIDE


async def _wrong(semmem: Semmem, prefix: str, steps: Sequence[Row]) -> list[str]:
    """What did not come out as expected. Rows that are no steps of one story are each a user of their own."""
    found: list[str] = []
    for number, step in enumerate(steps):
        user = f"{prefix}/{step['user']}" if "step" in step else f"{prefix}/{number}"
        at = NOW - DAY_S + SPACE_S * number
        for place, memory in enumerate(step.get("given", ())):
            content = memory if isinstance(memory, str) else memory["content"]
            await semmem.remember(user, f"mem_{user}_{number}_{place}", content, at=at)
        found += unexpected_in_prompt(step, await semmem.notes(step["message"], user))
        said = Said(step["message"], at, step.get("session", "s"), step.get("assistant_answer", ""))
        (turns,) = (await tell(semmem, {user: [said]})).values()
        stored = [memory.content for memory in await semmem.retrievable(user) if memory.source.turn in turns]
        found += unexpected_in_store(step, stored)
    return found


def unexpected_in_prompt(step: Row, notes: Sequence[str]) -> list[str]:
    text = "\n".join(notes).casefold()
    missing = [word for word in step.get("expect_in_prompt", ()) if word.casefold() not in text]
    if step.get("match") == "any" and len(missing) < len(step.get("expect_in_prompt", ())):
        missing = []
    present = [word for word in step.get("must_not", ()) if word.casefold() in text]
    return [f"prompt lacks {word}" for word in missing] + [f"prompt holds {word}" for word in present]


def _says(contents: Sequence[str], wanted: str) -> bool:
    """Whether one of them holds these words side by side, in whatever form: the others keep "I start with tests", and
    semmem says it of the user ("starts with tests")."""
    wanted = wanted.casefold()
    told = f" {_stemmed(wanted)} "
    return any(wanted in content or told in f" {_stemmed(content)} " for content in contents)


def _stemmed(text: str) -> str:
    return " ".join(stems(re.findall(r"\w+", text)))


def unexpected_in_store(step: Row, stored: Sequence[str]) -> list[str]:
    """``stored``: the contents of memories."""
    contents = [content.casefold() for content in stored]
    text = "\n".join(contents)
    wrong = [f"not stored: {words}" for words in step.get("expect_stored", ()) if not _says(contents, words)]
    banned = [*step.get("stored_must_not", ()), *step.get("must_not_stored_as", ())]
    wrong += [f"stored: {word}" for word in banned if word.casefold() in text]
    for word, count in step.get("expect_count", {}).items():
        wrong += [f"not {count} times: {word}"] * (sum(word.casefold() in content for content in contents) != count)
    wrong += ["too few facts"] * (len(stored) < step.get("expect_min_facts", 0))
    wrong += ["facts where none are"] * (step.get("expect_facts") == 0 and bool(stored))
    wrong += ["a fact too long"] * (max(map(len, contents), default=0) > step.get("expect_max_length", 10_000))
    return wrong
