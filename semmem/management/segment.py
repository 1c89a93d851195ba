"""A name as one segment of a path, whatever is in it."""

from __future__ import annotations

from urllib.parse import quote


def segment(name: str) -> str:
    """Dots are escaped as well: HTTP clients take "." and ".." for steps, so that DELETE of the memory "." would be
    DELETE of all memories."""
    return quote(name, safe="").replace(".", "%2E")
