"""Cutting and inserting in JSON without touching another byte."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.dialects import Malformed
from semmem.dialects.json_splice import (
    Edit,
    cut_members,
    decode_repaired,
    insert_element,
    insert_member,
    object_at,
    read_elements,
    read_object,
    splice,
)

SPACE = st.text(alphabet=" \t\n\r", max_size=2)
NUMBERS = st.sampled_from(["2.50", "-0", "1E+2", "1e999", "123456789012345678901234567890", "0.10"])
WORDS = st.sampled_from(["true", "false", "null"])
ESCAPED = st.sampled_from(
    [r"\u00e9", r"\ud83c\udfe8", r"\/", r"\"", r"\\", r"\n", "é", "東", "{", "}", "[", "]", ",", ":"]
)
STRINGS = st.lists(ESCAPED | st.sampled_from("abc "), max_size=4).map(lambda parts: f'"{"".join(parts)}"')


def spaced(separator: str, items: st.SearchStrategy[str], brackets: str) -> st.SearchStrategy[str]:
    """JSON lists of items with white space in every place that allows it."""

    def write(drawn: list[tuple[str, str, str]], inside: str) -> str:
        body = separator.join(f"{before}{item}{after}" for before, item, after in drawn)
        return f"{brackets[0]}{body or inside}{brackets[1]}"

    return st.builds(write, st.lists(st.tuples(SPACE, items, SPACE), max_size=4), SPACE)


def containers(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    members = st.builds(lambda name, gap, value: f"{name}{gap}:{gap}{value}", STRINGS, SPACE, values)
    return spaced(",", values, "[]") | spaced(",", members, "{}")


VALUES = st.recursive(NUMBERS | WORDS | STRINGS, containers, max_leaves=8)
NAMES = st.lists(STRINGS, max_size=6, unique_by=json.loads)


@st.composite
def objects(draw: st.DrawFn) -> tuple[str, list[tuple[str, str]]]:
    """The text of an object, and its members as (decoded name, spelling of the value)."""
    members, text = [], draw(SPACE) + "{"
    for index, name in enumerate(draw(NAMES)):
        value = draw(VALUES)
        members.append((json.loads(name), value))
        text += "," if index else ""
        text += draw(SPACE) + name + draw(SPACE) + ":" + draw(SPACE) + value + draw(SPACE)
    return text + draw(SPACE) + "}" + draw(SPACE), members


def spelled(body: bytes) -> list[tuple[str, bytes]]:
    """An object's members in order, each value as it is spelled, read by another route than the code under test."""
    return [(name, bytes(raw)) for name, raw in msgspec.json.decode(body, type=dict[str, msgspec.Raw]).items()]


@given(objects())
def test_every_member_is_found_where_it_stands(drawn: tuple[str, list[tuple[str, str]]]) -> None:
    text, members = drawn
    source = read_object(text.encode())
    assert [(name, member.value.decode()) for name, member in source.members.items()] == members
    for name, member in source.members.items():
        assert source.body[member.value_start : member.end] == member.value
        written_name = source.body[member.start : member.value_start].rstrip(b" \t\n\r:")
        assert json.loads(written_name) == name


@given(objects(), st.data())
def test_cutting_leaves_the_other_members_as_they_are_spelled(
    drawn: tuple[str, list[tuple[str, str]]], data: st.DataObject
) -> None:
    text, members = drawn
    names = [name for name, _ in members]
    gone = data.draw(st.sets(st.sampled_from(names))) if names else set()
    source = read_object(text.encode())
    left = splice(source.body, cut_members(source, gone))
    assert spelled(left) == [(name, value.encode()) for name, value in members if name not in gone]


@given(objects(), st.data())
def test_a_member_is_added_at_the_end_also_when_others_go(
    drawn: tuple[str, list[tuple[str, str]]], data: st.DataObject
) -> None:
    text, members = drawn
    names = [name for name, _ in members]
    gone = data.draw(st.sets(st.sampled_from(names))) if names else set()
    source = read_object(text.encode())
    edits = [*cut_members(source, gone), insert_member(source, "naïve\n", b"[2.50]", cutting=gone)]
    kept = [(name, value.encode()) for name, value in members if name not in gone]
    assert spelled(splice(source.body, edits)) == [*kept, ("naïve\n", b"[2.50]")]


@given(st.lists(objects(), min_size=1, max_size=3), st.data())
def test_an_object_in_an_array_is_edited_in_its_place_in_the_body(
    drawn: list[tuple[str, list[tuple[str, str]]]], data: st.DataObject
) -> None:
    texts = [text.encode() for text, _ in drawn]
    source = read_object(b'{"before":{}, "a":[%s] }' % b",".join(texts))
    at = data.draw(st.integers(0, len(drawn) - 1))
    element = object_at(source, read_elements(source.members["a"])[at])
    assert [(name, member.value.decode()) for name, member in element.members.items()] == drawn[at][1]
    for member in element.members.values():
        assert source.body[member.value_start : member.end] == member.value
    edited = read_object(splice(source.body, [insert_member(element, "naïve\n", b"[2.50]")]))
    values = [edited.body[start:end] for start, end in read_elements(edited.members["a"])]
    assert spelled(values[at]) == [*spelled(texts[at]), ("naïve\n", b"[2.50]")]
    assert values[:at] + values[at + 1 :] == [text.strip() for text in texts[:at] + texts[at + 1 :]]


@given(spaced(",", VALUES, "[]"), st.data())
def test_an_element_is_inserted_at_its_index_and_nothing_else_changes(array: str, data: st.DataObject) -> None:
    source = read_object(b'{"a" : %s , "b":1}' % array.encode())
    elements = read_elements(source.members["a"])
    values = [source.body[start:end] for start, end in elements]
    assert values == [bytes(raw) for raw in msgspec.json.decode(array, type=list[msgspec.Raw])]
    index = data.draw(st.integers(0, len(elements)))
    edit = insert_element(source.members["a"], index, b'"new"')
    changed = splice(source.body, [edit])
    assert [source.body[start:end] for start, end in elements] == values
    again = read_object(changed).members["a"]
    assert [changed[start:end] for start, end in read_elements(again)] == [*values[:index], b'"new"', *values[index:]]
    assert changed[: edit.start] + changed[edit.start + len(edit.new) :] == source.body


@pytest.mark.parametrize("index", [-1, 3])
def test_an_index_outside_the_array_is_an_error(index: int) -> None:
    with pytest.raises(IndexError):
        insert_element(read_object(b'{"a":[1,2]}').members["a"], index, b"0")


@pytest.mark.parametrize(
    ("body", "names", "left"),
    [
        (b'{"a":1}', {"a"}, b"{}"),
        (b'{ "a":1 }', {"a"}, b"{  }"),
        (b'{"a":1,"b":2}', {"a"}, b'{"b":2}'),
        (b'{"a":1,"b":2}', {"b"}, b'{"a":1}'),
        (b'{"a":1 , "b":2}', {"a", "b"}, b"{}"),
        (b'{"a":1, "b":2 ,"c":3}', {"b"}, b'{"a":1 ,"c":3}'),
        (b'{"a":1, "b":2 ,"c":3 ,"d":4}', {"a", "b"}, b'{"c":3 ,"d":4}'),
        (b'{"a":1, "b":2 ,"c":3 ,"d":4}', {"b", "c"}, b'{"a":1 ,"d":4}'),
        (b'{"a":1,"b":2,"c":3}', {"a", "c"}, b'{"b":2}'),
        (b'{"\\u0061":1,"b":"a"}', {"a"}, b'{"b":"a"}'),
    ],
)
def test_a_cut_member_takes_one_comma_with_it(body: bytes, names: set[str], left: bytes) -> None:
    assert splice(body, cut_members(read_object(body), names)) == left


def test_nothing_to_cut_is_no_edit() -> None:
    assert cut_members(read_object(b'{"a":1}'), {"b"}) == []


def test_a_member_that_is_there_is_not_added_again() -> None:
    with pytest.raises(ValueError, match="has a member 'a'"):
        insert_member(read_object(b'{"a":1}'), "a", b"2")


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        splice(b"0123456789", [Edit(4, 8, b""), Edit(2, 5, b"")])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"[]",
        b'"a"',
        b"null",
        b"17",
        b"{",
        b'{"a":1',
        b'{"a":1,}',
        b'{"a":1}x',
        b'{"a":1}{"b":2}',
        b'{"a":1}\x00',
        b"\xef\xbb\xbf{}",
        b'\xff\xfe{\x00"\x00',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":01}',
        b"{'a':1}",
        b'{"a":"\x01"}',
        b'{"a":"\xff"}',
        b'{"\xff":1}',
        b'{"a":"\xed\xa0\x80"}',  # a surrogate in UTF-8
        b'{"a":"\xc0\xaf"}',  # an overlong form
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":' * 100_000,
    ],
)
def test_what_is_no_json_object_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed, match=r"^body: "):
        read_object(body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1,"a":1}',
        b'{"a":1,"a":2}',
        b'{"a":12,"a":1}',
        b'{"a":1,"a":12}',
        b'{"a":1,"b":2,"a":1}',
        b'{"a":1,"\\u0061":1}',
        b'{"a":{},"b":[],"b":[],"a":{}}',
        b'{"a":"x","a":"\\",\\"a\\":\\"x"}',
        b'{"\\ud800":1,"\\udfff":1}',
        b'{"c":1,"a":22,"c":{"x":0,"kkkkkkk":0}}',  # lengths alone would lead the walk to the closing bracket
    ],
)
def test_a_member_named_twice_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed, match="named twice"):
        read_object(body)


@given(objects(), st.data())
def test_repeating_any_member_is_malformed(drawn: tuple[str, list[tuple[str, str]]], data: st.DataObject) -> None:
    text, members = drawn
    name = data.draw(st.sampled_from([name for name, _ in members] or ["a"]))
    value = data.draw(st.sampled_from([value for _, value in members] or ["1"]))
    head, _, tail = text.rpartition("}")
    repeated = f"{json.dumps(name)}:{value}"
    twice = f"{head}{',' if members else repeated + ','}{repeated}}}{tail}"
    with pytest.raises(Malformed, match="named twice"):
        read_object(twice.encode())


@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,\\u0dD8 a1', max_size=40).map(str.encode))
def test_any_bytes_are_an_object_or_malformed(body: bytes) -> None:
    try:
        source = read_object(body)
    except Malformed:
        return
    assert list(json.loads(body)) == list(source.members)


@pytest.mark.parametrize(
    ("text", "understood"),
    [
        (rb'"\ud83d"', "\ufffd"),
        (rb'"a\ud83d b\ude00"', "a\ufffd b\ufffd"),
        (rb'"\ud83d\ude00\ud83d"', "😀\ufffd"),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (rb'"\ud83d\u0041"', "\ufffdA"),
        (rb'"\\ud83d\ud83d"', r"\ud83d" + "\ufffd"),
        (rb'"\\\ud83d"', "\\\ufffd"),
        (rb'"\ud83d\\ude00"', "\ufffd" + r"\ude00"),
    ],
)
def test_half_of_a_surrogate_pair_reads_as_a_replacement_character(text: bytes, understood: str) -> None:
    decoder = msgspec.json.Decoder(str)
    value, repaired = decode_repaired(decoder, text)
    assert value == understood
    assert len(repaired) == len(text)


def test_half_of_a_surrogate_pair_stays_in_the_body() -> None:
    body = rb'{"a\ud83d":"\ud83d", "b":["\udfff"],"c":1}'
    source = read_object(body)
    assert list(source.members) == ["a\ufffd", "b", "c"]
    edits = [*cut_members(source, {"c"}), insert_element(source.members["b"], 1, b"2")]
    assert splice(body, edits) == rb'{"a\ud83d":"\ud83d", "b":["\udfff",2]}'


def test_a_value_is_never_taken_for_a_member() -> None:
    inner: dict[str, Any] = {"a": '"b":1,', "b": {"b": 1}}
    body = json.dumps({"x": inner, "b": '{"b":1}'}).encode()
    source = read_object(body)
    assert json.loads(splice(body, cut_members(source, {"b"}))) == {"x": inner}
