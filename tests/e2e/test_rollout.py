"""Memory for some users first, by the filter that docs/attach.md shows under "Rolling out", in its three steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from demo.stack import HOME
from tests.support.harness import House, Json, StandInModel, eventually, house

SECTION = (HOME / "docs" / "attach.md").read_text().partition("## Rolling out\n")[2].partition("\n## ")[0]
((FILTER,),) = (yaml.safe_load(block.partition("```")[0]) for block in SECTION.split("```yaml\n")[1:])
FACT = "User's budget for the Hawaii trip is $10,000"
SAID = "I moved to Lisbon in May. What's my budget for the Hawaii trip?"
OBSERVE = (("PERCENT = 5", "PERCENT = 0"), ('OTHERS = "off"', 'OTHERS = "write"'))


def rolled_out(config: Json, *changes: tuple[str, str]) -> None:
    """The page's filter where the page says, with the constants of a step."""
    text = json.dumps(FILTER)
    for old, new in changes:
        before, after = json.dumps(old)[1:-1], json.dumps(new)[1:-1]
        assert before in text
        text = text.replace(before, after)
    filters = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"][
        "http_filters"
    ]
    filters.insert([each["name"] for each in filters].index("semmem.mutate"), json.loads(text))


def asked(here: House, user: str, mode: str = "on") -> tuple[bytes, str | None, bytes]:
    """The body that was sent, the outcome, the body that the model got."""
    body = json.dumps({"messages": [{"role": "user", "content": SAID}]}).encode()
    reply = here.send(body, user=user, headers={"x-semmem-memory": mode})
    assert reply.status == 200
    return body, reply.outcome, reply.prompt


def texts(here: House, user: str) -> list[str]:
    return [text for text, _ in here.semmem.turns(user)]


@pytest.mark.long(5)
def test_a_few_users_have_memory_and_the_others_pass_untouched(model: StandInModel, tmp_path: Path) -> None:
    with house(tmp_path, model, adapt=rolled_out) as here:
        users = [f"user{number}@example.com" for number in range(100)]
        found = {user: here.chat(user, "Hello there").outcome for user in users}
        out = [user for user, outcome in found.items() if outcome == "opted_out"]
        inside = [user for user in users if user not in out]
        assert 1 <= len(inside) <= 12, "about 5 of a hundred"
        assert {here.chat(user, "Hello again").outcome for user in out[:10]} == {"opted_out"}, "the same users"
        lucky, other = inside[0], out[0]
        for user in (other, lucky):
            here.semmem.remember(user, FACT)
        sent, outcome, prompt = asked(here, other)
        assert (outcome, prompt) == ("opted_out", sent)
        sent, outcome, prompt = asked(here, lucky)
        assert outcome == "injected"
        assert b"10,000" in prompt.replace(sent, b"")
        eventually(lambda: texts(here, lucky)[-1:] == [SAID], within_s=60, what="a later turn is journalled")
        assert texts(here, other) == []
        assert here.semmem.contents(other) == {FACT}


def test_observing_learns_and_changes_no_prompt(model: StandInModel, tmp_path: Path) -> None:
    with house(tmp_path, model, adapt=lambda config: rolled_out(config, *OBSERVE)) as here:
        here.semmem.remember("alice", FACT)
        sent, outcome, prompt = asked(here, "alice")
        assert (outcome, prompt) == ("write_only", sent)
        assert any("Lisbon" in memory["content"] for memory in here.learnt("alice", 2))
