"""JSON out of whatever a language model answers: alone, fenced, amid prose, after its thoughts, broken, cut off.

Broken is what is nearly JSON: single quotes, commas too many or missing, names without quotes, quotes within quotes,
remarks, an end that is missing. It is read token by token, in one pass; of what is cut off the whole objects are kept.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

from semmem.memory import Message, Role, Turn
from semmem.ports.models import LanguageModel, ServedModel

FAILED_DECODES_MAX = 200
"""How many places of an answer are tried as the beginning of JSON before giving up; bounds the work on hostile text."""
DEPTH_MAX = 32
"""Lists and objects in one another; what is deeper is left out."""
_DECODER = json.JSONDecoder(strict=False)
"""A line break within a string is what many models write."""
_OPENING = re.compile(r"[\[{]")
_THOUGHT_TAG = re.compile(r"<(/?)(think|thinking|reasoning)>", re.IGNORECASE)
_TOKEN = re.compile(r"""[\[\]{},:"“]|[^\s\[\]{},:"“]+""")
_ENDS_STRING = r'(?=[ \t]{0,9}(?:[,:}\]\n]|\Z|"\w{1,20}"[ \t]{0,9}:))'
_CLOSING = {
    opening: re.compile(closing + _ENDS_STRING) for opening, closing in {'"': '"', "'": "'", "“": '[”"]'}.items()
}
"""What ends a string, by what began it. It is followed by what may stand behind one: there may be quotes inside."""
_LITERALS: dict[str, object] = {"true": True, "false": False, "null": None, "none": None}


def json_values(answer: str) -> Iterator[object]:
    """Every JSON object and array in an answer, outermost first; of a broken one, what is whole in it."""
    return iter(read_answer(answer)[0])


def read_answer(answer: str) -> tuple[list[object], bool]:
    """The JSON objects and arrays in an answer, and whether the last one was cut off with something in it."""
    text = _without_thoughts(answer)
    values: list[object] = []
    position, failed, cut = 0, 0, False
    while failed < FAILED_DECODES_MAX and (match := _OPENING.search(text, position)):
        try:
            value, position = _DECODER.raw_decode(text, match.start())
            values.append(value)
        except (ValueError, RecursionError):
            found, position, unclosed = read_broken(text, match.start())
            values += found
            cut = unclosed and bool(found)
            failed += 1
    return values, cut


def _without_thoughts(answer: str) -> str:
    """In one pass: an expression that looks for each end tag anew needs minutes for an answer full of beginnings."""
    tags = [(tag.start(), tag.end(), bool(tag[1]), tag[2].casefold()) for tag in _THOUGHT_TAG.finditer(answer)]
    last_end = {name: start for start, _, closes, name in tags if closes}
    last_opening = max(answer.rfind("["), answer.rfind("{"))
    kept: list[str] = []
    position, inside = 0, ""
    for start, end, closes, name in tags:
        if inside == "" and not closes and last_end.get(name, -1) > start:
            kept.append(answer[position:start])
            inside = name
        elif closes and name == inside:
            position, inside = end, ""
        elif closes and inside == "" and not kept and last_opening >= end:
            position = end  # what came before were thoughts, whose beginning is in the model's own template
    return " ".join([*kept, answer[position:]])


class _Bare(str):
    """Words without quotes: a value where an object's name precedes them, nothing in a list."""

    __slots__ = ()


class _Level:
    """An object or a list that is being read. ``pending`` is what was read and is not in it yet."""

    def __init__(self, opening: str) -> None:
        self.value: dict[str, object] | list[object] = {} if opening == "{" else []
        self.name: str | None = None
        self.pending: list[object] = []
        self._passed_over = False

    def name_pending(self) -> None:
        """A colon: what stands before it names what follows."""
        if isinstance(self.value, dict) and self.pending:
            self.name = str(self.pending.pop())
            self.pending.clear()

    def take(self, read: object) -> None:
        """A value; words that follow words go on with them."""
        last = self.pending[-1] if self.pending else None
        if isinstance(read, _Bare) and isinstance(last, _Bare):
            self.pending[-1] = _Bare(f"{last} {read}")
            return
        self.settle()
        self.pending.append(read)

    def settle(self) -> None:
        """Put what was read where it belongs."""
        for read in self.pending:
            if isinstance(self.value, list):
                if not isinstance(value := _plain(read), _Bare):
                    self.value.append(value)
                    continue
            elif self.name is not None:
                value = _plain(read)
                self.value.setdefault(self.name, str(value) if isinstance(value, _Bare) else value)
                self.name = None
                continue
            self._passed_over = True
        self.pending.clear()

    def is_whole(self, *, cut: bool) -> bool:
        """Whether it counts. Of what is cut off, only what holds other lists and objects, and lists of strings."""
        if not self.value:
            return not cut and not self._passed_over
        return not cut or isinstance(self.value, list) or any(isinstance(v, dict | list) for v in self.value.values())


def read_broken(text: str, start: int) -> tuple[list[object], int, bool]:
    """What begins at ``start`` with a bracket, where the reading ended, and whether it was cut off there. Linear in
    what is read; never raises. No text comes out that is not in it."""
    reader = _Reader(text, start)
    while (reader.levels or reader.position == start) and reader.step():
        pass
    cut = bool(reader.levels)
    while reader.levels:
        reader.close(cut=True)
    return reader.found, len(text) if cut else reader.position, cut


class _Reader:
    def __init__(self, text: str, start: int) -> None:
        self.position = start
        self.levels: list[_Level] = []
        self.found: list[object] = []
        self._text = text
        self._too_deep = 0
        self._expects_string = True
        self._unclosed: set[str] = set()

    def step(self) -> bool:
        """One token; False at the end of the text."""
        match = _TOKEN.search(self._text, self.position)
        if match is None:
            return False
        token, self.position = match.group(), match.end()
        if token in ('"', "“") or (token[0] == "'" and self._expects_string):
            return self._string(match.start())
        if token in "[{" and len(self.levels) == DEPTH_MAX:
            self._too_deep += 1
        elif token in "[{":
            self.levels.append(_Level(token))
        elif token in "]}":
            self._close(token)
        elif token == ":":
            self.levels[-1].name_pending()
        elif token == ",":
            self.levels[-1].settle()
        else:
            self.levels[-1].take(_Bare(token))
        self._expects_string = token in "[{,:"
        return True

    def _close(self, token: str) -> None:
        """A bracket closes what it fits, and what is still open inside; one that fits nothing is passed over."""
        if self._too_deep:
            self._too_deep -= 1
            return
        kind = dict if token == "}" else list
        if any(isinstance(level.value, kind) for level in self.levels):
            while not isinstance(self.levels[-1].value, kind):
                self.close(cut=False)
            self.close(cut=False)

    def close(self, *, cut: bool) -> None:
        """The innermost level becomes a value of the one around it."""
        level = self.levels.pop()
        if cut:
            level.pending = [read for read in level.pending if isinstance(read, dict | list)]
        level.settle()
        if not level.is_whole(cut=cut):
            return
        if self.levels:
            self.levels[-1].take(level.value)
        else:
            self.found.append(level.value)

    def _string(self, start: int) -> bool:
        """A string up to its end. A single quote without one is a word; any other without one is where it was cut."""
        quote = self._text[start]
        closing = None if quote in self._unclosed else _CLOSING[quote].search(self._text, start + 1)
        self._expects_string = False
        if closing is not None:
            self.position = closing.end()
            self.levels[-1].take(_unescaped(self._text[start + 1 : closing.start()]))
            return True
        self._unclosed.add(quote)
        return quote == "'"


def _plain(read: object) -> object:
    """The value that a word without quotes stands for; the word itself where it stands for none."""
    if not isinstance(read, _Bare):
        return read
    word = read.casefold()
    if word in _LITERALS or word[0] not in "-0123456789":
        return _LITERALS.get(word, read)
    try:
        number = float(json.loads(word))
    except (ValueError, OverflowError):
        return read
    return int(number) if number.is_integer() else number


def _unescaped(raw: str) -> str:
    """Without the escapes, where these are JSON's."""
    written = re.sub(r'(?<!\\)"', r"\"", raw.replace("\\'", "'"))
    try:
        return str(json.loads(f'"{written}"', strict=False))
    except ValueError:
        return raw


@dataclass(eq=False, repr=False)
class AskingModel:
    """Asks ``model``; with ``upstream`` the model there of the name that answered the turns last, and ``model`` where
    no name is known. ``timeout_s`` bounds all that is asked about one thing."""

    model: LanguageModel
    _: KW_ONLY
    timeout_s: float = 30.0
    upstream: ServedModel | None = None

    async def _answer(
        self, rules: str, told: str, schema: dict[str, object], turns: Sequence[Turn], timeout_s: float | None = None
    ) -> str:
        """Raises ModelError."""
        named = [turn for turn in turns if turn.model]
        answered = [turn for turn in named if turn.answer is not None] or named
        model = self.upstream.named(answered[-1].model) if self.upstream is not None and answered else self.model
        messages = (Message(Role.SYSTEM, rules), Message(Role.USER, told))
        timeout_s = self.timeout_s if timeout_s is None else timeout_s
        return await model.complete(messages, timeout_s=timeout_s, json_schema=schema)


def within(tag: str, lines: Iterable[str]) -> str:
    """The lines in a fence of that name."""
    return "\n".join([f"<{tag}>", *lines, f"</{tag}>"])


def as_line(told: object) -> str:
    """One line of JSON. With ``<`` escaped, no text in it can close the fence around it."""
    return json.dumps(told, ensure_ascii=False).replace("<", "\\u003c")
