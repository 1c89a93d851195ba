"""At the start the log tells what learning knows nothing of the configured embedding model for."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.extraction.lasting.classifier import SIGNATURES
from semmem.ports.embedder import Embedder
from semmem.telemetry.metrics import Metrics
from semmem.wiring.backends import Backends
from semmem.wiring.learning import learning
from semmem.wiring.models import ModelClients
from semmem.wiring.stores import journal
from tests.support.configuration import loaded
from tests.support.fakes import HashEmbedder, hot

FORM_ALONE = "what is worth remembering is told by its form alone: nothing was learnt for hash/words/384"
RULES_ALONE = "what repeats or replaces a memory is told by rules alone: nothing was learnt for hash/words/384"
MODEL = {"model_role": "memory_extraction", "llm_endpoint": {"url": "http://127.0.0.1:9"}, "llm_model_name": "tiny"}


class Shipped(HashEmbedder):
    """The model that everything was learnt for, by its name."""

    @property
    def signature(self) -> str:
        return SIGNATURES[0]


def told(folder: Path, caplog: pytest.LogCaptureFixture, embedder: Embedder, **extraction: Any) -> list[str]:
    config = {"memory": {"extraction": extraction}, "external_models": [MODEL]}
    settings = loaded(folder, json.dumps(config))
    backends = Backends(hot(InProcessStore()), embedder, journal(settings), ModelClients(Metrics()).of(settings)[0])
    with caplog.at_level(logging.WARNING):
        learning(settings, backends)
    for model in backends.models.values():
        asyncio.run(model.close())
    return [record.getMessage() for record in caplog.records]


def test_another_models_name_is_in_a_line_for_each_part(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert told(tmp_path, caplog, HashEmbedder()) == [FORM_ALONE, RULES_ALONE]


def test_nothing_is_told_of_the_model_that_all_was_learnt_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert told(tmp_path, caplog, Shipped()) == []


def test_what_is_never_asked_is_not_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert told(tmp_path, caplog, HashEmbedder(), engine="llm", at_once=False) == [RULES_ALONE]
