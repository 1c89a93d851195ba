"""The journal and the history of memories in an SQL database."""
