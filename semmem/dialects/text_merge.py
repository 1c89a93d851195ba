"""Put a text into a content that is there already, for servers that take no message more than they are used to.

A content is a string, a list of parts, or nothing. Its kind stays what it was: templates that want a string get one.
The bytes that stand there stay, a null apart.
"""

from __future__ import annotations

import msgspec

from semmem.dialects.json_splice import (
    Edit,
    JsonObject,
    Member,
    insert_element,
    insert_member,
    read_elements,
    read_object,
)

GAP = rb"\n\n"
"""Between what stood there and what is added, as it is spelled inside a JSON string."""


def string_token(text: str) -> bytes:
    """The text as a JSON string. Half an emoji becomes a question mark: it must not cost the rest."""
    return msgspec.json.encode(text.encode("utf-8", "replace").decode())


def merge_behind(content: Member, text: str, *, part: str) -> list[Edit]:
    """Edits that put the text at the end of a content; ``part`` is the type of a text part in this API."""
    if content.value.startswith(b"["):
        return [_insert_part(content, len(read_elements(content)), text, part)]
    if not content.value.startswith(b'"'):
        return [Edit(content.value_start, content.end, string_token(text))]
    gap, at = b"" if content.value == b'""' else GAP, content.end - 1
    return [Edit(at, at, gap + string_token(text)[1:-1])]


def merge_before(content: Member, text: str, *, part: str, index: int = 0) -> list[Edit]:
    """Edits that put the text at the beginning of a content: of a list, before the part at ``index``."""
    if content.value.startswith(b"["):
        return [_insert_part(content, index, text, part)]
    if not content.value.startswith(b'"'):
        return [Edit(content.value_start, content.end, string_token(text))]
    gap, at = b"" if content.value == b'""' else GAP, content.value_start + 1
    return [Edit(at, at, string_token(text)[1:-1] + gap)]


def merge_into_message(
    source: JsonObject, array: Member, index: int, text: str, *, part: str, behind: bool, at: int = 0
) -> list[Edit]:
    """Edits that put the text at the end (``behind``) or the beginning of the content of the message at ``index``.

    Raises Malformed when the message names a member twice: no reader would read it alike.
    """
    start, end = read_elements(array)[index]
    message = read_object(source.body[start:end])
    content = message.members.get("content")
    if content is None:
        edits = [insert_member(message, "content", string_token(text))]
    elif behind:
        edits = merge_behind(content, text, part=part)
    else:
        edits = merge_before(content, text, part=part, index=at)
    return [Edit(start + edit.start, start + edit.end, edit.new) for edit in edits]


def _insert_part(content: Member, index: int, text: str, part: str) -> Edit:
    parts = read_elements(content)
    token = string_token(text)
    if parts and content.value[parts[0][0] - content.value_start :][:1] == b'"':
        return insert_element(content, index, token)  # a list of plain strings
    return insert_element(content, index, b'{"type":' + string_token(part) + b',"text":' + token + b"}")
