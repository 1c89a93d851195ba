"""A whole semmem, and which of its functions read which key: at the start, and again at a reload."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import InitVar, dataclass, field, is_dataclass
from functools import wraps
from inspect import isclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError

from semmem.config import Settings, load, restart_reasons
from semmem.config.values import Section
from semmem.wiring.app import App
from semmem.wiring.serving import Workshop
from tests.support.configuration import LONG_SECRET, write
from tests.support.recorded_settings import Reading, recorded

EVERYTHING = f"""
data_dir: DATA
memory:
  backend: in_process
  embedding: {{source: none}}
  query: {{mode: rewrite}}
  rerank: {{url: "http://reranker/v1", model: m}}
  decay: {{enabled: true}}
  consolidation: {{enabled: true}}
  extraction: {{engine: llm, drift_threshold: 0.1}}
deadlines: {{max_message_timeout_ms: 2000}}
conversations: {{enabled: true, chains: true}}
compression: {{enabled: true}}
usage: {{enabled: true, prices: [{{model: m, provider: p, input_per_million: 1, output_per_million: 2}}]}}
identity: {{api_key: {{enabled: true, hmac_secret: {LONG_SECRET}}}}}
external_models:
  - {{model_role: memory_rewrite, llm_endpoint: {{address: qwen}}, llm_model_name: small}}
  - {{model_role: memory_extraction, llm_endpoint: {{address: qwen}}, llm_model_name: large}}
listeners:
  grpc: {{address: "127.0.0.1:0"}}
  api: {{address: "127.0.0.1:0", admin_token: {LONG_SECRET}, jwt: {{keys: KEYS, audience: semmem}}}}
  health: {{address: "127.0.0.1:0"}}
"""

ELSEWHERE = {
    "log.level": "put into effect by the composition root",
    "deployment.drain_s": "looked at when semmem ends",
    "memory.rerank.api_key_env": "read into api_key before there are settings",
    "external_models.N.api_key_env": "the same",
    "listeners.api.admin_token_env": "the same",
    "external_models.N.llm_provider": "a label",
    "memory.extraction.drift_turns_min": "without a model there is no topic to be seen",
}
"""Keys that a reload takes up although nothing here reads them when it makes what serves."""


@dataclass
class Watched:
    """``started``: what was read until semmem served; ``made``: what was read to make what serves once more;
    ``filled``: what was made from sections, and what each was given by name."""

    started: set[Reading] = field(default_factory=set)
    made: set[Reading] = field(default_factory=set)
    filled: list[tuple[Callable[..., Any], dict[str, Any]]] = field(default_factory=list)


@pytest.fixture
async def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    (tmp_path / "keys.json").write_text('{"keys": []}')
    text = EVERYTHING.replace("DATA", str(tmp_path / "data")).replace("KEYS", str(tmp_path / "keys.json"))
    settings, found, workshops = load(write(tmp_path, text), os.environ), Watched(), list[Workshop]()
    opening, fill = Workshop.open, Section.fill

    @wraps(fill)
    def noted(section: Section, make: Callable[..., Any], *given: Any, **others: Any) -> Any:
        @wraps(make)
        def kept(*given: Any, **named: Any) -> Any:
            found.filled.append((make, named))
            return make(*given, **named)

        return fill(section, kept, *given, **others)

    async def remembered(workshop: Workshop, given: Settings) -> None:
        workshops.append(workshop)
        await opening(workshop, given)

    monkeypatch.setattr(Workshop, "open", remembered)
    monkeypatch.setattr(Section, "fill", noted)
    async with App(recorded(settings, found.started)).running():
        await asyncio.to_thread(workshops[0].make, recorded(settings, found.made))
        yield found


async def test_no_part_that_stays_was_made_with_a_key_that_a_reload_takes_up(watched: Watched) -> None:
    assert len(watched.started) > 100
    assert {reading for reading in watched.started - watched.made if not restart_reasons()[reading[0]]} == set()


async def test_every_key_that_a_reload_takes_up_is_read_for_what_then_serves(watched: Watched) -> None:
    taken_up = {key for key, reason in restart_reasons().items() if not reason}
    assert taken_up - {key for key, _ in watched.made} == ELSEWHERE.keys()


async def test_what_is_filled_from_sections_is_of_the_types_that_its_fields_have(watched: Watched) -> None:
    assert len({make for make, _ in watched.filled}) > 30
    for make, named in watched.filled:
        hints = get_type_hints(make.__init__ if isclass(make) and not is_dataclass(make) else make)
        for name, value in named.items():
            kind = hints.get(name, Any)  # else it is one of several options
            kind = kind.type if isinstance(kind, InitVar) else kind
            try:
                adapter = TypeAdapter[object](kind)
            except PydanticSchemaGenerationError:  # a class of ours
                assert not isclass(kind) or getattr(kind, "_is_protocol", False) or isinstance(value, kind)
            else:
                adapter.validate_python(value, strict=True)
