"""The words of a request, as places among the weights that were learnt for words.

A vector blurs what the form of a question tells: "when was the chimney swept" and "when was the first chimney swept"
are neighbours. So the words and the pairs of neighbouring words count beside it, each by a weight of its own at the
place that its spelling hashes to. There is no list of words.
"""

from __future__ import annotations

from itertools import pairwise
from zlib import crc32

from semmem.text.words import is_unspaced, pairs, words

BUCKETS = 1 << 14
"""Places for the weights. A feature's place is the CRC-32 of its spelling: the same everywhere, and fast."""
CHARS_MAX = 300
"""Of a longer text so much is read at its beginning and at its end, where people say what they want."""


def places(text: str) -> list[int]:
    """Each once, in order; linear in what is read. Of scripts without spaces, two signs are a word."""
    read = text if len(text) <= 2 * CHARS_MAX else f"{text[:CHARS_MAX]} {text[-CHARS_MAX:]}"
    said = [part for word in words(read) for part in (pairs(word) or [word] if is_unspaced(word) else [word])]
    spelt = {*said, *map(" ".join, pairwise(["^", *said]))}
    return sorted({crc32(feature.encode("utf-8", "surrogatepass")) % BUCKETS for feature in spelt})
