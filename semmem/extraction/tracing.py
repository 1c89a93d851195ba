"""What spans tell of learning."""

from __future__ import annotations

from semmem.extraction.placed import Placed
from semmem.memory import Fact
from semmem.ports import spans
from semmem.ports.learning import Batch, Extractor


async def extracted(extractor: Extractor, shown: Batch) -> list[Fact]:
    """The extractor's facts. Raises what it raises."""
    with spans.step("semmem.extract") as span:
        span.note("semmem.engine", extractor.name)
        facts = await extractor.extract(shown)
        span.note("semmem.facts", len(facts))
    return facts


def tell(span: spans.Span, placed: Placed) -> None:
    """What storing a fact did."""
    span.note("semmem.action", placed.action.value)
    if placed.id:
        span.note(spans.RECORD_ID, placed.id)
