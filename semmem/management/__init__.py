"""The operator's door: REST, health and metrics over HTTP. The same store and journal as the request path uses.

Files with routes have no ``from __future__ import annotations``: FastAPI reads the annotations of nested functions.
"""

from urllib.parse import quote


def segment(name: str) -> str:
    """A name as one segment of a path, whatever is in it. Dots are escaped as well: HTTP clients take "." and ".." for
    steps, so that DELETE of the memory "." would be DELETE of all memories."""
    return quote(name, safe="").replace(".", "%2E")
