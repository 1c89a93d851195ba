"""What Alembic runs: the revisions that a journal lacks, inside the transaction of whoever opens it."""

from __future__ import annotations

from alembic import context

from semmem.backends.sql.schema import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
context.run_migrations()
