"""The journal's tables are made, or brought up to what this build knows.

Two numbers say what a journal is. A *revision* only adds tables, indexes, and columns with defaults: a build that does
not know it goes on with what it knows, beside the later one or in its place. So an upgrade is one step from wherever a
journal is: what it lacks is added, and what is there stays as it is. What an older build could not live with raises
``SCHEMA_VERSION``, and that build refuses it."""

from sqlalchemy import Column, Connection, MetaData, String, Table, insert, inspect, select, text, update
from sqlalchemy.schema import CreateColumn

from semmem.backends.sql import locks
from semmem.backends.sql.rows import Transaction
from semmem.backends.sql.tables import SCHEMA_VERSION, journal_schema, metadata, turns, users, versions
from semmem.ports.errors import JournalError

HEAD = "0020"
"""The revision of ``tables``: raised by one when something is added there. A journal that has it is not looked at."""
VERSION_TABLE = "journal_revision"

_revision = Table(VERSION_TABLE, MetaData(), Column("version_num", String(32), primary_key=True))


def bring_up_to_date(conn: Connection) -> None:
    """Raises JournalError for what is no journal, or is one that only a later build can read."""
    locks.alone_with(Transaction(conn), locks.SCHEMA)
    tables = set(inspect(conn).get_table_names())
    if journal_schema.name not in tables:
        if tables:
            raise JournalError("there is a database, but it is not a journal of semmem")
        metadata.create_all(conn)
        conn.execute(insert(journal_schema).values(version=SCHEMA_VERSION))
        _set_revision(conn)
        return
    found = conn.execute(select(journal_schema.c.version)).scalar_one()
    if not 1 <= found <= SCHEMA_VERSION:
        raise JournalError(f"the journal has schema version {found}; this build knows version {SCHEMA_VERSION}")
    revision = conn.execute(select(_revision.c.version_num)).scalar() if VERSION_TABLE in tables else None
    if revision is None or revision < HEAD:
        _add_what_is_lacking(conn, tables)
        if found == 1:
            _know_users(conn)
        conn.execute(update(journal_schema).values(version=SCHEMA_VERSION))
        _set_revision(conn)


def _add_what_is_lacking(conn: Connection, known: set[str]) -> None:
    metadata.create_all(conn)
    for table in (metadata.tables[name] for name in known & metadata.tables.keys()):
        columns = {column["name"] for column in inspect(conn).get_columns(table.name)}
        for column in table.columns:
            if column.name not in columns:
                added = CreateColumn(column).compile(dialect=conn.dialect)
                conn.execute(text(f"ALTER TABLE {table.name} ADD COLUMN {added}"))
        for index in table.indexes:
            index.create(conn, checkfirst=True)


def _know_users(conn: Connection) -> None:
    """Version 1 did not say who is known."""
    for table in (turns, versions):
        names = select(table.c.user_id).where(table.c.user_id != "", table.c.user_id.not_in(select(users.c.user_id)))
        conn.execute(insert(users).from_select(["user_id"], names.distinct()))


def _set_revision(conn: Connection) -> None:
    _revision.create(conn, checkfirst=True)
    if conn.execute(update(_revision).values(version_num=HEAD)).rowcount == 0:
        conn.execute(insert(_revision).values(version_num=HEAD))
