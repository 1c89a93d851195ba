"""What serves where no embedding model is configured and none is there, and what is then left out."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from semmem.backends.embedding.bag_of_words import BagOfWords
from semmem.backends.embedding.sentence_transformers import SentenceTransformersEmbedder
from semmem.backends.embedding.static import StaticEmbedder
from semmem.backends.in_process import InProcessStore
from semmem.config.backends_section import EmbeddingSection
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError
from semmem.wiring import models
from semmem.wiring.backends import Backends
from semmem.wiring.learning import drift_watch
from semmem.wiring.models import chosen, has_no_model
from semmem.wiring.stores import journal, may_begin
from tests.support.configuration import loaded
from tests.support.fakes import HashEmbedder, hot

NOT_HERE = ["nobody/made-this", "made-up-name", "./nope", "/no/such/folder"]
BY_WORDS = "memories are found by the words that they share with a question"


def serving(folder: Path, **rules: object) -> Embedder:
    return chosen(EmbeddingSection.model_validate({"onnx_dir": str(folder)} | rules))


def test_no_model_is_used_where_none_is_wanted(tmp_path: Path) -> None:
    assert isinstance(serving(tmp_path, source="none"), BagOfWords)
    assert isinstance(serving(tmp_path, source="none", static_dir="/nowhere", remote={"url": "http://x"}), BagOfWords)


@pytest.mark.parametrize("model", NOT_HERE)
def test_auto_comes_to_none_at_last_and_says_so(model: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert isinstance(serving(tmp_path, model=model), BagOfWords)
    (told,) = [record.getMessage() for record in caplog.records]
    assert BY_WORDS in told


def test_a_model_that_is_here_and_that_nothing_here_computes_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "mpnet"}')
    (tmp_path / "modules.json").write_text("[]")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    assert isinstance(serving(tmp_path, model=str(tmp_path)), SentenceTransformersEmbedder)
    monkeypatch.setattr(models, "TORCH_LIBRARY", "no_such_library")
    with pytest.raises(EmbedderError, match=r"it is no BERT encoder, but mpnet\. pip install 'semmem\[torch\]'"):
        serving(tmp_path, model=str(tmp_path))


@pytest.mark.parametrize("asked", [{"source": "local"}, {"backend": "onnx"}, {"precision": "int8"}])
def test_a_model_that_was_asked_for_is_not_replaced(
    asked: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "TORCH_LIBRARY", "no_such_library")
    with pytest.raises(EmbedderError, match="not on this machine; semmem model export fetches it"):
        serving(tmp_path, model="nobody/made-this", **asked)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "TORCH_LIBRARY", "no_such_library")
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbedderError, match=r"cannot write .*/file/models .*memory\.embedding\.onnx_dir"):
        serving(tmp_path / "file" / "models")


def test_words_are_read_as_the_search_reads_them(tmp_path: Path) -> None:
    embedder = serving(tmp_path, source="none")
    assert isinstance(embedder, BagOfWords)
    one, same, other = embedder.vectors(["The user lives in Oslo", "Living in OSLO?", "The user is in Rome"])
    assert (one == same).all()
    assert one @ other == 0


def test_only_words_have_no_model(tmp_path: Path) -> None:
    assert has_no_model(serving(tmp_path, source="none").signature)
    assert not has_no_model(serving(tmp_path, backend="torch").signature)


def test_changes_of_topic_are_not_looked_for_by_words(tmp_path: Path) -> None:
    """Two messages on one topic hardly share words: every second one would end a batch."""
    settings = loaded(tmp_path, "memory: {extraction: {drift_threshold: 0.12}}")
    backends = Backends(hot(InProcessStore()), HashEmbedder(), journal(settings), {})
    by_words = Backends(hot(InProcessStore()), serving(tmp_path, source="none"), journal(settings), {})
    assert drift_watch(settings, backends) is not None
    assert drift_watch(settings, by_words) is None


def test_a_table_of_tokens_is_better_than_words(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"a table")
    assert isinstance(serving(tmp_path, model="nobody/made-this", static_dir=str(tmp_path)), StaticEmbedder)


@pytest.mark.parametrize(("source", "begins"), [("none", True), ("auto", False)])
def test_only_who_asks_for_words_has_everything_reindexed_to_words(tmp_path: Path, source: str, begins: bool) -> None:
    rules = f"{{onnx_dir: '{tmp_path}', model: nobody/made-this, source: {source}}}"
    settings = loaded(tmp_path, f"memory: {{embedding: {rules}, reindex: {{start: auto}}}}")
    assert may_begin(settings, chosen(settings.memory.embedding)) is begins


def test_another_model_is_reindexed_to_only_where_that_is_configured(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "memory: {reindex: {start: auto}}")
    assert may_begin(settings, HashEmbedder())
    assert not may_begin(loaded(tmp_path, "memory: {reindex: {start: manual}}"), HashEmbedder())
