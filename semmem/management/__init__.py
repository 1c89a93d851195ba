"""The operator's door: REST, health and metrics over HTTP. The same store and journal as the request path uses.

Files with routes have no ``from __future__ import annotations``: FastAPI reads the annotations of nested functions.
"""
