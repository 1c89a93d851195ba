"""A running semmem keeps what its description promises, whatever it is called with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from schemathesis.specs.openapi import definitions

from tests.support.api_fuzz import UNLIMITED, fuzz, seeded
from tests.support.harness import ADMIN_TOKEN, SemmemProcess, semmem_process


@pytest.fixture(scope="module")
def semmem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SemmemProcess]:
    with semmem_process(tmp_path_factory.mktemp("described"), UNLIMITED) as running:
        yield running


def test_the_description_is_one_of_openapi_3_1(semmem: SemmemProcess) -> None:
    """As the OpenAPI Initiative's own schema of descriptions says."""
    told = semmem.http.get(f"{semmem.api_url}/openapi.json").json()
    definitions.OPENAPI_31_VALIDATOR.validate(told)
    assert not definitions.OPENAPI_31_VALIDATOR.is_valid(told | {"paths": {"/v1": {"get": {"responses": 5}}}})
    assert len(told["paths"]) > 20


@pytest.mark.long(20)
@pytest.mark.parametrize(("caller", "seconds"), [("administrator", 10), ("user", 5)])
def test_no_call_is_answered_otherwise_than_described(
    semmem: SemmemProcess, tmp_path: Path, caller: str, seconds: int
) -> None:
    mine = seeded(semmem)
    token = ADMIN_TOKEN if caller == "administrator" else mine
    found = fuzz(
        semmem, token, examples=3, seconds=seconds, phases="coverage,fuzzing", folder=tmp_path, repeatable=True
    )
    assert found.passed, found.printed[-6000:]
    assert found.calls > 0  # how many, a busy machine decides
