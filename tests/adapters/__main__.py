"""``python -m tests.adapters [pytest options]``: what is built on semmem for others' libraries, on a real semmem.

semmem, Envoy and the scripted model run with this Python; the adapters and examples, with their own tests, in an
environment of their own (`.venv-adapters`), as whoever uses them would. The last line says how many checks there were.
Exit status 1 when one failed or there was none, 2 without the environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from demo.processes import signals_raise
from demo.stack import HOME
from tests.support.harness import ADMIN_TOKEN, SHIPPED_EMBEDDER, House, Json, envoy_process, house, stand_in_model
from tests.support.junit import counted

VENV = HOME / ".venv-adapters"
PYTHON = str(VENV / "bin" / "python")
GATEWAY_HEADER = "x-litellm-user"
"""By which LiteLLM's proxy names the user of a key to the model server."""
CONFIG: Json = {
    "listeners": {"api": {"mcp": True, "rate_limit": {"calls_per_s": 0}}},
    "identity": {"trusted_headers": [GATEWAY_HEADER]},
}


def main() -> int:
    if not (VENV / ".ready").exists():
        print("adapters: no environment for them: make .venv-adapters/.ready", file=sys.stderr)
        return 2
    with signals_raise(), tempfile.TemporaryDirectory(prefix="semmem-adapters-") as temporary:
        folder = Path(temporary)
        checks, failed = _typed(folder)
        with (
            stand_in_model() as model,
            house(folder / "house", model, CONFIG, strips_the_gateways_header, program=SHIPPED_EMBEDDER) as home,
        ):
            gateway = envoy_process(
                folder / "gateway", semmem_port=home.semmem.grpc_port, upstream=model.url, adapt=behind_a_gateway
            )
            with gateway as behind:
                tests, bad = _tested(folder, _addresses(home, behind.url))
    checks, failed = checks + tests, failed + bad + (tests == 0)
    print(f"adapters: {checks} checks, {failed} failed")
    return 1 if failed else 0


def strips_the_gateways_header(config: Json) -> None:
    """An Envoy that clients reach: what they say in GATEWAY_HEADER is removed, like the usual identity headers."""
    strip = next(each for each in _filters(config) if each["name"] == "semmem.strip_identity")
    strip["typed_config"]["mutations"]["request_mutations"].append({"remove": GATEWAY_HEADER})


def behind_a_gateway(config: Json) -> None:
    """An Envoy that only a gateway reaches, which sets GATEWAY_HEADER itself: nothing else says who is asking."""
    filters = _filters(config)
    filters[:] = [each for each in filters if each["name"] != "demo.authentication"]


def _filters(config: Json) -> list[Json]:
    filters: list[Json] = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"][
        "http_filters"
    ]
    return filters


def _addresses(home: House, gateway: str) -> dict[str, str]:
    return {
        "SEMMEM_API": home.semmem.api_url,
        "SEMMEM_ADMIN": ADMIN_TOKEN,
        "SEMMEM_ENVOY": home.envoy.url,
        "SEMMEM_GATEWAY": gateway,
        "SEMMEM_MODEL": home.model.url,
    }


def _typed(folder: Path) -> tuple[int, int]:
    """The adapter's types, in the environment that has LangGraph's: one check."""
    argv = [PYTHON, "-m", "mypy", "--strict", "--cache-dir", str(folder / "mypy"), "-p", "semmem_langgraph"]
    return 1, int(subprocess.run(argv, cwd=HOME / "adapters" / "langgraph", check=False).returncode != 0)


def _tested(folder: Path, addresses: dict[str, str]) -> tuple[int, int]:
    """How many tests there were, and how many of them failed."""
    report = folder / "adapters.xml"
    argv = [PYTHON, "-m", "pytest", "-q", "-c", "adapters/pytest.ini", f"--junitxml={report}", "adapters/tests"]
    environ = {
        **os.environ,
        **addresses,
        "PYTHONPATH": str(HOME / "adapters" / "langgraph"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    subprocess.run([*argv, *sys.argv[1:]], cwd=HOME, env=environ, check=False)
    return counted(report)


if __name__ == "__main__":
    sys.exit(main())
