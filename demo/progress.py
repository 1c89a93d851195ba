"""Run one slow step of ``make setup`` and show that it moves: ``python3 progress.py LOG LABEL COMMAND ...``.

On a terminal one line tells the step, its seconds and what the command does just now; elsewhere the line is plain text.
All that the command prints goes to the end of LOG; when the command fails, its own part of LOG is shown as well. Needs
nothing but Python, because it runs before anything is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

LOOK_S = 0.25
SHOWN_LINES_MAX = 40
OLDEST = (3, 11)
INTERRUPTED = 130
"""What shells say of a program that Ctrl-C ended."""


def main(argv: list[str]) -> int:
    """The command's exit status."""
    if sys.version_info < OLDEST:
        have, want = (".".join(map(str, version)) for version in (sys.version_info[:3], OLDEST))
        print(f"semmem needs Python {want} or later, and {sys.executable} is {have}: try make PYTHON=python{want}")
        return 1
    if len(argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    log, label, command = Path(argv[0]), argv[1], argv[2:]
    with log.open("ab") as output:
        output.write(f"=== {label}: {' '.join(command)}\n".encode())
        output.flush()
        return _run(command, label, log, output.fileno(), log.stat().st_size)


def _run(command: list[str], label: str, log: Path, output: int, begin: int) -> int:
    """``begin`` is where the command's own part of the log begins, in bytes."""
    moves = sys.stdout.isatty()
    started = time.monotonic()
    print(f"{label} ...", end="", flush=True)
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    except OSError as error:
        print(f"\n{command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    while (status := _status(process)) is None:
        if moves:
            _show(f"{label} ... {time.monotonic() - started:.0f} s  {_last_line(log, begin)}")
    seconds = f"{time.monotonic() - started:.0f} s"
    if status == INTERRUPTED:
        print("\ninterrupted; nothing is lost, the next call goes on from here", file=sys.stderr)
    elif status:
        print(f"\nfailed after {seconds}; the end of {log}:\n{_tail(log, begin)}", file=sys.stderr)
    else:
        print(f"\r\033[K{label} ... {seconds}" if moves else f" {seconds}", flush=True)
    return status


def _status(process: subprocess.Popen[bytes]) -> int | None:
    """None when it still runs. Ctrl-C reaches it as well, so that it only needs to be waited for."""
    try:
        status = process.wait(LOOK_S)
    except subprocess.TimeoutExpired:
        return None
    except KeyboardInterrupt:
        process.wait()
        return INTERRUPTED
    return status if status >= 0 else 128 - status


def _show(line: str) -> None:
    """In place of the line before, and never wider than the terminal: a wrapped line could not be taken back."""
    width = shutil.get_terminal_size().columns - 1
    sys.stdout.write(f"\r\033[K{line[:width]}")
    sys.stdout.flush()


def _last_line(log: Path, begin: int) -> str:
    lines = _tail(log, begin, lines_max=1).split()
    return " ".join(word for word in lines if word.isprintable())


def _tail(log: Path, begin: int, *, lines_max: int = SHOWN_LINES_MAX) -> str:
    with log.open("rb") as text:
        text.seek(begin)
        lines = text.read().decode("utf-8", "replace").splitlines()
    return "\n".join(lines[-lines_max:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
