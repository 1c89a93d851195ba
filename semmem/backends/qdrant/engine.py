"""What the store asks of either kind of Qdrant."""

from __future__ import annotations

from typing import Any, Protocol


class Engine(Protocol):
    """A Qdrant with one collection."""

    @property
    def is_server(self) -> bool:
        """Whether indexes, quantisation and read consistency mean anything to it."""

    async def open(self) -> None:
        """Connect, and make or check the collection. Idempotent; raises StoreError, and may then be called again."""

    async def close(self) -> None:
        """Idempotent."""

    async def ask(self, operation: str, **arguments: Any) -> Any:
        """One call of the client. Raises StoreUnavailable when it is not open, and whatever the client raises."""
