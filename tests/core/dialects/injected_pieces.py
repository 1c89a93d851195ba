"""Take what semmem put into a body out again, in each of the ways it goes in, without looking at how it did."""

from __future__ import annotations

import re

BLOCK = re.compile(rb"<semmem-memory [0-9a-f]{16}>(?:[^<\"\\]|\\.)*+</semmem-memory>")
"""A block as it is spelled inside a JSON string."""

_MESSAGES = tuple(b'{"role":"%s","content":' % role for role in (b"system", b"developer", b"user"))
_PARTS = (b'{"type":"text","text":', b'{"type":"input_text","text":')
_MEMBERS = (b'"system":', b'"instructions":', b'"content":')


def bodies_before(body: bytes, start: int, end: int) -> set[bytes]:
    """The bodies that this may have been before a text was put into it that now stands, escaped, in these bytes: as
    part of a string, with an empty line or alone; as a message, a part or a member, with the comma on either side; in
    place of a null.
    """
    spans = {(start, end), (start - 4, end), (start, end + 4)}
    for before in (*_MESSAGES, *_PARTS, *_MEMBERS):
        first, last = start - 1 - len(before), end + 1 + before.startswith(b"{")
        if body[first : start - 1] == before:
            spans |= {(first, last), (first - 1, last), (first, last + 1)}
    return {body[:first] + body[last:] for first, last in spans} | {body[: start - 1] + b"null" + body[end + 1 :]}
