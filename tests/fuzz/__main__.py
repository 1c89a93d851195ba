"""``python -m tests.fuzz --seconds 60``: search every target in turn, each in a process of its own.

libFuzzer never returns from a search, hence the processes. Exit status 1 when there was a finding.
"""

from __future__ import annotations

import argparse
import importlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

SHARES = {
    "requests": 6,
    "answers": 6,
    "encodings": 3,
    "texts": 3,
    "long_texts": 2,
    "exchange": 6,
    "extproc": 6,
    "config": 2,
    "calls": 6,
    "tools": 3,
    "web_tokens": 2,
    "cursors": 1,
    "import_lines": 2,
}
"""Every target's share of the time."""
INPUT_S_MAX = 10
RSS_MB_MAX = 3072


class Search(NamedTuple):
    """What became of one target: inputs tried, wall seconds, and where the input of a finding lies."""

    inputs: int
    seconds: float
    finding: str


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    if options.target:
        _search_here(options.target, Path(options.folder), options.flags)
    names = options.only.split(",") if options.only else list(SHARES)
    folder = Path(tempfile.mkdtemp(prefix="semmem-fuzz-"))
    print(f"{'target':<12}{'inputs':>10}{'seconds':>9}  finding")
    share_s = options.seconds / sum(SHARES[name] for name in names)
    searches = [_search(name, max(1, round(share_s * SHARES[name])), folder, options.seed) for name in names]
    total = Search(sum(s.inputs for s in searches), sum(s.seconds for s in searches), "")
    _print("all", total)
    if any(search.finding for search in searches):
        return 1
    shutil.rmtree(folder)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=float, default=60, help="for all targets together")
    parser.add_argument("--only", default="", help=f"targets, comma between them: {', '.join(SHARES)}")
    parser.add_argument("--seed", type=int, default=0, help="of libFuzzer; 0 is a new one each time")
    parser.add_argument("--target", choices=SHARES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("flags", nargs="*", help=argparse.SUPPRESS)
    return parser


def _search(name: str, seconds: int, folder: Path, seed: int) -> Search:
    found, kept = folder / name / "findings", folder / name / "corpus"
    found.mkdir(parents=True)
    kept.mkdir()
    flags = [
        f"-max_total_time={seconds}",
        f"-seed={seed}",
        f"-timeout={INPUT_S_MAX}",
        f"-rss_limit_mb={RSS_MB_MAX}",
        f"-artifact_prefix={found}/",
        "-print_final_stats=1",
    ]
    command = [sys.executable, "-m", "tests.fuzz", "--target", name, "--folder", str(folder / name), "--", *flags]
    started = time.monotonic()
    ended = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    said = ended.stderr + ended.stdout
    counts = re.findall(r"stat::number_of_executed_units:\s*(\d+)", said)
    files = [str(file) for file in found.iterdir()]
    finding = " ".join(files) or ("" if ended.returncode == 0 and counts else f"exit {ended.returncode}")
    search = Search(int(counts[-1]) if counts else 0, time.monotonic() - started, finding)
    _print(name, search)
    if finding:
        print("\n".join([line for line in said.splitlines() if not line.startswith(("#", "INFO:"))][-60:]))
    return search


def _print(name: str, search: Search) -> None:
    print(f"{name:<12}{search.inputs:>10}{search.seconds:>9.0f}  {search.finding or '-'}", flush=True)


def _search_here(name: str, folder: Path, flags: Sequence[str]) -> None:
    """Never returns."""
    atheris = importlib.import_module("atheris")  # not for every Python, so nothing else may need it
    with atheris.instrument_imports(include=["semmem"]):
        targets = importlib.import_module("tests.fuzz.targets")
    target, words = targets.TARGETS[name], folder / "words"
    words.write_text("\n".join(_quoted(word) for word in target.words))
    limits = [f"-max_len={target.bytes_max}", *([f"-dict={words}"] if target.words else [])]
    folders = [str(folder / "corpus"), str(targets.CORPUS / name)]  # new inputs go into the first
    atheris.Setup([sys.argv[0], *limits, *flags, *folders], target.check)
    atheris.Fuzz()


def _quoted(word: bytes) -> str:
    return '"' + "".join(f"\\x{byte:02x}" for byte in word[:64]) + '"'


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
