"""What every embedder promises, with real models: each is loaded once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from semmem.backends.embedding.export import export
from semmem.backends.embedding.onnx_runtime import OnnxEmbedder
from semmem.backends.embedding.sentence_transformers import SentenceTransformersEmbedder
from semmem.backends.embedding.weights import MINILM
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError

TEXT_CHARS_MAX = 4000

MAKERS: dict[str, Callable[[Path], Embedder]] = {
    "torch": lambda _: SentenceTransformersEmbedder(f"sentence-transformers/{MINILM}", workers=2),
    "onnx": lambda root: OnnxEmbedder(export(MINILM, root), workers=2),
    "onnx int8": lambda root: OnnxEmbedder(export(MINILM, root, precision="int8"), workers=2),
}
SIGNATURES = {
    "torch": "sentence-transformers/all-MiniLM-L6-v2/384/fp32",
    "onnx": "sentence-transformers/all-MiniLM-L6-v2/384/fp32",
    "onnx int8": "sentence-transformers/all-MiniLM-L6-v2/384/int8",
}
shared_loop = pytest.mark.asyncio(loop_scope="module")
pytestmark = pytest.mark.long(40)


@pytest.fixture(scope="module", params=MAKERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedder(name: str, models: Path) -> AsyncIterator[Embedder]:
    embedder = MAKERS[name](models)
    await embedder.open()
    yield embedder
    await embedder.close()


@shared_loop
async def test_it_has_a_name_and_makes_vectors_of_length_one(name: str, embedder: Embedder) -> None:
    assert (embedder.dimension, embedder.signature) == (384, SIGNATURES[name])
    vector = await embedder.embed("hello")
    assert vector.dtype == np.float32
    assert vector.shape == (384,)
    assert not vector.flags.writeable
    assert float(np.linalg.norm(vector)) == pytest.approx(1.0, abs=1e-6)


@shared_loop
async def test_what_means_the_same_is_nearer(embedder: Embedder) -> None:
    asked, answer, other = [
        await embedder.embed(text)
        for text in ("Where does my sister live?", "Emma, her sister, has a home in Oslo.", "The train was late.")
    ]
    assert asked @ answer > asked @ other + 0.2


@shared_loop
async def test_concurrent_callers_get_the_vector_they_would_get_alone(embedder: Embedder) -> None:
    texts = [f"fact number {n} " + "with more words " * (n % 7) for n in range(40)]
    together = await asyncio.gather(*(embedder.embed(text) for text in texts))
    alone = [await embedder.embed(text) for text in texts]
    np.testing.assert_allclose(np.stack(together), np.stack(alone), atol=1e-5)


@pytest.mark.parametrize("text", ["", "\0", "a\0b", "\ud800", "x\udfff y", "😀" * 3000, "word " * 100_000])
@shared_loop
async def test_no_text_crashes_it(embedder: Embedder, text: str) -> None:
    assert np.isfinite(await embedder.embed(text)).all()


@shared_loop
async def test_text_beyond_the_limit_is_not_read(embedder: Embedder) -> None:
    kept = " " * (TEXT_CHARS_MAX - 1) + "a"
    np.testing.assert_array_equal(await embedder.embed(kept + " cat"), await embedder.embed(kept))
    assert not np.array_equal(await embedder.embed(kept[4:] + " cat"), await embedder.embed(kept))


@shared_loop
async def test_the_event_loop_stays_free_while_texts_are_embedded(embedder: Embedder) -> None:
    work = asyncio.gather(*(embedder.embed("some words to embed " * 40 + str(n)) for n in range(16)))
    beats = 0
    while not work.done():
        await asyncio.sleep(0)
        beats += 1
    await work
    assert beats > 100


async def test_before_open_and_after_close_there_are_no_vectors(name: str, models: Path) -> None:
    embedder = MAKERS[name](models)
    with pytest.raises(EmbedderError, match="not open"):
        await embedder.embed("x")
    await embedder.close()
    await embedder.close()
    with pytest.raises(EmbedderError, match="closed"):
        await embedder.open()
