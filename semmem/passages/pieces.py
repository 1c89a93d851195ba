"""A turn as passages: pieces short enough to be found by one vector and to be shown as one line. Pure."""

import re
from collections.abc import Iterator

from semmem.memory import Memory, MemoryType, Source, Turn
from semmem.text.digest import stable_id
from semmem.text.quoting import quoted
from semmem.text.words import is_unspaced, words

PREFIX = "psg_"
"""Begins the id of every passage, and of no memory that semmem makes."""
PIECE_CHARS_MAX, PIECES_MAX = 500, 12
"""Of one message: an embedding model reads some 1,000 characters, and a line of a block holds 600."""
GIST_CHARS_MAX, QUESTION_CHARS_MAX = 300, 150
"""Of the first sentences of an answer, and of the question that it ends with."""
GIST = "gist"
"""In place of a piece's number in the id of an answer's gist."""
WORDS_MIN, UNSPACED_CHARS_MIN = 3, 4
"""What is shorter ("yes, do it") says nothing where it stands alone."""

_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_MARKS = re.compile(r"^[#>*\s-]+|[*_`]{1,3}|\|")
_FENCED = re.compile(r"```[^`]*+(?:```|\Z)")


def passage_id(turn_id: str, place: int | str) -> str:
    """The same for every try to keep one piece."""
    return stable_id(PREFIX, turn_id, str(place))


def ids_of(turn_id: str) -> list[str]:
    """Of all the passages that a turn may have been made into."""
    return [passage_id(turn_id, place) for place in (*range(PIECES_MAX), GIST)]


def is_passage(memory_id: str) -> bool:
    return memory_id.startswith(PREFIX)


def passages_of(turn: Turn, *, now: float, expires_at: float | None) -> Iterator[Memory]:
    """Of a turn with the user's own words alone, without vectors: what they said, then the gist of the answer."""
    for place, piece in enumerate(pieces(turn.user_text)):
        yield _passage(turn, place, quoted(piece), MemoryType.PASSAGE, now, expires_at)
    if turn.answer and (gist := gist_of(turn.answer)):
        yield _passage(turn, GIST, gist, MemoryType.GIST, now, expires_at)


def pieces(text: str) -> list[str]:
    """The text in its order, at most PIECES_MAX pieces of PIECE_CHARS_MAX characters, cut between sentences where it
    can be; without those that say nothing."""
    found = list[str]()
    for sentence in _sentences(text):
        joined = f"{found[-1]} {sentence}" if found else sentence
        if found and len(joined) <= PIECE_CHARS_MAX:
            found[-1] = joined
        else:
            found.append(sentence)
    return [piece for piece in found if _says_something(piece)][:PIECES_MAX]


def gist_of(answer: str) -> str:
    """The answer's first sentences and, where it ends with a question, that: the user's next words are the answer to
    it. Without code and marks of Markdown; empty where they say nothing."""
    begin, end = answer[: 8 * GIST_CHARS_MAX], answer[-8 * GIST_CHARS_MAX :]
    found = _shortened(next(iter(pieces(_plain(begin))), ""))
    question = next(reversed([*_sentences(_plain(end))]), "")
    if not found or question in found or not question.endswith(("?", "？")) or len(question) > QUESTION_CHARS_MAX:
        return found
    return f"{found} … {question}"


def _shortened(found: str) -> str:
    if len(found) <= GIST_CHARS_MAX:
        return found
    end = max(found.rfind(mark, 0, GIST_CHARS_MAX) for mark in (". ", "! ", "? ", "。"))
    return found[: end + 1] if end > 0 else f"{found[: GIST_CHARS_MAX - 1].rstrip()}…"


def _plain(markdown: str) -> str:
    lines = _FENCED.sub(" ", markdown).splitlines()
    return "\n".join(_MARKS.sub("", line) for line in lines)


def _sentences(text: str) -> Iterator[str]:
    for sentence in _END.split(text):
        words_left = " ".join(sentence.split())
        while words_left:
            cut = _cut(words_left)
            yield words_left[:cut].strip()
            words_left = words_left[cut:].strip()


def _cut(sentence: str) -> int:
    """Where a sentence that is too long is cut: at the last space that leaves a piece of the longest length."""
    if len(sentence) <= PIECE_CHARS_MAX:
        return len(sentence)
    space = sentence.rfind(" ", 0, PIECE_CHARS_MAX)
    return space if space > 0 else PIECE_CHARS_MAX


def _says_something(piece: str) -> bool:
    said = words(piece)
    return len(said) >= WORDS_MIN or any(is_unspaced(word) and len(word) >= UNSPACED_CHARS_MIN for word in said)


def _passage(
    turn: Turn, place: int | str, content: str, type: MemoryType, now: float, expires_at: float | None
) -> Memory:
    scope, role = turn.scope, "assistant" if type is MemoryType.GIST else "user"
    source = Source(role, scope.session or "", turn.id, turn.request_id, turn.opened_at)
    return Memory(
        id=passage_id(turn.id, place),
        version=1,
        type=type,
        content=content,
        user=scope.user,
        project=scope.project,
        agent=scope.agent,
        session=scope.session,
        source=source,
        created_at=now,
        updated_at=now,
        expires_at=expires_at,
    )
