"""The journal's schema, one revision after another, for Alembic. Both databases take the same steps."""
