"""APIs at other paths than their providers', by the configuration and the routes that docs/attach.md shows."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import yaml

from demo.stack import HOME
from tests.support.harness import Json, StandInModel, house

SECTION = (HOME / "docs" / "attach.md").read_text().partition("## Other paths\n")[2].partition("\n## ")[0]
CONFIG, ROUTES = (yaml.safe_load(block.partition("```")[0]) for block in SECTION.split("```yaml\n")[1:])
PATHS = ["/openai/v1/chat/completions", "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21"]


def with_routes(config: Json) -> None:
    """The routes of the page, first; the model is asked where it listens."""
    filters = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"]
    routes = filters[0]["typed_config"]["route_config"]["virtual_hosts"][0]["routes"]
    new = [copy.deepcopy(routes[0]) | route for route in ROUTES]
    for route in new:
        route["route"] = {name: value for name, value in route["route"].items() if name != "prefix_rewrite"}
        route["route"]["regex_rewrite"] = {"pattern": {"regex": "^.*$"}, "substitution": "/v1/chat/completions"}
    routes[:0] = new


def test_requests_at_a_gateways_own_paths_have_memories_and_are_learnt_from(
    model: StandInModel, tmp_path: Path
) -> None:
    with house(tmp_path, model, CONFIG, with_routes) as here:
        here.semmem.remember("alice", "Alice's budget for the trip is 10,000 dollars.")
        for number, path in enumerate(PATHS):
            said = [{"role": "user", "content": "What is my budget for the trip?"}]
            reply = here.send(json.dumps({"messages": said}).encode(), user="alice", path=path)
            assert (reply.status, reply.outcome) == (200, "injected")
            assert b"10,000 dollars" in reply.prompt
            told = [{"role": "user", "content": f"My locker at the gym is number 4{number}."}]
            headers = {"x-session-id": f"s{number}"}
            here.send(json.dumps({"messages": told}).encode(), user=f"user{number}", path=path, headers=headers)
            here.semmem.end_session(f"user{number}", f"s{number}")
            assert f"4{number}" in here.learnt(f"user{number}")[0]["content"]


@pytest.mark.parametrize("path", ["/openai/deployments/a/b/chat/completions", "/v2/chat/completions"])
def test_what_no_path_names_passes_as_it_came(model: StandInModel, tmp_path: Path, path: str) -> None:
    def everywhere(config: Json) -> None:
        with_routes(config)
        filters = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"]
        routes = filters[0]["typed_config"]["route_config"]["virtual_hosts"][0]["routes"]
        routes[:] = [routes[0] | {"match": {"prefix": "/"}}]

    with house(tmp_path, model, CONFIG, everywhere) as here:
        here.semmem.remember("alice", "Alice's budget for the trip is 10,000 dollars.")
        body = json.dumps({"messages": [{"role": "user", "content": "What is my budget for the trip?"}]}).encode()
        reply = here.send(body, user="alice", path=path)
        assert (reply.status, reply.outcome, reply.prompt) == (200, "other_path", body)
