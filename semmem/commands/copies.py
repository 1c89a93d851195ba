"""``semmem backup``, ``restore``, ``export``, ``import``, ``erasures``, ``journal import``, ``journal recover``: copies
between a running semmem's API and files here, or where nothing runs. What is not finished never has the name that was
asked for."""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

import httpx

from semmem.backup import BackupError, ErasuresLost, erasures, folder, lines
from semmem.commands.asking import LONG_TIMEOUT_S, Api, connected, refusal, settings_of
from semmem.commands.command import Exit, Failure
from semmem.commands.terminal import Progress, answer, members, say
from semmem.ports.errors import SemmemError

LINES_IN_CALL, BYTES_IN_CALL = 200, 384 * 1024
"""Of an import; the API takes a megabyte by default."""
BUSY_TRIES, BUSY_PAUSE_S = 5, 2.0
OUTPUT = Path("-")
"""Standard output, or standard input."""

Told = dict[str, Any]


def reported(copy: Callable[[argparse.Namespace], Told | None], given: argparse.Namespace) -> int:
    """Prints what was done, and fails where not all of it was."""
    try:
        told = copy(given)
    except ErasuresLost as error:
        raise Failure("ERASURES_LOST", "", str(error), **error.told) from error
    except (BackupError, SemmemError) as error:
        raise Failure("NOT_COPIED", "", str(error)) from error
    if told is None:
        return 0
    answer(given, told, members(told))
    return Exit.NOT_DONE if told.get("conflicts") else 0


def _api(given: argparse.Namespace) -> Api:
    return connected(given, settings_of(given), timeout_s=LONG_TIMEOUT_S)


# --- backup ----------------------------------------------------------------------------------------------------------


def backup(given: argparse.Namespace) -> Told:
    """Have a backup taken, and keep it as a new folder. Raises BackupError and OSError."""
    api, destination = _api(given), given.destination
    unfinished = folder.new_unfinished(destination)
    try:
        with api.stream("POST", "/v1/backup") as answer:
            manifest = _receive(answer, unfinished)
        if folder.describe_all(unfinished) != manifest["files"]:
            raise BackupError("what arrived is not what was sent")
        folder.finish(unfinished, destination, manifest)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    shown = ("semmem", "taken_at", "signature", "users", "memories", "journal")
    return {"backup": str(destination), **{name: manifest[name] for name in shown}}


def _receive(answer: httpx.Response, unfinished: Path) -> folder.Manifest:
    progress, size = Progress("backup"), 0
    for told, content in folder.frames(answer.iter_raw()):
        if "failed" in told:
            raise BackupError(f"the backup failed: {told['failed']}")
        if "manifest" in told:
            progress.end()
            found: folder.Manifest = told["manifest"]
            return found
        size += len(content)
        progress.at(size, str(told.get("progress", f"{size} bytes")))
        if told.get("file") in folder.FILES:
            with open(unfinished / told["file"], "ab", opener=_private) as file:
                file.write(content)
    raise BackupError("the backup ended before it was whole")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


# --- export ----------------------------------------------------------------------------------------------------------


def export(given: argparse.Namespace) -> Told | None:
    """Write one user's memories, or everybody's, as a new file. Raises BackupError and OSError."""
    api, target, user = _api(given), given.file, given.user
    if target == OUTPUT:
        _export_to_output(api, user)
        return None
    with _new_file(target) as path:
        with open(path, "wb", opener=_private) as file:
            _stream_lines(api, user, file)
            os.fsync(file.fileno())
        _, end = check(path)
    return {"export": str(target), "users": end.users, "memories": end.memories, "versions": end.versions}


def _stream_lines(api: Api, user: str | None, file: IO[bytes]) -> bytes:
    """Write them as they come; the end of what was written."""
    progress, size, tail = Progress("export"), 0, b""
    with api.stream("GET", "/v1/export", params={"user_id": user} if user else {}) as answer:
        for chunk in answer.iter_raw():
            file.write(chunk)
            size, tail = size + len(chunk), (tail + chunk)[-lines.LINE_BYTES_MAX :]
            progress.at(size, f"{size} bytes")
    file.flush()
    progress.end()
    return tail


def _export_to_output(api: Api, user: str | None) -> None:
    """Write the lines to standard output. Raises BackupError when the last one is missing."""
    tail = _stream_lines(api, user, sys.stdout.buffer).rstrip(b"\n")
    try:
        last = lines.read_line(tail[tail.rfind(b"\n") + 1 :])
    except lines.Unreadable:
        last = None
    if not isinstance(last, lines.End):
        raise BackupError("the export is not whole: its last line is missing")


def known_erasures(given: argparse.Namespace) -> Told:
    """Write what is known of erasures as a new file. Raises BackupError and OSError."""
    api = _api(given)
    with _new_file(given.file) as path:
        with api.stream("GET", "/v1/erasures") as answer:
            text = answer.read()
        marks = erasures.read(text)
        with open(path, "wb", opener=_private) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    return {"erasures": str(given.file), "marks": len(marks)}


@contextmanager
def _new_file(target: Path) -> Iterator[Path]:
    """Where to write what gets its name when it is whole."""
    if target.exists():
        raise BackupError(f"{target} is there already; name a file that is not")
    unfinished = target.with_name(target.name + ".part")
    unfinished.unlink(missing_ok=True)
    try:
        yield unfinished
        unfinished.rename(target)
    finally:
        unfinished.unlink(missing_ok=True)


# --- import ----------------------------------------------------------------------------------------------------------


def check(path: Path) -> tuple[lines.Header, lines.End]:
    """Read every line of an export. Raises BackupError naming the first line that is wrong, and why."""
    header: lines.Header | None = None
    end: lines.End | None = None
    memories = versions = 0
    users: set[str] = set()
    for number, text in _numbered(path):
        try:
            line = lines.read_line(text)
            if (number == 1) != isinstance(line, lines.Header) or end is not None:
                raise lines.Unreadable("the first line, and no other, says what the file is; nothing follows the last")
            if isinstance(line, lines.Header):
                header = line
                if header.format != lines.FORMAT:
                    raise lines.Unreadable(f"format {header.format}; this build knows {lines.FORMAT}")
            elif isinstance(line, lines.End):
                end = line
                if (end.memories, end.versions) != (memories, versions) or end.users != len(users):
                    raise lines.Unreadable(
                        f"it tells of {end.users} users, {end.memories} memories and {end.versions} earlier versions;"
                        f" before it are {len(users)}, {memories} and {versions}"
                    )
            else:
                users.add(lines.memory_of(line).user)
                memories += isinstance(line, lines.MemoryLine)
                versions += isinstance(line, lines.VersionLine)
        except lines.Unreadable as error:
            raise BackupError(f"{path} line {number}: {error}; nothing was imported") from None
    if header is None or end is None:
        raise BackupError(f"{path} is not whole: its last line is missing")
    return header, end


@contextmanager
def _standard_input() -> Iterator[Path]:
    """What comes there, as a file: it is read twice, so that nothing is imported of what is not whole."""
    with tempfile.TemporaryDirectory(prefix="semmem-import-") as place:  # of this user alone
        path = Path(place) / "-"
        with open(path, "wb", opener=_private) as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


def take(given: argparse.Namespace) -> Told:
    """Import an export. All of it is read first, and nothing imported when a line is wrong. Raises BackupError, and
    Failure, which then says up to which line it was imported, and OSError."""
    with _standard_input() if given.file == OUTPUT else nullcontext(given.file) as path:
        return {"import": str(given.file), **_taken(_api(given), path)}


def _taken(api: Api, path: Path) -> Told:
    header, end = check(path)
    say(f"{path.name} is whole: {end.memories} memories of {end.users} users, {end.versions} earlier versions")
    done: Told = {}
    progress = Progress("import", end.memories + end.versions)
    for numbers, texts in _calls(path):
        answer = _post(api, {"signature": header.signature, "lines": texts})
        if not answer.is_success:
            raise _stopped(path, numbers, refusal(answer, f"{api.url}/v1/import"), done)
        _add(done, answer.json(), numbers)
        progress.at(numbers[-1] - 1)
    progress.end()
    return done


def _stopped(path: Path, numbers: Sequence[int], why: Failure, done: Mapping[str, Any]) -> Failure:
    before = f"lines 2 to {numbers[0] - 1} were imported" if numbers[0] > 2 else "nothing was imported before"
    reason = (
        f"{path.name} lines {numbers[0]} to {numbers[-1]}: {why.reason}; {before}."
        " Once that is mended, import the same file again: nothing is doubled"
    )
    return Failure(why.code, why.path, reason, why.status, lines=[numbers[0], numbers[-1]], done=dict(done))


def _post(api: Api, body: Mapping[str, Any]) -> httpx.Response:
    for _ in range(BUSY_TRIES):
        answer = api.answer("POST", "/v1/import", json=body)
        if answer.status_code != 409:
            break
        time.sleep(BUSY_PAUSE_S)
    return answer


def _add(done: Told, told: Mapping[str, Any], numbers: Sequence[int]) -> None:
    for name, value in told.items():
        if name == "conflicts":
            done.setdefault(name, []).extend(numbers[place] for place in value)
        elif name != "success":
            done[name] = done.get(name, 0) + value


def _calls(path: Path) -> Iterator[tuple[list[int], list[str]]]:
    """The lines of memories, with their numbers, as many as one call takes. A call ends with a memory, so that it comes
    together with what it was before."""
    numbers: list[int] = []
    texts: list[str] = []
    size = 0
    for number, text in _numbered(path):
        if not isinstance(lines.read_line(text), lines.MemoryLine | lines.VersionLine):
            continue
        if texts and (len(texts) >= LINES_IN_CALL or size + len(text) > BYTES_IN_CALL):
            yield numbers, texts
            numbers, texts, size = [], [], 0
        numbers.append(number)
        texts.append(text.decode())
        size += len(text)
    if texts:
        yield numbers, texts


def _numbered(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines, the first of them number 1. What is longer than any of them may be is not read to its end."""
    with path.open("rb") as file:
        yield from enumerate(iter(lambda: file.readline(lines.LINE_BYTES_MAX + 2), b""), 1)


# --- where nothing runs ----------------------------------------------------------------------------------------------


def restore(given: argparse.Namespace) -> Told:
    from semmem.wiring import backup  # imports every backend

    if not given.erasures:
        say("without --erasures, what was erased after the backup was taken comes back with it (docs/backup.md)")
    return asyncio.run(backup.restore(settings_of(given), given.source, given.erasures, say))


def adopt(given: argparse.Namespace) -> Told:
    from semmem.wiring import backup  # imports every backend

    return backup.adopt(settings_of(given), given.left, say)


def recover(given: argparse.Namespace) -> Told:
    from semmem.wiring import backup  # imports every backend

    accept = given.accept_lost_erasures
    told = backup.recover(settings_of(given), accept_lost_erasures=accept, progress=say)
    if not told.get("erasures_known", True):
        say("not all that was erased is known: delete again whoever asked for it lately (docs/backup.md)")
    return told
