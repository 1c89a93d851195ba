"""Vectors that are kept between runs."""

from __future__ import annotations

from pathlib import Path

from quality.vectors import PrefetchedEmbedder
from semmem.memory import Vector
from tests.support.fakes import HashEmbedder


class CountingEmbedder(HashEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        self.asked.append(text)
        return await super().embed(text)


async def test_vectors_are_made_once_and_kept_for_the_next_run(tmp_path: Path) -> None:
    counts: list[tuple[int, int]] = []
    for expected in (["tea", "coffee"], []):
        inner = CountingEmbedder()
        embedder = PrefetchedEmbedder(inner, cache=tmp_path)
        await embedder.open()
        await embedder.prefetch(["coffee", "tea", "tea"], lambda done, wanted: counts.append((done, wanted)))
        assert (await embedder.embed("tea") == await HashEmbedder().embed("tea")).all()
        await embedder.close()
        assert inner.asked == expected
    assert counts == [(2, 2)]


async def test_a_cache_that_was_cut_short_is_made_again(tmp_path: Path) -> None:
    for _ in range(2):
        inner = CountingEmbedder()
        embedder = PrefetchedEmbedder(inner, cache=tmp_path)
        await embedder.open()
        await embedder.embed("tea")
        await embedder.close()
        assert inner.asked == ["tea"]
        cut_short(tmp_path)


def cut_short(folder: Path) -> None:
    (file,) = folder.iterdir()
    file.write_bytes(file.read_bytes()[:100])
