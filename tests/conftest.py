"""What holds for every level: how many examples hypothesis tries, and how tests are spread over xdist's workers."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.support.adapters import share_adapters
from tests.support.empty_journal import empty_journal
from tests.support.examples import use_profile
from tests.support.forked import use_forks
from tests.support.journal_samples import Place
from tests.support.postgres import TestServer, running_server, worker_name
from tests.support.statements import share_statements

use_profile()
use_forks()
share_adapters()
share_statements()

APART = (
    "core/test_linear_text.py",
    "integration/backends/test_full_disk.py",
    "integration/backends/test_purge.py",
    "integration/backends/test_worker_process.py",
    "e2e/test_canary.py",
    "e2e/test_demo.py",
    "e2e/test_disk.py",
    "e2e/test_faults.py",
    "e2e/test_soak.py",
)
"""Files whose tests share nothing: each test may run on another worker. Otherwise a file stays on one."""
TOGETHER = {
    "home": """
        api_door bounded_names erasure every_message exact_bodies fence messages metrics peers recall responses
    """.split(),
    "model": ["embedder", "embedder_contract", "onnx"],
    "milvus": ["milvus", "store_contract"],
    "deploy": ["deploy", "gateways", "chart", "monitoring", "compose"],
}
"""Files that share something dear: the house of the e2e tests, a process that imports torch, a Milvus Lite, one with
the schemas of Kubernetes and of gateways."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, so that nobody waits for it at the end."""
    items.sort(key=_seconds, reverse=True)


def _seconds(item: pytest.Item) -> float:
    mark = item.get_closest_marker("long")
    return float(mark.args[0]) if mark else 0.0


class Spread(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Files on workers. (Groups by mark need xdist to write into a test's id, which pytest 9.2 does not let it.)"""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.endswith(APART):
            return nodeid
        level, _, name = file.removeprefix("tests/").partition("/")
        stem = name.rpartition("/")[2].removeprefix("test_").removesuffix(".py")
        together = (group for group, files in TOGETHER.items() if level != "core" and stem in files)
        return next(together, file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Spread:
    config.option.loadscopereorder = False
    return Spread(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """No garbage is looked for while what is imported grows: a quarter of the time of it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """What was imported is no garbage: a full collection through it takes as long as what some tests measure."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """What a file's tests left behind is looked through once: a worker comes to a gigabyte, of which every full
    collection takes seconds."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How long the tests of each folder took, in all the processes together; which ones failed, for tests.again."""
    failed = {report.nodeid for kind in ("failed", "error") for report in terminalreporter.stats.get(kind, ())}
    if getattr(terminalreporter.config, "cache", None) is not None:
        terminalreporter.config.cache.set("semmem/failed", sorted(failed))
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds["/".join(report.nodeid.split("/")[:2])] += report.duration  # type: ignore[assignment]
    told = ", ".join(f"{folder} {took:.0f} s" for folder, took in seconds.most_common())
    terminalreporter.write_line(f"in the processes' time: {told}")


@pytest.fixture(scope="session")
def postgres() -> Iterator[TestServer]:
    """A PostgreSQL server, the same for all workers of the run."""
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def database(postgres: TestServer) -> str:
    """A database of this worker's."""
    name = f"journal-{worker_name()}"
    postgres.create(name)
    return name


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty journal's file or URL. What is opened there twice is one journal."""
    if request.param == "sqlite":
        return empty_journal(tmp_path / "journal.db")
    server, name = request.getfixturevalue("postgres"), request.getfixturevalue("database")
    server.empty(name)
    return str(server.url(name))
