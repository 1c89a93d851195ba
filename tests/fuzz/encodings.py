"""Encoded answers: Undecodable or decoded, in pieces of bounded size, the same however they are split."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence

import brotli

from semmem.turns.encodings import PIECE_BYTES, Undecodable, decoder_for, zstd
from tests.fuzz.choices import Choices, cut

NAMES = ("gzip", "deflate", "br", "zstd", "identity", "x-gzip")
LIMITS = (1 << 20, 100, 1 << 17, 0)


def encoded_answer(data: bytes) -> None:
    """The target.

    Of a corrupt body a split may decide what becomes of it: libzstd is stricter with a frame that it is given whole.
    """
    choices = Choices(data)
    name, bytes_max = choices.one_of(NAMES), choices.one_of(LIMITS)
    places = choices.cuts()
    body, text = (choices.rest(), None) if choices.below(2) == 0 else _encoded(choices, name)
    whole, parts = decoded(name, [body], bytes_max), decoded(name, cut(body, places), bytes_max)
    assert whole is None or parts is None or whole == parts, "the split changed the result"
    if text is not None:
        assert whole == parts == (text if len(text) <= bytes_max else None), "not what was encoded"


def _encoded(choices: Choices, name: str) -> tuple[bytes, bytes | None]:
    """A text of the data, properly encoded, perhaps several times in a row; None for the text of a damaged body."""
    times = 1 if name == "br" else 1 + choices.below(4)
    changes = [choices.take(3) for _ in range(choices.below(4))]
    repeated = 1 + 299 * choices.below(2)
    text = choices.rest() * repeated
    whole = encode(name, text) * times
    body = bytearray(whole)
    for change in changes:
        place = int.from_bytes(change[:2], "big") % len(body) if body else 0
        body[place : place + 1] = change[2:]
    return bytes(body), text * times if body == whole else None


def encode(name: str, text: bytes) -> bytes:
    match name:
        case "gzip" | "x-gzip":
            return gzip.compress(text, 1, mtime=0)
        case "deflate":
            return zlib.compress(text, 1)
        case "br":
            encoded: bytes = brotli.compress(text, quality=0)
            return encoded
        case "zstd":
            return zstd.compress(text, 1)
    return text


def decoded(name: str, chunks: Sequence[bytes], bytes_max: int) -> bytes | None:
    """What comes out, or None when it is Undecodable."""
    decoder = decoder_for(name, decoded_bytes_max=bytes_max)
    assert decoder is not None
    out = bytearray()
    try:
        for chunk in chunks:
            for piece in decoder.feed(chunk):
                assert name == "identity" or len(piece) <= 2 * PIECE_BYTES
                out += piece
                assert len(out) <= bytes_max
    except Undecodable:
        return None
    return bytes(out)
