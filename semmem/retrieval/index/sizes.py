"""What a user's memories take in this process, in bytes: counted where that is cheap, measured where it is not.

The constants are of CPython 3.11 and numpy 2 on a 64-bit machine, where tests compare every sum with tracemalloc."""

from collections.abc import Mapping
from sys import getsizeof
from typing import Any

from semmem.memory import Memory

INTEGER_BYTES, REAL_BYTES = 32, 24
"""Of a number as a Python object."""
MEMORY_BYTES = 590
"""Of a memory without its texts and its vector: the memory, its source, its times, its row of the vectors as an array
of its own, and its place in a dictionary."""
TEXT_BYTES = 49
"""Of a text beside its characters."""
INDEX_BYTES = 4_500
"""Of an index of nothing: some twenty arrays, and the objects that hold them."""
ROW_BYTES = 130
"""Of a memory in an index beside its words and its vector: a number or two in each of the arrays."""
FOUND_BYTES, HIT_BYTES = 900, 170
"""Of what was found for a question and is kept for when it is asked again, and of each hit of it."""
FOUND_MAX = 32
"""Of so many questions of a user that is kept."""
SHOWN_MAX = 8
"""Of what was found for a question so many are looked at closely, more or less: five are shown."""
NOTE_BYTES, NOTE_TEXT_SHARE = 2_000, 28
"""Of what is remembered of a memory that was shown once (its words in several sets, its line), and how many times its
text that takes beside."""
TYPICAL_CHARS, TYPICAL_TERMS = 60, 5
"""Of a memory, for advice before there is any."""


def of_memory(memory: Memory) -> int:
    """Without its vector, which the index has."""
    source = memory.source
    names = (memory.id, memory.session, memory.key, source.session, source.turn, source.request_id)
    return MEMORY_BYTES + getsizeof(memory.content) + sum(map(_of_name, names)) + _of_tree(memory.metadata)


def typical(memories: int, dimension: int) -> int:
    """Of a user with so many memories of usual length, with vectors of this length."""
    texts = TYPICAL_CHARS + 5 * (TEXT_BYTES + 32)
    return INDEX_BYTES + memories * (MEMORY_BYTES + ROW_BYTES + texts + 4 * dimension + 30 * TYPICAL_TERMS)


def advice(bytes_max: int, dimension: int) -> str:
    """How many users have room, for whoever sets the bound."""
    counts = [(count, typical(count, dimension)) for count in (10, 100, 1000)]
    users = ", ".join(
        f"{bytes_max // each:,} users of {count:,} memories ({each / 1e3:,.0f} kB)" for count, each in counts
    )
    return f"{bytes_max / 1e6:,.0f} MB of memories in process: room for {users}, searches not counted"


def _of_name(name: str | None) -> int:
    return TEXT_BYTES + len(name) if name else 0


def _of_tree(value: Any) -> int:
    """Metadata are made of what JSON has."""
    if isinstance(value, Mapping):
        return getsizeof(value) + sum(_of_name(name) + _of_tree(inner) for name, inner in value.items())
    if isinstance(value, list | tuple):
        return getsizeof(value) + sum(map(_of_tree, value))
    return 0 if value is None or isinstance(value, bool) else getsizeof(value)
