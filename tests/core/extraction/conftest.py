"""Real journals, opened for a test and closed after it."""

from tests.support.traced_journal import journal, journals

__all__ = ["journal", "journals"]
