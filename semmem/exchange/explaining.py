"""A client that asks is told which memories its prompt was given: by their ids, in a response header that Envoy makes
of the metadata."""

from __future__ import annotations

from semmem.exchange.features import Feature, PendingRequest

HEADER, ASKED = "x-semmem-explain", "ids"
NOTE = "memories"


class Explaining(Feature):
    """Holds nothing of any request."""

    def after_search(self, pending: PendingRequest, shown: tuple[str, ...], tokens: int) -> None:
        asked = pending.request.head.header(HEADER)
        if shown and asked is not None and asked.lower() == ASKED:
            pending.notes = (*pending.notes, (NOTE, ", ".join(shown)))
