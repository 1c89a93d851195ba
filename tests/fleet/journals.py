"""The turns that replicas have recorded: in a journal that they share, or in one of each."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psycopg

LEARNT = """
select 1 from turns where user_id = ? and user_text = ? and (done_at is not null or exists (
    select 1 from provisional where provisional.turn_id = turns.id and provisional.memory_id = ''))
"""
"""A row without a memory's id says that a turn was learnt from at once."""
TURNS = "select user_id, session, user_text, answer, done_at from turns where opened_at is not null"


@dataclass(frozen=True, slots=True)
class Turn:
    """``answer`` None: none came. ``done``: it is learnt from."""

    user: str
    session: str
    text: str
    answer: str | None
    done: bool


class Journals(Protocol):
    def turns(self) -> list[Turn]:
        """Of every user, in any order. Blocking."""

    def is_learnt(self, user: str, text: str) -> bool:
        """Whether a turn was learnt from, at once or with its batch; where that cannot be asked it counts as such.
        Blocking."""


class OwnJournals:
    """A SQLite file of each replica, in its data directory."""

    def __init__(self, data_dirs: Sequence[Path]) -> None:
        self._files = [data_dir / "journal.db" for data_dir in data_dirs]

    def turns(self) -> list[Turn]:
        found = []
        for file in self._files:
            with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30)) as journal:
                found += [_turn(*row) for row in journal.execute(TURNS)]
        return found

    def is_learnt(self, user: str, text: str) -> bool:
        for file in self._files:
            with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30)) as journal:
                if journal.execute(LEARNT, (user, text)).fetchone():
                    return True
        return False


class SharedJournal:
    """A PostgreSQL database."""

    def __init__(self, url: str) -> None:
        self._url = url

    def turns(self) -> list[Turn]:
        with psycopg.connect(self._url) as journal:
            return [_turn(*row) for row in journal.execute(TURNS.encode())]

    def is_learnt(self, user: str, text: str) -> bool:
        try:
            with psycopg.connect(self._url) as journal:
                query = LEARNT.replace("?", "%s").encode()
                return journal.execute(query, (user, text)).fetchone() is not None
        except psycopg.Error:
            return True


def _turn(user: str, session: str, text: str, answer: str | None, done_at: float | None) -> Turn:
    return Turn(user, session, text, answer, done_at is not None)


def waiting(journals: Journals) -> int:
    """How many turns are still to be learnt from."""
    return sum(not turn.done for turn in journals.turns())
