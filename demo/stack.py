"""Everything the demo runs: the stand-in model, semmem and Envoy, started as an operator would start them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import yaml
from prometheus_client.parser import text_string_to_metric_families

from demo.envoy import derive
from demo.folder import Folder, InUse
from demo.ports import HOST, Ports
from demo.processes import POLL_S, Child, Children, Failed

HOME = Path(__file__).resolve().parents[1]
"""The clone: the demo needs the configuration files that lie in it."""

KEY_VARIABLE = "UPSTREAM_API_KEY"
START_S = 120.0
_CONFIG_HEAD = """\
# This is a DEMO configuration, written anew by every run of the demo. Do not deploy it: it learns within seconds
# where a deployment waits for a conversation to pause, and its Envoy lets anybody sign in as anybody.
"""


class Stack:
    """The running demo. ``start`` first, ``end`` always; between them it answers questions about itself."""

    def __init__(
        self, folder: Folder, *, first_port: int, envoy_binary: Path, upstream: str | None, environ: Mapping[str, str]
    ) -> None:
        self.folder = folder
        self.upstream = upstream
        self.url = self.api_url = self.health_url = self.model_url = self.admin_token = ""
        self.found_memories = self.played = False
        self.http = httpx.Client(timeout=10.0, trust_env=False)
        self.first_port = first_port
        self._ports = Ports()
        self._envoy_binary = envoy_binary.resolve()
        self._environ = {**environ, "PYTHONUNBUFFERED": "1"}
        self._owned = ExitStack()
        self._log_dir = folder.path
        self._children = Children(self._log_dir, cwd=HOME)

    # --- starting and ending -----------------------------------------------------------------------------------------

    def start(self, say: Callable[[str], None]) -> None:
        """Start everything and wait until a request would be served. Raises Failed."""
        self._take_folder()
        say(f"    logs are in      {self._log_dir}")
        if self.upstream is None:
            self.model_url = self._start_model()
            say(f"    stand-in model   {self.model_url}")
        say("    semmem           loads its embedding model, ten seconds or more ...")
        semmem_port = self._start_semmem()
        say(f"    semmem           {HOST}:{semmem_port} for Envoy, API {self.api_url}, metrics {self.health_url}")
        self._start_envoy(semmem_port)
        say(f"    Envoy            {self.url}  ->  {self.upstream or 'the stand-in model'}")

    def end(self) -> None:
        self.http.close()
        self._owned.close()

    def check_alive(self) -> None:
        """Raises Failed when a process has ended by itself."""
        self._children.check_alive()

    def _take_folder(self) -> None:
        """Before anything is written there: a run that is up already must not notice."""
        try:
            self._owned.enter_context(self.folder.held())
            self._ports = Ports.starting_at(self.first_port)
            self.found_memories = self.folder.memories.exists()
            self.admin_token = self.folder.admin_token()
            self._log_dir = self.folder.new_logs()
        except InUse as error:
            raise Failed(str(error)) from error
        except OSError as error:
            raise Failed(f"cannot use {self.folder.path}: {error.strerror}") from error
        self._children = Children(self._log_dir, cwd=HOME, inherited=self.folder.inherited, started=self.folder.note)
        self._owned.callback(self._children.end)

    def _start_model(self) -> str:
        child = self._children.start("model", [sys.executable, "-m", "demo.model", "--port", "0"], self._environ)
        return child.wait_for(r"^model ready (http://\S+)$", timeout_s=START_S)[1]

    def _start_semmem(self) -> int:
        text = _CONFIG_HEAD + yaml.safe_dump(self._semmem_config(), sort_keys=False)
        config = str(self.folder.write("demo.yaml", text))
        argv = [sys.executable, "-m", "semmem", "serve", "--config", config]
        child = self._children.start("semmem", argv, self._environ)
        ready = child.wait_for(r"^semmem ready grpc=\S+:(\d+) api=(\S+) health=(\S+)$", timeout_s=START_S)
        self.api_url, self.health_url = f"http://{ready[2]}", f"http://{ready[3]}"
        return int(ready[1])

    def _semmem_config(self) -> dict[str, Any]:
        learning = {"engine": "rules", "session_idle_s": 2, "answer_wait_s": 10, "poll_interval_s": 0.2}
        return {
            "data_dir": str(self.folder.memories),
            "memory": {"backend": "milvus", "embedding": {"source": "local"}, "extraction": learning},
            "identity": {"metadata_claim": ["jwt_payload", "sub"]},
            "listeners": {
                "grpc": {"address": f"{HOST}:0"},
                "api": {"address": f"{HOST}:{self._ports.api}", "admin_token": self.admin_token},
                "health": {"address": f"{HOST}:{self._ports.health}"},
            },
        }

    def _start_envoy(self, semmem_port: int) -> None:
        shipped = yaml.safe_load((HOME / "deploy" / "envoy.yaml").read_text(encoding="utf-8"))
        try:
            config = derive(
                shipped,
                listener_port=self._ports.envoy,
                admin_port=0,
                semmem_port=semmem_port,
                upstream=self.upstream or self.model_url,
                upstream_key_variable=KEY_VARIABLE if self._environ.get(KEY_VARIABLE) else None,
                show_outcome=True,
            )
        except ValueError as error:
            raise Failed(str(error)) from error
        admin_file = self._log_dir / "envoy-admin-address"
        file = str(self.folder.write("envoy.json", json.dumps(config, indent=2)))
        argv = envoy_argv(self._envoy_binary, file, admin_file)
        child = self._children.start("envoy", argv, self._environ)
        self.url = wait_for_envoy(child, self.http, admin_file, timeout_s=START_S)

    # --- questions ---------------------------------------------------------------------------------------------------

    @property
    def semmem_log(self) -> Path:
        return self._log_dir / "semmem.log"

    @property
    def envoy_log(self) -> Path:
        return self._log_dir / "envoy.log"

    def _api(self, method: str, path: str, **request: Any) -> Any:
        admin = {"authorization": f"Bearer {self.admin_token}"}
        answer = self.http.request(method, self.api_url + path, headers=admin, **request)
        if not answer.is_success:
            raise Failed(f"the API answered {answer.status_code}: {answer.text[:300]}", self.semmem_log)
        return answer.json()

    def memories(self, user: str) -> list[dict[str, Any]]:
        """What semmem has stored for a user, newest first."""
        found: list[dict[str, Any]] = self._api("GET", "/v1/memory", params={"user_id": user})["memories"]
        return found

    def end_session(self, user: str, session: str) -> None:
        """Have semmem learn from a conversation without waiting for a pause."""
        self._api("POST", f"/v1/sessions/{session}/end", json={"user_id": user})

    def metrics_by(self, name: str, label: str) -> dict[str, float]:
        """The values of one metric by one of its labels."""
        text = self.http.get(f"{self.health_url}/metrics").text
        families = text_string_to_metric_families(text)
        samples = [sample for family in families for sample in family.samples if sample.name == name]
        return {sample.labels[label]: sample.value for sample in samples}

    def last_prompt(self) -> list[dict[str, Any]] | None:
        """The messages of the last request the stand-in model received; None for a real model, which does not say."""
        if self.upstream is not None:
            return None
        received = self.http.get(f"{self.model_url}/requests").json()
        chats = [request for request in received if request["path"] == "/v1/chat/completions"]
        messages: list[dict[str, Any]] = json.loads(chats[-1]["body"].encode("latin-1"))["messages"]
        return messages


def envoy_argv(binary: Path, config: str, admin_file: Path) -> list[str]:
    """One Envoy that shares nothing with any other on the machine and says where its admin page is."""
    return [
        str(binary), "-c", config, "--admin-address-path", str(admin_file),
        "--disable-hot-restart", "--concurrency", "1", "--log-level", "warning",
    ]  # fmt: skip


def wait_for_envoy(child: Child, http: httpx.Client, admin_file: Path, *, timeout_s: float) -> str:
    """The URL of its listener, as soon as Envoy is live and finds every replica of semmem healthy. Raises Failed."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        child.check_alive()
        if (admin := _read(admin_file)) and _semmem_is_healthy(http, admin):
            listeners = http.get(f"http://{admin}/listeners", params={"format": "json"}).json()
            address = listeners["listener_statuses"][0]["local_address"]["socket_address"]
            return f"http://{address['address']}:{address['port_value']}"
        time.sleep(POLL_S)
    raise Failed(f"Envoy was not ready within {timeout_s:.0f} s, or did not find semmem healthy", child.log)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def _semmem_is_healthy(http: httpx.Client, admin: str) -> bool:
    gauges = r"^cluster\.semmem\.membership_(healthy|total)$"
    try:
        page = http.get(f"http://{admin}/stats", params={"filter": gauges, "format": "json"}).json()
    except httpx.TransportError:
        return False
    healthy, total = (entry.get("value", 0) for entry in sorted(page["stats"], key=lambda entry: str(entry["name"])))
    return bool(total and healthy == total)
