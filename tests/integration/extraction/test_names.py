"""What is said of somebody of the user's is learnt whatever they are called, with the real embedder.

The vector of a word that the model has never met points anywhere; the names here are such words.
"""

from __future__ import annotations

import asyncio

import pytest

from semmem.extraction.rules import RulesExtractor
from semmem.memory import Scope, Turn
from semmem.ports.learning import Batch
from tests.canary.sentences import FACTS
from tests.canary.words import Words
from tests.support.shipped import shipped_embedder

NAMES = 40
PEOPLE = [sentence for sentence, _ in FACTS if sentence.split()[1] in ("sister", "colleague", "neighbour", "aunt")]
PEOPLE += ["My friend {} is a dentist."]


@pytest.mark.asyncio
async def test_somebody_of_the_users_is_learnt_of_by_any_name() -> None:
    names = [Words(899492).word(user, number) for user in (22, 47) for number in range(NAMES)]
    said = [sentence.format(name) for sentence in PEOPLE for name in names]
    turns = [Turn(str(number), Scope("ann"), number, text, 0.0) for number, text in enumerate(said)]
    embedder = shipped_embedder()
    await embedder.open()
    try:
        extractor = RulesExtractor(embedder)
        batches = [Batch(turn.id, turn.scope, (turn,), (), "test", attempt=1) for turn in turns]
        found = await asyncio.gather(*map(extractor.extract, batches))
    finally:
        await embedder.close()
    unlearnt = [text for text, facts in zip(said, found, strict=True) if not facts]
    assert unlearnt == []
