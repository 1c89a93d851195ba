"""A backup into an empty folder of data: verified first, put together aside, and moved into place at the end.

What is not finished lies in one folder, ``restoring``. While that is there nothing may be served from the data around
it, and another restore begins anew."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from semmem.backup import BackupError, folder, lines
from semmem.backup.erasures import MarkedJournal, erase_again
from semmem.memory import Forgetting, Memory
from semmem.passages.shelves import everything
from semmem.ports.accounts import TokenRecords
from semmem.ports.erasure import Mark
from semmem.ports.store import Collection, Store

STAGING = "restoring"
IGNORED = frozenset({"lost+found"})
"""What a new volume holds."""
PROGRESS_USERS = 100

Progress = Callable[[str], None]


@dataclass(slots=True)
class Restored:
    """What was put back; what was left out, and taken out of the journal, as it was erased since."""

    users: int = 0
    memories: int = 0
    erased_memories: int = 0
    erased_turns: int = 0
    erased_versions: int = 0
    revoked_tokens: int = 0
    journal: dict[str, int] = field(default_factory=dict)


def is_unfinished(data_dir: Path) -> bool:
    return (data_dir / STAGING).is_dir()


def prepare(data_dir: Path, places: Iterable[str]) -> Path:
    """An empty folder to put things together in. ``places``: what a restore moves into ``data_dir``, which goes when
    an earlier one was interrupted. Blocking. Raises BackupError when there is anything else."""
    if is_unfinished(data_dir):
        for name in (STAGING, *places):
            _remove(data_dir / name)
    held = sorted(path.name for path in data_dir.iterdir() if path.name not in IGNORED) if data_dir.exists() else []
    if held:
        shown = ", ".join(held[:5]) + (", ..." if len(held) > 5 else "")
        raise BackupError(f"{data_dir} is not empty ({shown}): a backup is restored into an empty data_dir only")
    staging = data_dir / STAGING
    staging.mkdir(mode=0o700, parents=True)
    return staging


def finish(data_dir: Path, places: Sequence[str]) -> None:
    """Everything into its place, the journal last; from then on it is served. Blocking."""
    for name in places:
        if (data_dir / STAGING / name).exists():
            (data_dir / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            (data_dir / STAGING / name).rename(data_dir / name)
    shutil.rmtree(data_dir / STAGING)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


async def apply_erasures(
    journal: MarkedJournal, marks: Sequence[Mark], pending: Sequence[Forgetting], *, now: float, restored: Restored
) -> None:
    """Erase in the restored journal what was erased since; what it holds itself was applied when it was taken."""
    await journal.add_marks(marks)
    erased = await erase_again(journal, await journal.erased_scopes() if marks else (), pending, now=now)
    restored.erased_turns += erased["turns"]
    restored.erased_versions += erased["versions"]


async def revoke_tokens(tokens: TokenRecords, *, now: float, restored: Restored) -> None:
    """Nobody knows which of them were revoked since: they are made anew."""
    restored.revoked_tokens = await tokens.revoke_tokens(now=now)


async def fill(store: Collection, journal: MarkedJournal, source: Path, restored: Restored, progress: Progress) -> None:
    """Write the memories that are not erased, then read all of them again. Raises BackupError when they differ."""
    erased: set[tuple[str, str]] = set()
    for number, (user, memories) in enumerate(_by_user(source)):
        gone = await journal.erased_among(memories)
        erased |= {(user, memory_id) for memory_id in gone}
        kept = [memory for memory in memories if memory.id not in gone]
        if kept:
            await store.fill(kept)
            await journal.register_user(user)
            restored.users += 1
        restored.memories += len(kept)
        if number % PROGRESS_USERS == 0:
            progress(f"restored {restored.memories} memories of {restored.users} users")
    restored.erased_memories = len(erased)
    progress("reading them again")
    for user, memories in _by_user(source):
        await _compare(store, user, [memory for memory in memories if (user, memory.id) not in erased])


async def _compare(store: Store, user: str, memories: Sequence[Memory]) -> None:
    found = await everything(store, user)
    if {lines.memory_line(memory) for memory in found} != {lines.memory_line(memory) for memory in memories}:
        raise BackupError(
            f"the store does not hold what was written into it: {len(found)} memories of a user who has {len(memories)}"
        )


def _by_user(source: Path) -> Iterator[tuple[str, list[Memory]]]:
    for user, group in groupby(_memories(source / folder.MEMORIES), key=lambda memory: memory.user):
        yield user, list(group)


def _memories(path: Path) -> Iterator[Memory]:
    with path.open("rb") as file:
        for number, text in enumerate(file, 1):
            try:
                line = lines.read_line(text)
                if isinstance(line, lines.MemoryLine):
                    yield lines.memory_of(line)
            except lines.Unreadable as error:
                raise folder.Damaged(f"{path} line {number}: {error}") from None
