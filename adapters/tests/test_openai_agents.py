"""The example of the OpenAI Agents SDK, run as its README says: a program, its model behind Envoy, its memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import World

Agent = Callable[..., str]

AGENT = Path(__file__).parents[2] / "examples" / "openai_agents" / "agent.py"


@pytest.fixture
def agent(world: World, tmp_path: Path) -> Agent:
    def say(user: str, session: str, text: str, *options: str, token: str = "") -> str:
        argv = [sys.executable, str(AGENT), text, "--session", session, "--envoy", world.envoy, "--model", "stand-in"]
        environ = {**os.environ, "OPENAI_API_KEY": f"demo-{user}", "SEMMEM_TOKEN": token}
        done = subprocess.run([*argv, *options], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.strip()

    return say


def test_an_agent_remembers_its_user_in_the_next_session_by_either_api(
    world: World, alice: str, bob: str, agent: Agent
) -> None:
    told = agent(alice, "s1", "My sister Emma lives in Oslo.")
    world.learnt(alice, "Oslo")

    assert "Oslo" not in told
    question = "Where does my sister live?"
    assert "Emma lives in Oslo" in agent(alice, "s2", question)
    assert "Emma lives in Oslo" in agent(alice, "s3", question, "--api", "responses", "--stream")
    assert "Oslo" not in agent(bob, "s4", question)
    assert "<semmem-memory" not in world.prompts()[-1]


def test_what_the_sdks_own_session_says_already_is_not_said_twice(world: World, alice: str, agent: Agent) -> None:
    agent(alice, "s1", "My bicycle is green.")
    world.learnt(alice, "bicycle")

    assert "bicycle is green" in agent(alice, "s1", "What colour is my bicycle?")
    assert world.prompts()[-1].count("bicycle is green") == 1
    assert len(world.memories(alice)) == 1


def test_the_model_may_use_semmems_own_tools(world: World, alice: str, bob: str, agent: Agent) -> None:
    world.remember(alice, "User plays the cello")
    world.remember(bob, "User plays the zither")

    options = ("--api", "responses", "--semmem", world.api)
    agent(alice, "s1", "Please call memory_list now", *options, token=world.token(alice))
    shown = next(body for body in reversed(world.prompts()) if "function_call_output" in body)
    assert "plays the cello" in shown
    assert "zither" not in shown
