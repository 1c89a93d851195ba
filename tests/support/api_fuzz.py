"""``python -m tests.support.api_fuzz --examples N``: calls that nobody would think of, to a semmem that runs.

schemathesis reads the description that the process gives of itself, calls every operation with what it describes and
with what it does not, as an administrator and as a user, and compares each answer with what was promised.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from demo.processes import signals_raise
from tests.support.harness import ADMIN_TOKEN, SemmemProcess, semmem_process

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
    "use_after_free",
)
"""Not ``positive_data_acceptance``: whether a cursor was made here, a sentence is let through by the screen, or a line
is one of an export, no schema can say. Not ``ensure_resource_availability``: a memory is found by who names its
user."""
UNLIMITED = {"listeners": {"api": {"rate_limit": {"calls_per_s": 0, "failures_per_minute": 0}}}}
"""A caller of many calls shall be answered, and not told to wait."""
RULES = """
[checks]
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 408, 409, 413, 421, 422, 429, "5xx"]
"""
"""As by default, and 413: a body that is wrong may be too large before anybody reads what is wrong with it."""
PROGRAM = "from schemathesis.cli import schemathesis; schemathesis()"


@dataclass(frozen=True)
class Fuzzed:
    """``calls``: how many were made. ``printed``: what schemathesis said."""

    passed: bool
    calls: int
    printed: str


def seeded(semmem: SemmemProcess) -> str:
    """Memories of two users, and a token of one of them."""
    for user in ("alice", "bob"):
        for number in range(5):
            memory = {"user_id": user, "content": f"User likes tea number {number}", "key": f"tea{number}"}
            semmem.api("POST", "/v1/memory", json=memory)
    return str(semmem.api("POST", "/v1/tokens", json={"role": "user", "user_id": "alice"})["token"])


def fuzz(
    semmem: SemmemProcess,
    token: str,
    *,
    examples: int,
    seconds: int,
    phases: str,
    folder: Path,
    repeatable: bool = False,
) -> Fuzzed:
    """So many examples of each operation in each phase, or so many seconds, whatever ends first. ``repeatable``: the
    same ones each time, for a test that must not find by luck what the long form shall find."""
    (folder / "schemathesis.toml").write_text(RULES)
    command = [sys.executable, "-c", PROGRAM, "run", f"{semmem.api_url}/openapi.json", "--no-color"]
    command += ["--header", f"Authorization: Bearer {token}", "--checks", ",".join(CHECKS), "--phases", phases]
    command += [
        "--max-examples",
        str(examples),
        "--max-time",
        str(seconds),
        "--continue-on-failure",
        "--warnings",
        "off",
    ]
    if repeatable:
        command += ["--seed", "1", "--generation-deterministic"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds + 120, check=False)
    printed = done.stdout + done.stderr
    calls = re.search(r"(\d+) generated", printed)
    return Fuzzed(done.returncode == 0, int(calls[1]) if calls else 0, printed)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=1800, help="at most, for each of the two callers")
    asked = parser.parse_args()
    with (
        signals_raise(),
        tempfile.TemporaryDirectory() as name,
        semmem_process(Path(name), UNLIMITED) as semmem,
    ):
        folder, mine = Path(name), seeded(semmem)
        results = {
            who: fuzz(
                semmem,
                token,
                examples=asked.examples,
                seconds=asked.seconds,
                phases="examples,coverage,fuzzing",
                folder=folder,
            )
            for who, token in (("administrator", ADMIN_TOKEN), ("user", mine))
        }
    failed = [who for who, result in results.items() if not result.passed]
    for who in failed:
        print(f"--- as {who} ---\n{results[who].printed}")
    print(f"api-fuzz: {sum(result.calls for result in results.values())} calls, {len(failed)} of 2 callers failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
