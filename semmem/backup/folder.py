"""A backup as a folder: a journal, memories, the fence key, and a manifest: written last, it knows every block. Without
a whole manifest it is no backup, so one that was interrupted cannot pass for one. All calls block.

And a backup on its way from the process that takes it to the one that keeps it, as frames. Each is one line of JSON;
``{"file": name, "bytes": n}`` is followed by that many bytes, to be added to the file. The last line is
``{"manifest": ...}`` or ``{"failed": reason}``; a stream without either was cut off."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from semmem.backup import BackupError

FORMAT = 1
JOURNAL, MEMORIES, FENCE, MANIFEST = "journal.db", "memories.jsonl", "fence.key", "manifest.json"
FILES = (JOURNAL, MEMORIES, FENCE)
BLOCK_BYTES = 64 * 1024
_BLOCK_DIGEST_BYTES = 8

Manifest = Mapping[str, Any]
LINE_BYTES_MAX = 256 * 1024 * 1024
"""The manifest is the longest: some 20 bytes for each 64 KiB of a file."""
Frame = tuple[Mapping[str, Any], bytes]


class Damaged(BackupError):
    """The backup is not what was written. The message names file and place."""


def describe(path: Path) -> dict[str, Any]:
    whole, blocks, size = hashlib.sha256(), [], 0
    for block in _blocks(path):
        whole.update(block)
        blocks.append(_block_digest(block))
        size += len(block)
    return {"bytes": size, "sha256": whole.hexdigest(), "blocks": blocks}


def describe_all(folder: Path) -> dict[str, Any]:
    return {name: describe(folder / name) for name in FILES if (folder / name).exists()}


def signed(told: Manifest) -> dict[str, Any]:
    """A manifest with the digest of all its other members."""
    return {**told, "digest": _manifest_digest(told)}


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Everything else is on disk when this returns, and it as well."""
    for path in folder.iterdir():
        sync(path)
    unfinished = folder / f"{MANIFEST}.part"
    with open(os.open(unfinished, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
        json.dump(manifest, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(folder / MANIFEST)
    sync(folder)


def read_manifest(folder: Path) -> Manifest:
    """Raises BackupError for what is no backup, or one that was not finished, and Damaged."""
    if not folder.is_dir():
        raise BackupError(f"{folder} is not a folder")
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise BackupError(f"{folder} has no {MANIFEST}: it is no backup, or one that was not finished") from None
    except (OSError, ValueError, RecursionError) as error:
        raise Damaged(f"{folder / MANIFEST} cannot be read: {type(error).__name__}") from None
    if not isinstance(manifest, dict) or manifest.get("digest") != _manifest_digest(manifest):
        raise Damaged(f"{folder / MANIFEST} was changed: its digest is of other content")
    if manifest.get("format") != FORMAT:
        raise BackupError(f"the backup has format {manifest.get('format')}; this build knows format {FORMAT}")
    return manifest


def verify(folder: Path, progress: Callable[[str], None]) -> Manifest:
    """Read every byte of a backup. Raises BackupError, and Damaged for the first block that is not what was written."""
    manifest = read_manifest(folder)
    for name, told in manifest["files"].items():
        progress(f"verifying {name}, {told['bytes']} bytes")
        _verify(folder / name, told)
    return manifest


def new_unfinished(destination: Path) -> Path:
    """An empty folder beside ``destination`` to write a backup into. Raises BackupError when that is there."""
    if destination.exists():
        raise BackupError(f"{destination} is there already; name a folder that is not")
    unfinished = destination.with_name(destination.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)  # of one that was interrupted
    unfinished.mkdir(mode=0o700, parents=True)
    return unfinished


def finish(unfinished: Path, destination: Path, manifest: Manifest) -> None:
    """From here on it is a backup. Raises OSError."""
    write_manifest(unfinished, manifest)
    unfinished.rename(destination)
    sync(destination.parent)


def _verify(path: Path, told: Mapping[str, Any]) -> None:
    number = -1
    try:
        for number, block in enumerate(_blocks(path)):
            if number >= len(told["blocks"]) or _block_digest(block) != told["blocks"][number]:
                first = number * BLOCK_BYTES
                raise Damaged(f"{path} is damaged between byte {first} and byte {first + len(block) - 1}")
    except OSError as error:
        raise Damaged(f"{path} cannot be read: {error.strerror}") from None
    if number + 1 != len(told["blocks"]):
        raise Damaged(f"{path} ends after {path.stat().st_size} of {told['bytes']} bytes")


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            yield block


def _block_digest(block: bytes) -> str:
    return hashlib.blake2b(block, digest_size=_BLOCK_DIGEST_BYTES).hexdigest()


def _manifest_digest(manifest: Manifest) -> str:
    """Of all its members but the digest."""
    told = {name: value for name, value in manifest.items() if name != "digest"}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode("ascii")).hexdigest()


def sync(path: Path) -> None:
    """What a file, or a folder, holds is on the disk then."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def frame(told: Mapping[str, Any]) -> bytes:
    return json.dumps(told).encode("ascii") + b"\n"


def file_frame(name: str, content: bytes) -> bytes:
    return frame({"file": name, "bytes": len(content)}) + content


def frames(chunks: Iterable[bytes]) -> Iterator[Frame]:
    """The frames of a stream. Raises BackupError for what is none, and at an end in the middle of one."""
    waiting, source = bytearray(), iter(chunks)
    while _fill(waiting, source, until=1):
        told = _told(_line(waiting, source))
        size = told.get("bytes", 0)
        if not _fill(waiting, source, until=size):
            raise BackupError("the stream ended in the middle of a file")
        content = bytes(waiting[:size])
        del waiting[:size]
        yield told, content


def _line(waiting: bytearray, source: Iterator[bytes]) -> bytes:
    seen = 0
    while (end := waiting.find(b"\n", seen)) < 0:
        seen = len(waiting)
        if seen > LINE_BYTES_MAX or not _fill(waiting, source, until=seen + 1):
            raise BackupError("the stream ended in the middle of a line")
    line = bytes(waiting[:end])
    del waiting[: end + 1]
    return line


def _fill(waiting: bytearray, source: Iterator[bytes], *, until: int) -> bool:
    while len(waiting) < until:
        chunk = next(source, None)
        if chunk is None:
            return False
        waiting += chunk
    return True


def _told(line: bytes) -> Mapping[str, Any]:
    try:
        told = json.loads(line)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise BackupError("the answer is no backup")
    return told
