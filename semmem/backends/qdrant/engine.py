"""What the store asks of either kind of Qdrant."""

from __future__ import annotations

from typing import Any, Protocol


class Engine(Protocol):
    """A Qdrant, with any number of collections."""

    @property
    def is_server(self) -> bool:
        """Whether indexes, quantisation and read consistency mean anything to it."""

    async def open(self) -> None:
        """Connect. Idempotent; raises StoreError, and may then be called again."""

    async def close(self) -> None:
        """Idempotent."""

    async def drop(self, name: str, timeout_s: float) -> None:
        """A collection with all that it holds. Raises as ``ask``."""

    async def ask(self, operation: str, **arguments: Any) -> Any:
        """One call of the client. Raises StoreUnavailable when it is not open, and whatever the client raises."""
