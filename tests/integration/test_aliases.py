"""Aliases in a running semmem: kept over a restart, in no log line and no metric, in no export, and erased."""

from __future__ import annotations

from pathlib import Path

from tests.support.harness import ADMIN_TOKEN, SemmemProcess, eventually, semmem_process

SETTINGS = {"memory": {"backend": "in_process"}, "listeners": {"api": {"audit": {"to": "audit.jsonl"}}}}
KEY, ALIAS = "key_0123456789abcdef", "Ada's build server"


def alias_of(semmem: SemmemProcess) -> object:
    return semmem.api("GET", "/v1/users")["aliases"].get(KEY)


def test_an_alias_outlives_a_restart_and_not_its_user(tmp_path: Path) -> None:
    with semmem_process(tmp_path, SETTINGS) as semmem:
        semmem.remember(KEY, "User likes tea.")
        semmem.api("PUT", f"/v1/users/{KEY}/alias", json={"alias": ALIAS})
        first = semmem.metrics_text()
    with semmem_process(tmp_path, SETTINGS) as semmem:
        assert alias_of(semmem) == ALIAS
        export = semmem.http.get(f"{semmem.api_url}/v1/export", headers={"authorization": f"Bearer {ADMIN_TOKEN}"})
        assert ALIAS not in export.text
        receipt = semmem.api("DELETE", "/v1/memory", params={"user_id": KEY, "purge": "true"})["receipt"]
        assert receipt["aliases"] == 1
        eventually(lambda: alias_of(semmem) is None, within_s=60, what="the alias is gone")
        assert ALIAS not in first + semmem.metrics_text()
        assert "alias" in (semmem.data_dir / "audit.jsonl").read_text(encoding="utf-8")
    told = [path for path in tmp_path.rglob("*") if path.is_file() and ALIAS.encode() in path.read_bytes()]
    assert told == []
