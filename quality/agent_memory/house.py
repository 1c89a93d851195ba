"""semmem and Envoy with the shipped configurations, and a model server that keeps what it received."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from demo.envoy import DEMO_TOKEN_PREFIX, derive
from demo.model import StandIn, server_for
from demo.processes import Children, Failed
from demo.stack import HOME, envoy_argv, wait_for_envoy

Json = dict[str, Any]

START_S = 120.0
ENVIRON = {"PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


@dataclass(frozen=True, slots=True)
class Sent:
    """One request as its client saw it, and the messages that the model received. ``seconds``: until the answer was
    here; ``outcome``: semmem's word."""

    seconds: float
    outcome: str
    received: list[Json]


@dataclass(frozen=True, slots=True)
class House:
    """Requests go to ``envoy`` as anybody, by a token of the demo's; ``model`` keeps what it received."""

    model: StandIn
    envoy: str
    api: str
    admin_token: str
    http: httpx.Client

    def chat(self, user: str, messages: list[Json], *, session: str, request_id: str, memory: str = "on") -> Sent:
        """One request. Raises Failed for one that was not answered, or never came to the model."""
        headers = {
            "authorization": f"Bearer {DEMO_TOKEN_PREFIX}{user}",
            "x-session-id": session,
            "x-request-id": request_id,
            "x-semmem-memory": memory,
        }
        body = {"model": "stand-in", "messages": messages}
        began = time.perf_counter()
        answer = self.http.post(f"{self.envoy}/v1/chat/completions", json=body, headers=headers)
        seconds = time.perf_counter() - began
        received = self.model.received[-1] if self.model.received else None
        if answer.status_code != 200 or received is None or received.header("x-request-id") != request_id:
            raise Failed(f"a request was answered {answer.status_code}, or not by the model")
        outcome = answer.headers.get("x-semmem-outcome", "unknown")
        return Sent(seconds, outcome, json.loads(received.body)["messages"])

    def ask(self, method: str, path: str, **asked: Any) -> Json:
        """One call of the API. Raises Failed."""
        admin = {"authorization": f"Bearer {self.admin_token}"}
        answer = self.http.request(method, self.api + path, headers=admin, **asked)
        if not answer.is_success:
            raise Failed(f"the API answered {answer.status_code} to {method} {path}")
        told: Json = answer.json()
        return told


@contextmanager
def house(folder: Path, *, envoy: Path, config: Mapping[str, Any]) -> Iterator[House]:
    """Everything listens on loopback, on ports that the system chooses, and ends with the block. ``config``: semmem's
    own keys, over the few that are needed here. Raises Failed."""
    folder.mkdir(parents=True, exist_ok=True)
    admin_token = secrets.token_urlsafe(24)
    children = Children(folder, cwd=HOME)
    with _model() as (model, model_url), httpx.Client(timeout=60.0, trust_env=False) as http:
        try:
            file = folder / "semmem.yaml"
            file.write_text(yaml.safe_dump(_over(_needed(folder, admin_token), config)), encoding="utf-8")
            argv = [sys.executable, "-m", "semmem", "serve", "--config", str(file)]
            child = children.start("semmem", argv, os.environ | ENVIRON)
            ready = child.wait_for(r"^semmem ready grpc=\S+:(\d+) api=(\S+) health=(\S+)$", timeout_s=START_S)
            url = _start_envoy(children, http, folder, envoy, int(ready[1]), model_url)
            yield House(model, url, f"http://{ready[2]}", admin_token, http)
        finally:
            children.end()


def _needed(folder: Path, admin_token: str) -> Json:
    any_port = {"address": "127.0.0.1:0"}
    api = {**any_port, "admin_token": admin_token, "rate_limit": {"calls_per_s": 0}}
    return {
        "data_dir": str(folder / "data"),
        "identity": {"metadata_claim": ["jwt_payload", "sub"]},
        "listeners": {"grpc": any_port, "api": api, "health": any_port},
    }


def _over(base: Json, more: Mapping[str, Any]) -> Json:
    both = (name for name in more if isinstance(more[name], Mapping) and isinstance(base.get(name), Mapping))
    return {**base, **more, **{name: _over(base[name], more[name]) for name in both}}


def _start_envoy(
    children: Children, http: httpx.Client, folder: Path, binary: Path, semmem_port: int, model_url: str
) -> str:
    shipped = yaml.safe_load((HOME / "deploy" / "envoy.yaml").read_text(encoding="utf-8"))
    config = derive(
        shipped, listener_port=0, admin_port=0, semmem_port=semmem_port, upstream=model_url, show_outcome=True
    )
    file, admin_file = folder / "envoy.json", folder / "envoy-admin"
    file.write_text(json.dumps(config), encoding="utf-8")
    child = children.start("envoy", envoy_argv(binary.resolve(), str(file), admin_file), os.environ)
    return wait_for_envoy(child, http, admin_file, timeout_s=START_S)


@contextmanager
def _model() -> Iterator[tuple[StandIn, str]]:
    """In a thread of this process; it gives the answers that it is told to give."""
    model = StandIn(requests_max=10, token_delay_s=0.0)
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    server = server_for(model)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield model, f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
