"""The real thing in small pieces: a stand-in model, semmem as a process, a real Envoy with the shipped configuration.

Everything listens on ports the system chooses and ends with its ``with`` block; logs lie beside the configuration.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml
from prometheus_client.parser import text_string_to_metric_families

from demo.envoy import derive
from demo.model import Received, StandIn, server_for
from demo.processes import Child, Failed
from demo.stack import HOME, envoy_argv, wait_for_envoy
from tests.support import forked

ENVOY = Path(os.environ.get("ENVOY_BINARY", HOME / ".venv-envoy" / "bin" / "envoy"))
SHIPPED_ENVOY = HOME / "deploy" / "envoy.yaml"
ADMIN_TOKEN = secrets.token_urlsafe(24)
START_S = 120.0
IDENTITY_HEADERS = ("x-authz-user-id", "x-jwt-sub", "x-forwarded-user", "x-user-id")

Json = dict[str, Any]


def eventually(check: Callable[[], Any], *, within_s: float, what: str) -> Any:
    """The first true value of ``check``, asked every 50 ms."""
    deadline = time.monotonic() + within_s
    while True:
        if value := check():
            return value
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        time.sleep(0.05)


class StandInModel(StandIn):
    """The demo's model in a thread of this process, so that tests see its requests as they came."""

    url = ""

    def request(self, request_id: str) -> Received | None:
        """What the model received of one exchange; None when it was never asked."""
        return next((r for r in list(self.received) if r.header("x-request-id") == request_id), None)


@contextmanager
def stand_in_model(kind: type[StandInModel] = StandInModel) -> Iterator[StandInModel]:
    model = kind(requests_max=5000, token_delay_s=0.002)
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    model.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = server_for(model)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        eventually(lambda: server.started, within_s=60, what="the stand-in model listens")
        yield model
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


@dataclass
class SemmemProcess:
    """semmem as an operator runs it, and its management API as an administrator calls it."""

    child: Child
    data_dir: Path
    grpc_port: int
    api_url: str
    health_url: str
    http: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=60, trust_env=False))

    def api(self, method: str, path: str, **kwargs: Any) -> Json:
        """One call as administrator; the answer's JSON. The call must succeed."""
        admin = {"authorization": f"Bearer {ADMIN_TOKEN}"}
        answer = self.http.request(method, self.api_url + path, headers=admin, **kwargs)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        found: Json = answer.json()
        return found

    def memories(self, user: str) -> list[Json]:
        listed: list[Json] = self.api("GET", "/v1/memory", params={"user_id": user, "limit": 100})["memories"]
        return listed

    def contents(self, user: str) -> set[str]:
        return {memory["content"] for memory in self.memories(user)}

    def remember(self, user: str, content: str) -> Json:
        """Store a memory through the API, which does not take the memories of the user into the process."""
        memory = self.api("POST", "/v1/memory", json={"user_id": user, "content": content})
        eventually(lambda: memory["id"] in [m["id"] for m in self.memories(user)], within_s=60, what="it is stored")
        return memory

    def end_session(self, user: str, session: str) -> int:
        return int(self.api("POST", f"/v1/sessions/{session}/end", json={"user_id": user})["turns"])

    def turns(self, user: str, session: str = "%") -> list[tuple[str, str | None]]:
        """User text and answer of the user's turns in the journal's file, oldest first."""
        with closing(sqlite3.connect(f"file:{self.data_dir / 'journal.db'}?mode=ro", uri=True)) as journal:
            query = "select user_text, answer from turns where user_id = ? and session like ? order by opened_at"
            rows = journal.execute(query, (user, session)).fetchall()
        return [(str(text), answer) for text, answer in rows]

    def waiting(self, user: str) -> int:
        """How many of the user's turns are still to be learnt from."""
        with closing(sqlite3.connect(f"file:{self.data_dir / 'journal.db'}?mode=ro", uri=True)) as journal:
            query = "select count(*) from turns where user_id = ? and done_at is null"
            (count,) = journal.execute(query, (user,)).fetchone()
        return int(count)

    def metrics_text(self) -> str:
        return self.http.get(f"{self.health_url}/metrics").text

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that carry these labels."""
        families = text_string_to_metric_families(self.metrics_text())
        samples = [sample for family in families for sample in family.samples if sample.name == name]
        return sum(s.value for s in samples if labels.items() <= s.labels.items())


def merged(base: Mapping[str, Any], override: Mapping[str, Any]) -> Json:
    """``base`` with the leaves of ``override``."""
    result = dict(base)
    for key, value in override.items():
        nested = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if nested else value
    return result


PATIENT_S = 60
"""How long Envoy waits for semmem where a test is not about deadlines: a busy machine shall not look like a fault."""
PATIENT = {"message_timeout_ms": 60_000, "phase_ms": 50_000, "store_ms": 30_000, "max_message_timeout_ms": 0}


def patient(config: Json) -> None:
    """Give Envoy's filters and its look at semmem's health PATIENT_S, in place."""
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    for entry in manager["http_filters"]:
        if "message_timeout" in entry["typed_config"]:
            entry["typed_config"]["message_timeout"] = f"{PATIENT_S}s"
            entry["typed_config"].pop("max_message_timeout", None)
    for cluster in config["static_resources"]["clusters"]:
        for check in cluster.get("health_checks", ()):
            check["timeout"] = f"{PATIENT_S}s"  # else requests pass by a semmem that is busy for a second


def semmem_config(data_dir: Path, override: Mapping[str, Any], *, as_shipped: bool = False) -> Json:
    """Milvus Lite, MiniLM and rules; quick to learn; patient, if not ``as_shipped``; ``override`` on top."""
    any_port = {"address": "127.0.0.1:0"}
    base: Json = {
        "data_dir": str(data_dir),
        "deadlines": {} if as_shipped else PATIENT,
        "memory": {
            "embedding": {"source": "local"},
            "extraction_batch_size": 3,
            "extraction": {"engine": "rules", "session_idle_s": 1.0, "answer_wait_s": 5.0, "poll_interval_s": 0.1},
        },
        # Trusting the usual headers makes Envoy's stripping the only thing between a client and another's memory.
        "identity": {"metadata_claim": ["jwt_payload", "sub"], "trusted_headers": list(IDENTITY_HEADERS)},
        "listeners": {"grpc": any_port, "api": {**any_port, "admin_token": ADMIN_TOKEN}, "health": any_port},
    }
    return merged(base, override)


BAG_OF_WORDS, SHIPPED_EMBEDDER = "tests.support.serve", "semmem"
"""Which module serves: with the tests' embedder, which starts at once, or the shipped one, where meaning counts."""


@contextmanager
def semmem_process(
    folder: Path,
    override: Mapping[str, Any] | None = None,
    *,
    as_shipped: bool = False,
    program: str = BAG_OF_WORDS,
    options: Sequence[str] = (),
) -> Iterator[SemmemProcess]:
    """A running semmem with its data in ``folder``. ``program``: BAG_OF_WORDS or SHIPPED_EMBEDDER; ``options``:
    Python's."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(semmem_config(folder / "data", override or {}, as_shipped=as_shipped)))
    serve, log = ("serve", "--config", str(config)), folder / "semmem.log"
    if options:
        argv, environ = [sys.executable, *options, "-m", program, *serve], os.environ | {"HF_HUB_OFFLINE": "1"}
        child = Child("semmem", argv, log=log, cwd=HOME, environ=environ)
    else:
        child = forked.child(program, serve, log=log)
    try:
        pattern = r"^semmem ready grpc=\S+:(\d+) api=(\S+) health=(\S+)$"
        ready = _or_fail(child, lambda: child.wait_for(pattern, timeout_s=START_S))
        semmem = SemmemProcess(child, folder / "data", int(ready[1]), f"http://{ready[2]}", f"http://{ready[3]}")
        with semmem.http:
            yield semmem
    finally:
        child.terminate()
        child.wait(20)


def _or_fail(child: Child, start: Callable[[], Any]) -> Any:
    try:
        return start()
    except Failed as failure:
        raise AssertionError(f"{failure}\n{child.printed()[-4000:]}") from failure


@dataclass(frozen=True)
class EnvoyProcess:
    """A real Envoy. ``admin`` is host:port of its admin page."""

    child: Child
    url: str
    admin: str

    def stat(self, name: str) -> int:
        """One counter or gauge; 0 when it was never touched."""
        page = httpx.get(
            f"http://{self.admin}/stats", params={"format": "json", "filter": f"^{name}$"}, trust_env=False
        )
        return sum(entry.get("value", 0) for entry in page.json()["stats"])


@contextmanager
def envoy_process(
    folder: Path,
    *,
    semmem_port: int,
    upstream: str,
    adapt: Callable[[Json], None] = lambda _config: None,
    as_shipped: bool = False,
) -> Iterator[EnvoyProcess]:
    """The shipped configuration with other addresses and the demo's stand-in for authentication.

    ``adapt`` changes it further, in place.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = derive(
        yaml.safe_load(SHIPPED_ENVOY.read_text()),
        listener_port=0,
        admin_port=0,
        semmem_port=semmem_port,
        upstream=upstream,
        show_outcome=True,
    )
    if not as_shipped:
        patient(config)
    adapt(config)
    file, admin_file = folder / "envoy.json", folder / "envoy-admin"
    file.write_text(json.dumps(config))
    admin_file.unlink(missing_ok=True)
    argv = envoy_argv(ENVOY, str(file), admin_file)
    child = Child("envoy", argv, log=folder / "envoy.log", cwd=HOME, environ=os.environ)
    try:
        with httpx.Client(trust_env=False) as http:
            url = _or_fail(child, lambda: wait_for_envoy(child, http, admin_file, timeout_s=START_S))
        yield EnvoyProcess(child, url, admin_file.read_text().strip())
    finally:
        child.terminate()
        child.wait(10)


@dataclass(frozen=True)
class Reply:
    """One exchange as its client saw it, and what the model saw of it (None: it was never asked)."""

    status: int
    headers: httpx.Headers
    body: bytes
    received: Received | None
    seconds: float

    @property
    def outcome(self) -> str | None:
        word: str | None = self.headers.get("x-semmem-outcome")
        return word

    @property
    def prompt(self) -> bytes:
        """The body the model received."""
        assert self.received is not None, "the model was never asked"
        return self.received.body

    @property
    def messages(self) -> list[Json]:
        found: list[Json] = json.loads(self.prompt)["messages"]
        return found


@dataclass
class House:
    """Client, Envoy, semmem and model in a row."""

    model: StandInModel
    semmem: SemmemProcess
    envoy: EnvoyProcess
    http: httpx.Client

    def send(
        self,
        body: bytes,
        *,
        user: str | None = None,
        headers: Mapping[str, str] | None = None,
        path: str = "/v1/chat/completions",
    ) -> Reply:
        """POST these very bytes, signed in as ``user``."""
        request_id = secrets.token_hex(8)
        sent = {"content-type": "application/json", "x-request-id": request_id, **(headers or {})}
        if user is not None:
            sent["authorization"] = f"Bearer demo-{user}"
        started = time.monotonic()
        answer = self.http.post(self.envoy.url + path, content=body, headers=sent)
        seconds = time.monotonic() - started
        return Reply(answer.status_code, answer.headers, answer.content, self.model.request(request_id), seconds)

    def chat(
        self,
        user: str | None,
        *texts: str,
        session: str | None = None,
        stream: bool = False,
        headers: Mapping[str, str] | None = None,
        messages: list[Json] | None = None,
        **members: Any,
    ) -> Reply:
        """One chat request: ``messages``, then ``texts`` as user messages. ``members`` are further body members."""
        said = [*(messages or []), *({"role": "user", "content": text} for text in texts)]
        body: Json = {"model": "stand-in", "messages": said, **members}
        if stream:
            body["stream"] = True
        extra = {**(headers or {}), **({"x-session-id": session} if session else {})}
        return self.send(json.dumps(body).encode(), user=user, headers=extra)

    def converse(self, user: str, session: str, *texts: str) -> list[Json]:
        """One conversation turn by turn, each request with the whole history, as clients do; its messages."""
        history: list[Json] = []
        for text in texts:
            history.append({"role": "user", "content": text})
            reply = self.chat(user, session=session, messages=history)
            assert reply.status == 200
            history.append(json.loads(reply.body)["choices"][0]["message"])
        return history

    def learnt(self, user: str, count: int = 1, within_s: float = 60.0) -> list[Json]:
        """The user's memories, as soon as there are ``count``."""
        found: list[Json] = eventually(
            lambda: m if len(m := self.semmem.memories(user)) >= count else None,
            within_s=within_s,
            what=f"{count} memories learnt",
        )
        return found


@contextmanager
def house(
    folder: Path,
    model: StandInModel,
    override: Mapping[str, Any] | None = None,
    adapt: Callable[[Json], None] = lambda _config: None,
    *,
    as_shipped: bool = False,
    program: str = BAG_OF_WORDS,
) -> Iterator[House]:
    """A whole house with its own semmem and its own Envoy, each with changes to its configuration, before a model.

    ``as_shipped``: with the deadlines that are shipped. ``program`` as for semmem_process.
    """
    with (
        semmem_process(folder, override, as_shipped=as_shipped, program=program) as semmem,
        envoy_process(
            folder, semmem_port=semmem.grpc_port, upstream=model.url, adapt=adapt, as_shipped=as_shipped
        ) as envoy,
        httpx.Client(timeout=120, trust_env=False, limits=httpx.Limits(max_connections=200)) as http,
    ):
        yield House(model, semmem, envoy, http)
