"""What spans tell of learning."""

from __future__ import annotations

from collections.abc import Sequence

from semmem.extraction.placed import Placed
from semmem.memory import Memory
from semmem.ports import spans
from semmem.ports.learning import Batch, Extractor, Reviewed, Reviewer


async def extracted(extractor: Extractor, shown: Batch, notes: Sequence[Memory] = ()) -> Reviewed:
    """The extractor's facts, and its judgement of the notes where it gives one. Raises what it raises."""
    with spans.step("semmem.extract") as span:
        span.note("semmem.engine", extractor.name)
        if notes and isinstance(extractor, Reviewer):
            found = await extractor.review(shown, notes)
        else:
            found = Reviewed(await extractor.extract(shown))
        span.note("semmem.facts", len(found.facts))
    return found


def tell(span: spans.Span, placed: Placed) -> None:
    """What storing a fact did."""
    span.note("semmem.action", placed.action.value)
    if placed.id:
        span.note(spans.RECORD_ID, placed.id)
