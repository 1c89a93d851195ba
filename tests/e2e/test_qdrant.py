"""Memories in Qdrant's local mode, through a real Envoy."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from tests.support.disk import files_holding
from tests.support.harness import ADMIN_TOKEN, StandInModel, house

QDRANT = {"memory": {"backend": "qdrant"}}
ASKED = "Where does my sister live?"


@pytest.mark.long(10)
def test_what_is_told_is_in_the_next_prompt_also_after_a_restart_and_off_the_disk_once_erased(
    model: StandInModel, tmp_path: Path, alice: str
) -> None:
    town = "oslo" + secrets.token_hex(4)
    with house(tmp_path, model, QDRANT) as running:
        running.chat(alice, f"My sister Emma lives in {town}.")
        assert town in running.learnt(alice)[0]["content"]
        asked = running.chat(alice, ASKED)
        assert asked.outcome == "injected"
        assert town.encode() in asked.prompt
        assert "for trying out" in running.semmem.child.log.read_text()
    with house(tmp_path, model, QDRANT) as running:
        assert town.encode() in running.chat(alice, ASKED).prompt
        assert running.chat("somebody-else", ASKED).outcome == "no_hits"
        answer = running.semmem.http.delete(
            f"{running.semmem.api_url}/v1/memory",
            params={"user_id": alice, "purge": True},
            headers={"authorization": f"Bearer {ADMIN_TOKEN}"},
            timeout=60,
        )
        assert answer.json()["purged"] is True
        assert files_holding(Path(running.semmem.data_dir) / "qdrant", [town]) == set()
        assert running.chat(alice, ASKED).outcome == "no_hits"
