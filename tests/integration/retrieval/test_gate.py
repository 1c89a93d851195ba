"""The gate's weights and the default embedder's vectors belong together."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from semmem.backends.embedding.sentence_transformers import SentenceTransformersEmbedder
from semmem.retrieval.decide import gate


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedder() -> AsyncIterator[SentenceTransformersEmbedder]:
    model = SentenceTransformersEmbedder()
    await model.open()
    yield model
    await model.close()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("howdy, a very good evening to you good fellow", "greeting"),
        ("thanks ever so kindly for lending a hand with the task", "greeting"),
        ("what enzyme unwinds dna during replication", "general_fact"),
        ("Which metal did the Romans call plumbum?", "general_fact"),
        ("Which US state joined the union last?", "general_fact"),
        ("What is the name of that uncle?", "search"),
        ("What was the wifi code at the chalet?", "search"),
        ("Who is older, Nora Finley or Jack Moss?", "search"),
        ("Which enzyme did my professor tell me to read about?", "search"),
        ("Hi there, what is my budget?", "search"),
        ("Book a table for two tonight.", "search"),
    ],
)
async def test_the_vector_knows_what_the_rules_do_not(
    embedder: SentenceTransformersEmbedder, text: str, word: str
) -> None:
    assert gate.gate(text, await embedder.embed(text)) == word


@pytest.mark.asyncio(loop_scope="module")
async def test_the_weights_are_for_the_default_embedder(embedder: SentenceTransformersEmbedder) -> None:
    assert embedder.signature == gate.SIGNATURE
