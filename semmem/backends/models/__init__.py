"""Language models and rerankers behind HTTP."""

from semmem.imports import as_if_absent

with as_if_absent("httpx._main"):  # its command line, with 3 MB of libraries
    import httpx  # noqa: F401
