"""Shared houses: starting semmem costs seconds, so tests share one and bring users of their own."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from tests.support.harness import SHIPPED_EMBEDDER, House, StandInModel, house, stand_in_model


@pytest.fixture(scope="session")
def model() -> Iterator[StandInModel]:
    with stand_in_model() as running:
        yield running


@pytest.fixture(scope="session")
def home(model: StandInModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """The house most tests share: learns one second after a conversation pauses."""
    with house(tmp_path_factory.mktemp("home"), model, program=SHIPPED_EMBEDDER) as running:
        yield running


@pytest.fixture
def alice() -> str:
    """A user nobody else has."""
    return f"alice-{secrets.token_hex(6)}"


@pytest.fixture
def bob() -> str:
    """Another user nobody else has."""
    return f"bob-{secrets.token_hex(6)}"
