"""Memories as lines: every field there and back, and hostile lines refused with a reason."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.backup import lines
from semmem.memory import MEMORY_TYPES, Memory, MemoryStatus, MemoryType, Source
from semmem.ports.memory_records import Uses

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
named = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
times = st.floats(-1e9, 3e9)
memories = st.builds(
    Memory,
    id=named,
    version=st.integers(1, 10**6),
    type=st.sampled_from(MEMORY_TYPES),
    content=text,
    user=named,
    project=st.none() | text,
    session=st.none() | text,
    source=st.builds(Source, role=text, session=text, turn=text, time=times),
    key=st.none() | text,
    metadata=st.dictionaries(text, st.none() | st.booleans() | text | st.lists(st.integers(-100, 100))),
    importance=st.floats(0, 1),
    created_at=times,
    updated_at=times,
    occurred_at=st.none() | times,
    expires_at=st.none() | times,
    status=st.sampled_from(MemoryStatus),
)


@given(memories, st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=8).filter(any))
def test_a_memory_is_the_same_when_it_is_back_and_its_vector_to_the_bit(memory: Memory, vector: list[float]) -> None:
    told = replace(memory, embedding=np.array(vector, np.float32))
    line = lines.read_line(lines.memory_line(told, Uses(3, 7.5)))
    assert isinstance(line, lines.MemoryLine)
    found = lines.memory_of(line)
    assert found == told
    assert found.embedding is not None
    assert told.embedding is not None
    assert found.embedding.tobytes() == told.embedding.tobytes()
    assert line.uses == (3, 7.5)


WHOLE = lines.memory_line(
    Memory("m", 1, MemoryType.SEMANTIC, "likes tea", "ada", embedding=np.array([1, 0], np.float32))
)


@pytest.mark.parametrize("by", [1, 2, 32])
def test_no_changed_byte_goes_unnoticed(by: int) -> None:
    for place in range(len(WHOLE) - 1):
        with pytest.raises(lines.Unreadable):
            memory_in(WHOLE[:place] + bytes([WHOLE[place] ^ by]) + WHOLE[place + 1 :])


def line(**changed: object) -> bytes:
    fields = {"id": "m", "version": 1, "type": "semantic", "content": "likes tea", "user": "ada"} | changed
    return json.dumps({"kind": "memory", "memory": fields}).encode()


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (b"", "truncated"),
        (b"null", "Expected"),
        (b"[]", "Expected"),
        (b"{}", "missing required field `kind`"),
        (b'{"kind":"memory"}', "missing required field `memory`"),
        (b'{"kind":"other"}', "Invalid value"),
        (b"\xff\xfe", "not a line"),
        (b"[" * 100_000, "not a line"),
        (line(version=0), "version counts from 1"),
        (line(version="1"), "got `str` - at `$.memory.version`"),
        (line(version=True), "got `bool` - at `$.memory.version`"),
        (line(type="secret"), "at `$.memory.type`"),
        (line(user=""), "must not be empty"),
        (line(id="."), "id is a step"),
        (line(id=".."), "id is a step"),
        (line(id="psg_1"), "id and type disagree"),
        (line(type="passage"), "id and type disagree"),
        (line(user="x" * 2000), "user has 2000 bytes"),
        (line(content="x" * 9000), "content has 9000 bytes"),
        (line(more=1), "unknown field `more`"),
        (line(created_at=1e300), "created_at is not a time"),
        (line(embedding="&&&"), "not base64"),
        (line(embedding="AAAA"), "not a row of 32-bit floats"),
        (line(embedding="AAAAAA=="), "or zero"),
        (line(embedding="AADAfw=="), "not a finite vector"),
        (line(metadata={"a": {"b": [[[[{}]]]] * 2}} | {"x": "y" * 70_000}), "metadata, source and key has"),
        (line(content="x" * 600_000), "bytes, at most"),
    ],
)
def test_a_hostile_line_is_refused_with_a_reason(told: bytes, reason: str) -> None:
    with pytest.raises(lines.Unreadable, match=re.escape(reason)):
        memory_in(told)


def memory_in(told: bytes) -> Memory:
    read = lines.read_line(told)
    assert isinstance(read, lines.MemoryLine)
    return lines.memory_of(read)


def test_a_line_that_a_person_wrote_needs_no_digest() -> None:
    read = lines.read_line(line())
    assert isinstance(read, lines.MemoryLine)
    assert lines.memory_of(read).content == "likes tea"
