"""Encoded answers are decoded however they are cut, and a bomb never gets room."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import zlib
from collections.abc import Callable, Sequence

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.turns.encodings import PIECE_BYTES, Undecodable, decoder_for, zstd

ENCODE: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "identity": bytes,
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
}


def decoded(encoding: str, chunks: Sequence[bytes], bytes_max: int = 10**7) -> bytes:
    decoder = decoder_for(encoding, decoded_bytes_max=bytes_max)
    assert decoder is not None
    return b"".join(piece for chunk in chunks for piece in decoder.feed(chunk))


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(bounds)]


@pytest.mark.parametrize("encoding", ENCODE)
@given(text=st.binary(max_size=300), places=st.lists(st.integers(0, 10**6), max_size=8))
def test_any_cut_of_any_body_decodes_to_it(encoding: str, text: bytes, places: list[int]) -> None:
    assert decoded(encoding, cut(ENCODE[encoding](text), places)) == text


@pytest.mark.parametrize("encoding", ENCODE)
def test_a_long_body_comes_in_pieces(encoding: str) -> None:
    text = bytes(range(256)) * 4096
    decoder = decoder_for(encoding, decoded_bytes_max=len(text))
    assert decoder is not None
    pieces = [piece for chunk in cut(ENCODE[encoding](text), [1000, 5000]) for piece in decoder.feed(chunk)]
    assert b"".join(pieces) == text
    if encoding not in ("", "identity"):
        assert max(map(len, pieces)) <= 2 * PIECE_BYTES


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_a_bomb_is_stopped_at_the_limit(encoding: str) -> None:
    bomb = ENCODE[encoding](b"a" * 50_000_000)
    with pytest.raises(Undecodable, match="more than is allowed"):
        decoded(encoding, [bomb], bytes_max=1_000_000)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_several_members_in_a_row_are_one_body(encoding: str) -> None:
    body = ENCODE[encoding](b"one ") + ENCODE[encoding](b"two")
    assert decoded(encoding, [body]) == b"one two"
    assert decoded(encoding, [bytes([byte]) for byte in body]) == b"one two"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
@given(junk=st.binary(min_size=1, max_size=200))
def test_hostile_bytes_are_undecodable_or_bytes_and_nothing_else(encoding: str, junk: bytes) -> None:
    with contextlib.suppress(Undecodable):
        assert isinstance(decoded(encoding, [junk, junk]), bytes)


@pytest.mark.parametrize("encoding", ["compress", "gzip, br", "snappy", "gzip;q=1"])
def test_an_unknown_encoding_has_no_decoder(encoding: str) -> None:
    assert decoder_for(encoding, decoded_bytes_max=1000) is None


@pytest.mark.parametrize("encoding", ["GZIP", " gzip "])
def test_a_known_encoding_is_known_in_any_case(encoding: str) -> None:
    assert decoded(encoding, [gzip.compress(b"x")]) == b"x"
