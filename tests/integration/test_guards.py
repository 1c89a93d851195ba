"""What guards the API of a running semmem, as it is configured: keys, the audit log, the rate limit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx

from tests.support.harness import ADMIN_TOKEN, SemmemProcess, semmem_process

API = {
    "audit": {"to": "audit.jsonl"},
    "rate_limit": {"calls_per_s": 0.5, "burst": 20, "failures_per_minute": 3.0},
}


def test_the_guards_are_there_as_they_are_configured(tmp_path: Path) -> None:
    settings = {"memory": {"backend": "in_process"}, "listeners": {"api": API}}
    told = {"user_id": "ada-of-the-guards", "content": "User likes canary birds"}
    with semmem_process(tmp_path, settings) as semmem:
        keyed = [call(semmem, "POST", "/v1/memory", key="k1", json=told) for _ in range(2)]
        assert [answer.status_code for answer in keyed] == [201, 201]
        assert keyed[0].content == keyed[1].content
        name = semmem.api("GET", "/v1/audit/name", params={"user_id": told["user_id"]})["name"]
        made_up = [call(semmem, "GET", "/v1/whoami", token="semmem_made_up").status_code for _ in range(5)]
        assert made_up == [401, 401, 401, 429, 429]
        mine = [call(semmem, "GET", "/v1/whoami").status_code for _ in range(20)]
        assert (mine[0], mine[-1]) == (200, 429)
        assert semmem.metric("semmem_api_limited_total", who="address") == 2
        assert semmem.metric("semmem_api_limited_total", who="caller") == mine.count(429)
        assert semmem.metric("semmem_api_audited_total", result="written") == 2
    written = next(tmp_path.rglob("audit.jsonl")).read_text()
    lines = [json.loads(line) for line in written.splitlines()]
    assert [(line["act"], line["outcome"], line["users"]) for line in lines] == [
        ("POST /v1/memory", "done", [name]),
        ("POST none", "replayed", []),
    ]
    assert not re.search("canary|ada-of", written)


def call(
    semmem: SemmemProcess, method: str, path: str, *, token: str = ADMIN_TOKEN, key: str = "", json: Any = None
) -> httpx.Response:
    headers = {"authorization": f"Bearer {token}"} | ({"idempotency-key": key} if key else {})
    return semmem.http.request(method, semmem.api_url + path, headers=headers, json=json)
