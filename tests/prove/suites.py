"""The long suites: how each is run, short and whole, and what the line looks like that says how it went."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from demo.stack import HOME

FALLS_SHORT = (
    r"^(WRONG|LEAK|RETURN|RARE|LOST|BROKEN|NOT LISTED|LISTED, BUT|FAILED)\b|^(lost|doubled): |DIFFERS|A HOUSE FAILED"
)
SHARED = HOME.parent / "shared" / "data"
"""Where the labelled data lie, beside the clone."""


@dataclass(frozen=True, slots=True)
class Places:
    """Folders that are not the repository's: of labelled data, and of other systems' scenarios."""

    data: Path = SHARED
    peers: Path = SHARED / "peers"


@dataclass(frozen=True, slots=True)
class Command:
    """``missing``: what it needs and this machine does not have, in words; empty when it can be run."""

    words: tuple[str, ...]
    seconds_max: float
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """``folder``: where it is written. ``verdict``: the line that says how it went; ``falls_short``: those that say
    what is not as it should be. ``short`` is None where there is no honest short form. ``alone``: nothing may run
    beside its short form, since it judges how late something is."""

    name: str
    folder: str
    verdict: str
    short: Callable[[Places], Command] | None
    long: Callable[[Places], Command]
    falls_short: str = FALLS_SHORT
    alone: bool = False


def python(*words: str, within_s: float = 300) -> Callable[[Places], Command]:
    return lambda _places: Command((sys.executable, "-m", *words), within_s)


def make(*words: str, within_s: float) -> Callable[[Places], Command]:
    return lambda _places: Command(("make", "--no-print-directory", *words), within_s)


def _lacks(folder: Path) -> str:
    return "" if folder.is_dir() else f"no {folder.name} at {os.path.relpath(folder, HOME)}"


def _peers(places: Places) -> Command:
    words = (sys.executable, "-m", "tests.peers", str(places.peers), "--only", "sr_[a-d]")
    return Command(words, 300, _lacks(places.peers))


def _all_peers(places: Places) -> Command:
    return Command(("make", "--no-print-directory", "peers", f"PEERS={places.peers}"), 3600, _lacks(places.peers))


def _quality(places: Places) -> Command:
    """A fifth of the labelled data and, data or not, what the repository has."""
    folder = (str(places.data), "--fifth", "only", "--only", "gate") if places.data.is_dir() else ()
    own = ("--only", "updates", "--only", "vague", "--only", "sessions")
    return Command((sys.executable, "-m", "quality", *folder, *own), 300)


def _all_quality(places: Places) -> Command:
    return Command(("make", "--no-print-directory", "quality", f"DATA={places.data}"), 3 * 3600, _lacks(places.data))


def _studio(_places: Places) -> Command:
    lacks = [
        *([] if shutil.which("chromium") else ["no browser"]),
        *([] if (HOME / ".venv" / ".studio-ready").exists() else ["no Playwright: make .venv/.studio-ready"]),
    ]
    words = (sys.executable, "-m", "pytest", "-n", "0", "tests/system/studio/test_memories_page.py")
    return Command(words, 300, "; ".join(lacks))


def _adapters(_places: Places) -> Command:
    ready = (HOME / ".venv-adapters" / ".ready").exists()
    return Command(
        (sys.executable, "-m", "tests.adapters"), 300, "" if ready else "no environment: make .venv-adapters/.ready"
    )


def _image(_places: Places) -> Command:
    can = shutil.which("podman") or (os.geteuid() == 0 and shutil.which("apt-get"))
    return Command(
        ("make", "--no-print-directory", "image-test"), 2 * 3600, "" if can else "no podman, and no way to it"
    )


BENCH_WORDS = ("patience=100", "settle_s=0.1", "warm_up=4", "stream_levels=1,2", "stream_rounds=2", "tokens=6",
               "token_interval_ms=40", "starts=1", "users=2", "memories=3", "requests=6", "idle_s=1")  # fmt: skip
"""Tiny, and so patient that no request is late: whether it runs and writes its figures, not what they are."""
BENCH_OUT = HOME / ".prove" / "smoke" / "bench.json"

SUITES: tuple[Suite, ...] = (
    Suite(
        "faults",
        "tests/faults",
        r"^faults: \d+ cells, \d+ differ; \d+ houses failed, \d+ cells not run$",
        python("tests.faults", "--each", "1"),
        make("faults", within_s=3600),
        alone=True,
    ),
    Suite(
        "stall",
        "tests/stall",
        r"^stall: \d+ attacks, \d+ questions of a bystander, \d+ without memory$",
        python("tests.stall", "--short"),
        make("stall", within_s=900),
        alone=True,
    ),
    Suite(
        "crashes",
        "tests/faults",
        r"^crashes: \d+ kills, \d+ accepted, \d+ lost, \d+ doubled$",
        python("tests.faults.crashes", "3"),
        make("crashes", "N=50", within_s=3600),
    ),
    Suite(
        "canary",
        "tests/canary",
        r"^canary: \d+ operations, \d+ leaks, \d+ returns$",
        python("tests.canary", "--operations", "1000", "--users", "20", "--restarts", "2"),
        make("canary", "N=100000", within_s=3 * 3600),
    ),
    Suite(
        "fleet",
        "tests/fleet",
        r"^fleet: \d+ turns, \d+ lost, \d+ doubled, \d+ client errors, \d+ erased came back$",
        python(
            *("tests.fleet", "--lite", "--bag-of-words", "--conversations", "8", "--turns", "6"),
            *("--trials", "0", "--stop-s", "0"),
        ),
        make("fleet", within_s=3600),
    ),
    Suite(
        "soak",
        "tests/soak",
        r"^soak: \d+ seconds, \d+ requests, \d+ failed, rss \S+%, files \S+$",
        python("tests.soak", "--seconds", "20", "--fault-seconds", "7"),
        make("soak", within_s=1800),
    ),
    Suite(
        "backup",
        "tests/backup",
        r"^backup: \d+ questions, \d+ answered otherwise, \d+ lines differ$",
        python("tests.backup", "--people", "2", "--questions", "8"),
        make("backup-test", within_s=1800),
    ),
    Suite(
        "reindex",
        "tests/reindex",
        r"^reindex: \d+ memories, \d+ wrong, \d+ missing, \d+ came back$",
        python("tests.reindex", "--memories", "200", "--kills", "1"),
        make("reindex-test", within_s=3600),
    ),
    Suite("peers", "tests/peers", r"^peers: \d+ steps, \d+ differ$", _peers, _all_peers),
    Suite(
        "studio",
        "tests/system/studio",
        r"^studio: [1-9]\d* checks, \d+ failed$",
        _studio,
        make("studio-test", within_s=3600),
    ),
    Suite(
        "adapters",
        "tests/adapters",
        r"^adapters: \d+ checks, \d+ failed$",
        _adapters,
        make("adapters-test", within_s=2400),
    ),
    Suite(
        "bench",
        "bench",
        r"^bench: \d+ of \d+ targets met, in parts .*$",
        python(
            *("bench", "--only", "streams,process", "--out", str(BENCH_OUT)),
            *(word for setting in BENCH_WORDS for word in ("--set", setting)),
        ),
        make("bench", within_s=2 * 3600),
        falls_short=r" NO  ",
    ),
    Suite(
        "quality",
        "quality",
        r"^quality: \d+ of \d+ targets met, \d+ without data$",
        _quality,
        _all_quality,
        falls_short=r"  no$",
    ),
    Suite(
        "server",
        "tests/server",
        r"^server: .* tests on a Milvus server, \d+ failed, \d+ s$",
        None,
        make("server-test", within_s=3600),
    ),
    Suite(
        "fuzz",
        "tests/fuzz",
        r"^all +\d+ +\d+  -$",
        None,
        make("fuzz", "SECONDS=600", within_s=1800),
        falls_short=r"^\w+ +\d+ +\d+  [^-]",
    ),
    Suite(
        "api-fuzz",
        "tests/support/api_fuzz.py",
        r"^api-fuzz: \d+ calls, \d+ of 2 callers failed$",
        None,
        make("api-fuzz", within_s=2 * 3600),
    ),
    Suite(
        "envoys",
        "tests/envoys",
        r"^envoys: [1-9]\d* releases, \d+ tests failed, \d+ s$",
        None,
        make("envoys", within_s=3600),
        falls_short=r"^\| \S+ \| \d+ of \d+ failed",
    ),
    Suite(
        "stranger",
        "tests/stranger",
        r"^stranger: [1-9]\d* ways, \d+ commands, first memory after .+, \d+ failed$",
        None,
        make("stranger", within_s=2 * 3600),
    ),
    Suite("image", "tests/system/image", r"^(\d+ failed, )?\d+ passed.*$", None, _image),
    Suite(
        "audit",
        "tests/audit",
        r"^audit: \d+ packages, \d+ files, \d+ complaints$",
        python("tests.audit"),
        make("audit", within_s=600),
    ),
)
"""In the order in which they are run. A further one is a row here."""
