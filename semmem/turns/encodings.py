"""Content encodings of answers, decoded as they pass: bytes in, bytes out, never more at once than asked for.

A few kilobytes may unpack to gigabytes. So every decoder gives its output in pieces, and the caller counts them."""

import sys
import zlib
from collections.abc import Iterator
from typing import Protocol

import brotli

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

PIECE_BYTES = 64 * 1024
"""About how much one piece of output has at most."""
SLICE_BYTES = 8 * 1024
"""How much input is decoded at once. What is left behind a frame is copied, so that many frames in a row (an empty one
has 8 bytes) would cost the square of what comes at once."""


class Undecodable(ValueError):
    """The bytes are not what the header promised, or unpack to more than is allowed."""


class Decoder(Protocol):
    """One body. Raises Undecodable; after that it must not be used."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The pieces that this much more input makes known."""


def decoder_for(content_encoding: str, *, decoded_bytes_max: int) -> Decoder | None:
    """A decoder for a Content-Encoding header, or None for one that is not known (several at once are not)."""
    match content_encoding.strip().lower():
        case "" | "identity":
            return _Bounded(_Identity(), decoded_bytes_max)
        case "gzip" | "x-gzip":
            return _Bounded(_Zlib(wbits=16 + zlib.MAX_WBITS), decoded_bytes_max)
        case "deflate":
            return _Bounded(_Zlib(wbits=zlib.MAX_WBITS), decoded_bytes_max)
        case "br":
            return _Bounded(_Brotli(), decoded_bytes_max)
        case "zstd":
            return _Bounded(_Zstd(), decoded_bytes_max)
        case _:
            return None


class _Bounded:
    """Stops a body that unpacks to too much, and says of every library's error the same."""

    def __init__(self, decoder: Decoder, bytes_max: int) -> None:
        self._decoder = decoder
        self._room = bytes_max

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            for start in range(0, len(data), SLICE_BYTES):
                for piece in self._decoder.feed(data[start : start + SLICE_BYTES]):
                    self._room -= len(piece)
                    if self._room < 0:
                        raise Undecodable("unpacks to more than is allowed")
                    yield piece
        except (zlib.error, brotli.error, zstd.ZstdError, EOFError) as error:
            raise Undecodable(type(error).__name__) from None


class _Identity:
    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data


class _Zlib:
    """gzip (also several members in a row) and deflate."""

    def __init__(self, wbits: int) -> None:
        self._wbits = wbits
        self._inner = zlib.decompressobj(wbits)

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._inner.eof:
                self._inner = zlib.decompressobj(self._wbits)
            yield self._inner.decompress(data, PIECE_BYTES)
            data = self._inner.unused_data if self._inner.eof else self._inner.unconsumed_tail


class _Brotli:
    def __init__(self) -> None:
        self._inner = brotli.Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        piece = self._inner.process(data, output_buffer_limit=PIECE_BYTES)
        while piece:  # can_accept_more_data() says yes while output still waits
            yield piece
            piece = self._inner.process(b"", output_buffer_limit=PIECE_BYTES)


class _Zstd:
    """One or several frames in a row."""

    def __init__(self) -> None:
        self._inner = zstd.ZstdDecompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data or not (self._inner.needs_input or self._inner.eof):
            if self._inner.eof:
                self._inner = zstd.ZstdDecompressor()
            yield self._inner.decompress(data, PIECE_BYTES)
            data = self._inner.unused_data if self._inner.eof else b""
