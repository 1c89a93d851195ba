"""The journal's tables are made, or brought up to what this build knows.

Two numbers say what a journal is. A *revision* only adds tables, and columns with defaults: a build that does not know
it goes on with what it knows, beside the later one or in its place. What an older build could not live with raises
``SCHEMA_VERSION``, and that build refuses it.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, String, Table, insert, inspect, select

from semmem.backends.sql import locks
from semmem.backends.sql.tables import SCHEMA_VERSION, journal_schema, metadata
from semmem.ports.errors import JournalError

HEAD = "0017"
"""The newest revision in ``migrations/versions``. Asking here spares most starts the import of Alembic."""
MIGRATIONS = Path(__file__).parent / "migrations"
VERSION_TABLE = "journal_revision"

_revision = Table(VERSION_TABLE, MetaData(), Column("version_num", String(32), primary_key=True))


def bring_up_to_date(conn: Connection) -> None:
    """Raises JournalError for what is no journal, or is one that only a later build can read."""
    locks.schema(conn)
    tables = set(inspect(conn).get_table_names())
    if journal_schema.name not in tables:
        if tables:
            raise JournalError("there is a database, but it is not a journal of semmem")
        _create(conn)
        return
    found = conn.execute(select(journal_schema.c.version)).scalar_one()
    if not 1 <= found <= SCHEMA_VERSION:
        raise JournalError(f"the journal has schema version {found}; this build knows version {SCHEMA_VERSION}")
    revision = conn.execute(select(_revision.c.version_num)).scalar() if VERSION_TABLE in tables else None
    if revision is None or revision < HEAD:
        _upgrade(conn)


def _create(conn: Connection) -> None:
    """At once what the revisions come to one after another; a test holds the two against each other."""
    metadata.create_all(conn)
    conn.execute(insert(journal_schema).values(version=SCHEMA_VERSION))
    _revision.create(conn)
    conn.execute(insert(_revision).values(version_num=HEAD))


def _upgrade(conn: Connection) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util.exc import CommandError

    config = Config(attributes={"connection": conn})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    try:
        command.upgrade(config, "head")
    except CommandError:
        raise JournalError("the journal has a revision that no build of semmem knows") from None
