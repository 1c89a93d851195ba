"""What two processes hold, seen from outside, and whether it grows."""

from __future__ import annotations

import re
import sqlite3
import statistics
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

MB = 1024 * 1024
RSS_GROWTH_MAX = 0.10
RSS_GROWTH_MB_MAX = 50.0
FILES_GROWTH_MAX = 10


@dataclass(frozen=True, slots=True)
class Held:
    """Of one process: resident memory in MB, open files and threads."""

    rss_mb: float
    files: int
    threads: int


def held(pid: int) -> Held:
    """From /proc. Raises ProcessLookupError when the process is gone, or dead and not yet waited for."""
    process = Path(f"/proc/{pid}")
    try:
        status = (process / "status").read_text()
    except FileNotFoundError as error:
        raise ProcessLookupError(pid) from error
    rss, threads = (re.search(rf"^{name}:\s+(\d+)", status, re.MULTILINE) for name in ("VmRSS", "Threads"))
    if rss is None or threads is None:
        raise ProcessLookupError(pid)
    return Held(int(rss[1]) / 1024, len(list((process / "fd").iterdir())), int(threads[1]))


@dataclass(frozen=True, slots=True)
class Sample:
    """One look, ``at_s`` seconds after the load began. ``store_mb``: of the embedded store, 0 when
    it is down; it is not judged, since the faults kill it. ``journal_mb``: file and write-ahead log."""

    at_s: float
    semmem: Held
    envoy: Held
    store_mb: float
    journal_mb: float
    streams: float
    requests: int


def journal_mb(data_dir: Path) -> float:
    return sum(file.stat().st_size for file in data_dir.glob("journal.db*")) / MB


def journal_states(data_dir: Path) -> dict[str, int]:
    """How many turns wait, are leased, are done; and how many are answers without a question."""
    count = """
        select case when opened_at is null then 'lonely' when done_at is not null then 'done'
                    when batch_id is not null then 'leased' else 'waiting' end, count(*)
        from turns group by 1"""
    with closing(sqlite3.connect(f"file:{data_dir / 'journal.db'}?mode=ro", uri=True)) as journal:
        return {"waiting": 0, "leased": 0, "done": 0, "lonely": 0} | dict(journal.execute(count).fetchall())


@dataclass(frozen=True, slots=True)
class Growth:
    """Of one figure, from the median of the second quarter of the run to the median of the last.

    The first quarter is left out: caches fill, and the allocator finds its size.
    """

    before: float
    after: float

    @property
    def absolute(self) -> float:
        return self.after - self.before

    @property
    def share(self) -> float:
        return self.absolute / self.before if self.before else 0.0


def growth(figures: Sequence[float]) -> Growth:
    """Raises ValueError for fewer than four figures."""
    if len(figures) < 4:
        raise ValueError(f"{len(figures)} samples are too few to speak of growth")
    quarter = len(figures) // 4
    return Growth(statistics.median(figures[quarter : 2 * quarter]), statistics.median(figures[-quarter:]))


def memory_grew(rss_mb: Growth) -> bool:
    return rss_mb.share > RSS_GROWTH_MAX or rss_mb.absolute > RSS_GROWTH_MB_MAX


def files_grew(files: Growth) -> bool:
    return files.absolute > FILES_GROWTH_MAX
