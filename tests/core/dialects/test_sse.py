"""Server-sent events, split anywhere."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.dialects.answer import TextTail
from semmem.dialects.sse import EventStream

Events = list[tuple[str, str]]

LINES = st.sampled_from(
    ["data: one", "data:two", "data:  three", "data", "data:", ": comment", "", "", "event: ping", "event:", "id: 7",
     "retry: 10", "dat: x", "data: 東é😀", "data:\ufeff", "Data: no", "data : no", "data: a: b"]
)  # fmt: skip
ENDS = st.sampled_from(["\n", "\r", "\r\n"])


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    text = draw(st.sampled_from(["", "\ufeff"]))
    text += "".join(line + end for line, end in draw(st.lists(st.tuples(LINES, ENDS), max_size=12)))
    return (text + draw(LINES)).encode()


def read(chunks: list[bytes], event_bytes_max: int = 1_000_000) -> tuple[Events, bool]:
    stream = EventStream(event_bytes_max=event_bytes_max)
    events = [event for chunk in chunks for event in stream.feed(chunk)]
    return events + stream.end(), stream.oversize


def by_the_standard(stream: bytes) -> Events:
    """The standard's steps, one by one, on the whole text; the last event is delivered without its blank line."""
    text = stream.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    events: Events = []
    name, data = "", ""
    for line in [*text.split("\n"), ""]:
        if line == "":
            if data:
                events.append((name or "message", data[:-1]))
            name, data = "", ""
            continue
        field, colon, value = line.partition(":")
        value = value[1:] if value[:1] == " " else value
        if colon and not field:
            continue
        if field == "data":
            data += value + "\n"
        elif field == "event":
            name = value
    return events


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


@given(streams(), st.lists(st.integers(0, 1_000), max_size=8))
def test_any_split_gives_the_events_of_the_standard(stream: bytes, places: list[int]) -> None:
    assert read(cut(stream, places)) == (by_the_standard(stream), False)


@given(streams() | st.binary(max_size=80), st.integers(0, 40), st.lists(st.integers(0, 1_000), max_size=8))
def test_the_limit_drops_the_same_events_for_every_split(stream: bytes, limit: int, places: list[int]) -> None:
    whole = read([stream], limit)
    assert read(cut(stream, places), limit) == whole
    assert read([stream[at : at + 1] for at in range(len(stream))], limit) == whole


@given(streams(), st.integers(0, 40))
def test_the_limit_only_takes_events_away_and_says_so(stream: bytes, limit: int) -> None:
    everything = by_the_standard(stream)
    kept, oversize = read([stream], limit)
    rest = iter(everything)
    assert all(event in rest for event in kept)
    assert oversize or kept == everything


def test_an_event_comes_as_soon_as_its_blank_line_does() -> None:
    stream = EventStream(event_bytes_max=100)
    assert stream.feed(b"data: a\r") == []
    assert stream.feed(b"\n") == []
    assert stream.feed(b"\r") == [("message", "a")]
    assert stream.feed(b"") == []
    assert stream.feed(b"\ndata: b\n\n") == [("message", "b")]
    assert stream.end() == []


def test_an_empty_chunk_does_not_part_cr_from_lf() -> None:
    assert read([b"data: a\r", b"", b"\ndata: b\n\n"])[0] == [("message", "a\nb")]


def test_lines_of_data_are_joined_and_a_name_lasts_for_one_event() -> None:
    events, _ = read([b"event: error\ndata: a\ndata\ndata:b\n\ndata: c\n\n"])
    assert events == [("error", "a\n\nb"), ("message", "c")]


def test_a_name_without_data_is_no_event() -> None:
    assert read([b"event: ping\n\ndata: a\n\n"])[0] == [("message", "a")]


def test_only_the_first_byte_order_mark_is_one() -> None:
    assert read([b"\xef", b"\xbb\xbf", b"data: a\n\n\xef\xbb\xbfdata: b\n\n"])[0] == [("message", "a")]


def test_bytes_that_are_not_utf8_become_replacement_characters() -> None:
    assert read([b"data: a\xff\n\n"])[0] == [("message", "a\ufffd")]


def test_other_control_characters_end_no_line() -> None:
    assert read(["data: a\x0b\x0c\x1c\x85\u2028b\n\n".encode()])[0] == [("message", "a\x0b\x0c\x1c\x85\u2028b")]


def test_after_an_event_that_is_too_large_the_next_one_is_read() -> None:
    assert read([b"data: " + b"x" * 50 + b"\n\ndata: a\n\n"], 20) == ([("message", "a")], True)


def test_of_an_event_that_is_too_large_no_line_is_left() -> None:
    assert read([b"data: " + b"x" * 50 + b"\ndata: b\n\n"], 20) == ([], True)
    assert read([b"data: a\ndata: " + b"x" * 50 + b"\ndata: b\n\n"], 20) == ([], True)


def test_an_event_of_exactly_the_limit_is_kept() -> None:
    assert read([b"data: 1234\n\n"], 10) == ([("message", "1234")], False)
    assert read([b"data: 12345\n\n"], 10) == ([], True)


def test_many_empty_lines_of_data_reach_the_limit() -> None:
    assert read([b"data\n" * 1_000], 100) == ([], True)


def test_comments_that_never_end_an_event_reach_no_limit() -> None:
    assert read([b": keep-alive\n" * 1_000 + b"data: a\n\n"], 100) == ([("message", "a")], False)


@given(st.lists(st.text(max_size=6), max_size=12), st.integers(0, 20))
def test_the_tail_is_the_end_of_the_text_cut_between_characters(pieces: list[str], bytes_max: int) -> None:
    tail = TextTail(bytes_max=bytes_max)
    for piece in pieces:
        tail.append(piece)
    text, kept = "".join(pieces), tail.text()
    assert text.endswith(kept)
    assert len(kept.encode()) <= bytes_max
    one_more = text[-len(kept) - 1 :]
    assert kept == text or len(one_more.encode()) > bytes_max


def test_the_tail_survives_many_pieces() -> None:
    tail = TextTail(bytes_max=10)
    for _ in range(100):
        tail.append("abc")
    assert tail.text() == ("abc" * 4)[-10:]


@pytest.mark.parametrize("piece", ["\ud83d", "a\ude00b"])
def test_half_of_a_surrogate_pair_does_no_harm_to_the_tail(piece: str) -> None:
    tail = TextTail(bytes_max=10)
    tail.append(piece)
    assert tail.text() == piece.encode("utf-8", "replace").decode()
