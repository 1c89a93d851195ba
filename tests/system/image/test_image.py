"""The image, built from deploy/Dockerfile on a Debian of its mirror, and run as the manifests run it.

No registry of images is asked, so it stands not on the ``debian:bookworm-slim`` that the Dockerfile names, but on what
mmdebstrap makes of the same packages. ``IMAGE_FOLDER`` keeps podman's files for another run.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from demo.stack import HOME
from semmem import __version__
from tests.support.harness import envoy_process, eventually, stand_in_model
from tests.support.ports import free_port
from tests.system.image.podman import IMAGE, Podman

BYTES_MAX = 455e6
READY_S_MAX = 20.0
"""On a machine that does other things as well; docs have what was measured on a quiet one."""
ADMIN = secrets.token_urlsafe(24)


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Podman:
    """With the image built."""
    named = os.environ.get("IMAGE_FOLDER")
    machine = Podman(Path(named).resolve() if named else tmp_path_factory.mktemp("podman"))
    machine.prepare()
    machine.make_base()
    revision = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=HOME, capture_output=True, text=True, check=False
    ).stdout
    machine.build(revision.strip())
    return machine


def inside(podman: Podman, code: str) -> str:
    """What Python prints in a container of the image."""
    return podman("run", "--rm", "--network=none", "--entrypoint", "python", IMAGE, "-c", code).strip()


def test_it_is_small(podman: Podman) -> None:
    size = podman.inspect(IMAGE)["Size"]
    print(f"image: {size / 1e6:.0f} MB")
    assert size < BYTES_MAX


def test_it_says_what_it_is_and_runs_as_nobody_in_particular(podman: Podman) -> None:
    config = podman.inspect(IMAGE)["Config"]
    labels = {key.removeprefix("org.opencontainers.image."): value for key, value in config["Labels"].items()}
    assert (labels["title"], labels["version"]) == ("semmem", __version__)
    assert config["User"] == "65532:65532"
    assert inside(podman, "import os; print(os.getuid(), os.getgid())") == "65532 65532"


@pytest.mark.parametrize("name", ["torch", "onnx", "pip", "pandas", "faiss"])
def test_it_has_nothing_that_serving_does_not_need(podman: Podman, name: str) -> None:
    assert inside(podman, f"import importlib.util; print(importlib.util.find_spec({name!r}))") == "None"


def test_it_has_the_packages_of_the_list_and_no_others(podman: Podman) -> None:
    code = "import importlib.metadata as m; print(*(f'{d.name}=={d.version}' for d in m.distributions()), sep='\\n')"
    found = {line.lower().replace("_", "-").replace(".", "-") for line in inside(podman, code).splitlines()}
    listed = (HOME / "deploy" / "serving.txt").read_text().splitlines()
    wanted = {line.lower().replace(".", "-") for line in listed if line and not line.startswith("#")}
    assert found - {f"semmem=={__version__}".replace(".", "-")} == wanted


ABSENT = (
    "faiss",
    "huggingface_hub",
    "onnx",
    "pandas",
    "qdrant_client",
    "scipy",
    "sentence_transformers",
    "sklearn",
    "torch",
    "transformers",
)
"""What the image is without; whoever needs one of them says so."""
LATE = (
    *("cryptography.hazmat.primitives.asymmetric.rsa", "jwt", "mcp.server", "milvus_lite.cmdline"),
    *("onnxruntime", "opentelemetry.exporter.otlp.proto.http.trace_exporter", "psycopg", "pyarrow.compute"),
    *("pyarrow.parquet", "redis.asyncio", "sentencepiece", "tokenizers", "uvloop"),
    *("ctypes", "lzma", "sqlite3", "ssl", "zoneinfo"),
)
"""Of others, what is imported when it is used."""
IMPORT_ALL = f"""
import importlib, pkgutil, semmem
lacking = []
for found in pkgutil.walk_packages(semmem.__path__, "semmem."):
    if found.name.rpartition(".")[2] == "__main__" or ".migrations." in found.name:
        continue
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {ABSENT!r}:
            lacking.append(f"{{found.name}}: {{error}}")
    except Exception as error:
        lacking.append(f"{{found.name}}: {{type(error).__name__}}: {{error}}")
for name in {LATE!r}:
    importlib.import_module(name)
print(lacking)
"""


def test_nothing_that_was_left_out_is_missed(podman: Podman) -> None:
    """What is pruned by deploy/prune.py and deploy/root.py: every module of semmem, and what it imports late."""
    assert inside(podman, IMPORT_ALL) == "[]"


def test_it_has_no_shell_and_names_the_packages_that_its_files_are_of(podman: Podman) -> None:
    code = "import os; print(os.path.exists('/bin/sh'), *sorted(os.listdir('/var/lib/dpkg/status.d')))"
    shell, *packages = inside(podman, code).split()
    assert shell == "False"
    assert {"libc6", "libssl3", "python3.11-minimal", "libpython3.11-stdlib"} <= set(packages)


def test_its_own_configuration_is_right(podman: Podman) -> None:
    assert "ok" in podman("run", "--rm", "--network=none", IMAGE, "check", "/etc/semmem/config.yaml")


# --- running ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Running:
    """A container as the manifests have it: read-only, without capabilities, on ports of this machine."""

    name: str
    grpc_port: int
    api_url: str
    health_url: str
    ready_s: float


@contextmanager
def running(podman: Podman, volume: str) -> Iterator[Running]:
    name, ports = f"semmem-{secrets.token_hex(4)}", {part: free_port() for part in ("GRPC", "API", "HEALTH")}
    settings = {f"SEMMEM_LISTENERS__{part}__ADDRESS": f"127.0.0.1:{port}" for part, port in ports.items()}
    settings |= {"SEMMEM_LISTENERS__API__ADMIN_TOKEN": ADMIN, "SEMMEM_IDENTITY__METADATA_CLAIM": "[jwt_payload, sub]"}
    given = [part for key, value in settings.items() for part in ("--env", f"{key}={value}")]
    strict = ["--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--memory=3g", "--tmpfs=/tmp"]
    began = time.monotonic()
    podman(
        "run",
        "--detach",
        "--name",
        name,
        "--network=host",
        *strict,
        "--volume",
        f"{volume}:/var/lib/semmem",
        *given,
        IMAGE,
    )
    health = f"http://127.0.0.1:{ports['HEALTH']}"
    try:
        eventually(lambda: answers(f"{health}/readyz"), within_s=120, what="it is ready")
        yield Running(name, ports["GRPC"], f"http://127.0.0.1:{ports['API']}", health, time.monotonic() - began)
    finally:
        podman("rm", "--force", "--time", "30", name)


def answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def api(container: Running, method: str, path: str, **given: object) -> httpx.Response:
    headers = {"authorization": f"Bearer {ADMIN}"}
    with httpx.Client(trust_env=False, timeout=20) as http:
        return http.request(method, container.api_url + path, headers=headers, **given)  # type: ignore[arg-type]


@pytest.fixture
def volume(podman: Podman) -> Iterator[str]:
    name = f"data-{secrets.token_hex(4)}"
    podman("volume", "create", name)
    yield name
    podman("volume", "rm", "--force", name)


def test_a_fact_is_found_again_through_envoy_also_after_a_restart(podman: Podman, volume: str, tmp_path: Path) -> None:
    with running(podman, volume) as first:
        print(f"image: ready after {first.ready_s:.1f} s")
        assert first.ready_s < READY_S_MAX
        fact = {"user_id": "ute", "content": "User's budget for Hawaii is $10,000"}
        # Ready is before the embedded store is: requests would pass without memory until then.
        eventually(lambda: api(first, "POST", "/v1/memory", json=fact).status_code == 201, within_s=30, what="stored")
        began = time.monotonic()
        podman("stop", "--time", "30", first.name)
        print(f"image: stopped within {time.monotonic() - began:.1f} s")
        assert podman.inspect(first.name)["State"]["ExitCode"] == 0
    with (
        running(podman, volume) as second,
        stand_in_model() as model,
        envoy_process(tmp_path, semmem_port=second.grpc_port, upstream=model.url) as envoy,
        httpx.Client(trust_env=False, timeout=30) as http,
    ):
        body = {"model": "stand-in", "messages": [{"role": "user", "content": "What is my budget for Hawaii?"}]}
        headers = {"authorization": "Bearer demo-ute"}
        answer = http.post(f"{envoy.url}/v1/chat/completions", json=body, headers=headers)
        assert (answer.status_code, answer.headers["x-semmem-outcome"]) == (200, "injected")
        print(
            "image: memory of the container",
            podman("stats", "--no-stream", "--format", "{{.MemUsage}}", second.name).strip(),
        )
        assert "Read-only file system" not in podman("logs", second.name)


def test_its_health_check_works(podman: Podman, volume: str) -> None:
    with running(podman, volume) as container:
        port = container.health_url.rpartition(":")[2]
        check = podman.inspect(IMAGE)["Healthcheck"]["Test"]
        assert check[0] == "CMD"
        here = [part.replace(":9090", f":{port}") for part in check[1:]]
        podman("exec", container.name, *here)
