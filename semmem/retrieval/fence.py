"""The keyed mark on a block: what tells semmem's own block from text that merely looks like one.

The mark is an HMAC over the user and every line inside the fence. So a block with another line, a block of somebody
else and a block that somebody made up are text like any other: they neither switch memory off nor pass for it. A copy
of a user's own block, byte for byte, is a block of that user; it counts only where semmem puts one, which is neither a
tool's result nor anything the model said.

Nothing else goes into a mark: the same memories give the same bytes on every replica that shares the key, and a
provider's prompt cache survives.
"""

import hashlib
import hmac
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from semmem.memory import Message, Role
from semmem.retrieval.context import CLOSING, MARK_CHARS, OPENING

OPENINGS_MAX = 1000
"""Most openings in the instructions of one request that are looked at."""
BLOCKS_MAX = 32
"""Most blocks in them that are verified: who puts more there made them himself, and gets a second one at worst."""

# Nothing inside a block has an angle bracket, so a search for its end is over at the next one.
_OPENING = re.compile(re.escape(OPENING))
_BLOCK = re.compile(
    rf"(?<![^\n]){re.escape(OPENING)} ([0-9a-f]{{{MARK_CHARS}}})>\n([^<>]*+)(?<=\n){re.escape(CLOSING)}(?![^\n])"
)


class Fence:
    """Marks blocks with ``key`` and recognises those that were marked with it or with one of the ``former`` keys. Keys
    are secret bytes of any length; how many are enough is for whoever makes them."""

    def __init__(self, key: bytes, *former: bytes) -> None:
        self._keys = (key, *former)

    def mark(self, user: str, inside: str) -> str:
        """The mark, MARK_CHARS hex digits, of this user's block with these lines inside, joined by line ends."""
        return _mark(self._keys[0], user, inside)

    def derived(self, purpose: bytes) -> bytes:
        """A key for something else, 32 bytes, the same on every replica that shares the fence's."""
        return hmac.new(self._keys[0], purpose, hashlib.sha256).digest()

    def stands_in(self, messages: Sequence[Message], user: str) -> bool:
        """Whether a block of this user's stands where semmem puts one: anywhere in instructions, or at the beginning
        of a user message. Tools' results and the model's own words never count.
        """
        if not any(OPENING in message.text for message in messages):
            return False
        if any(self._verified(found, user) for found in islice(_in_instructions(messages), BLOCKS_MAX)):
            return True
        said = (message.text for message in reversed(messages) if message.role is Role.USER)
        beginnings = (found for text in said if (found := _BLOCK.match(text)) is not None)
        return any(self._verified(found, user) for found in islice(beginnings, BLOCKS_MAX))

    def _verified(self, found: re.Match[str], user: str) -> bool:
        mark, inside = found[1], found[2][:-1]
        return any(hmac.compare_digest(mark, _mark(key, user, inside)) for key in self._keys)


def _in_instructions(messages: Sequence[Message]) -> Iterator[re.Match[str]]:
    instructing = (message.text for message in messages if message.role is Role.SYSTEM)
    opened = chain.from_iterable(map(_OPENING.finditer, instructing))
    found = (_BLOCK.match(opening.string, opening.start()) for opening in islice(opened, OPENINGS_MAX))
    return (block for block in found if block is not None)


def _mark(key: bytes, user: str, inside: str) -> str:
    """The user's length goes first, so that no other pair of user and lines is the same bytes."""
    name = user.encode("utf-8", "surrogatepass")
    state = hmac.new(key, len(name).to_bytes(8, "big") + name, hashlib.sha256)
    state.update(inside.encode("utf-8", "surrogatepass"))
    return state.hexdigest()[:MARK_CHARS]
