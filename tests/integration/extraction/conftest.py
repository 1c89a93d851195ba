"""Real journals and the shipped embedder, opened for tests and closed after them."""

from tests.support.shipped import embedder
from tests.support.traced_journal import journal, journals

__all__ = ["embedder", "journal", "journals"]
