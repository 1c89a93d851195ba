"""The shipped embedder, opened for the tests of a file and closed after them."""

from tests.support.shipped import embedder

__all__ = ["embedder"]
