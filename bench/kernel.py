"""What Linux knows of another process: its processor time, its memory, its children."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

_RESIDENT = re.compile(r"^(Rss|Pss): +(\d+) kB$", re.MULTILINE)


def cpu_seconds(pid: int) -> float:
    """The CPU clock of a process (clock_getcpuclockid(3)): what /proc/PID/stat says, in nanoseconds, not ticks."""
    return time.clock_gettime((~pid << 3) | 2)


def resident_mb(pid: int) -> dict[str, float]:
    """``rss``: all pages; ``pss``: of pages that several processes have, a share. In units of 2**20 bytes."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return {name.lower(): int(kilobytes) / 1024 for name, kilobytes in _RESIDENT.findall(rollup)}


def age_s(pid: int) -> float:
    """How long ago it was started, to a hundredth of a second."""
    started = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> dict[int, list[str]]:
    """The arguments of each child of any of its threads, by process id."""
    found: dict[int, list[str]] = {}
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in listed.read_text().split():
            found[int(child)] = Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")[:-1]
    return found
