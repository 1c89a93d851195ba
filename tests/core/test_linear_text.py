"""Reading a text takes time in proportion to its length, whatever the text: nobody can stall semmem with a message."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest

from tests.support.examples import PROFILE
from tests.support.text_functions import NEEDLESS, REGISTRY, Call, found

SIZES = (500, 5_000, 50_000)
GROWTH_MAX = 18.0
"""Ten times the text may take this many times as long: caches cost something, and a square costs 100."""
FLOOR_S = 0.0075
"""What is faster than this, whatever the size, is no matter: of 100,000 characters even a square takes four times as
long."""
DEAR_S = 0.0003
"""What takes as long as this for the middle size shows its growth before the largest."""
BEGINS_S = 0.03
"""What begins between the first two sizes, as where a depth is too much, is no growth up to this."""
TRIES = 5
LOOKS = 3
"""On a machine that is busy with something else one look may see what is not there."""
OF_TEXTS = {"quick": 4, "default": 2, "nightly": 1}[PROFILE]
"""Each function reads one text in so many; which ones, differs from function to function: who calls another that takes
too long reads what that one was spared."""

SEEDS = (
    "or ", "I like ", "I like tea or ", "and I ", "but so then because ", "my sister Emma and ", "a", "a ", "aB3",
    " ", "\n", "\n\n ", "\r", ".", ". ", "?", ", ", ":", "; ", "-", "- ", "—", "'", '"', '"a" ', "“", "```", "(", "(a ",
    "[", "{", "<", "<a>", "<b><", "<|", "</think><think>", "<semmem-memory>", "<semmem-memory></semmem-memory>", "#",
    "\\", '\\"', "\\ud83d", "_", "@", "$ ", "0", "1 ", "4111 ", "2023-01-01 ", "May 5 2023, ",
    "account number ", "DE89", "DE89 3704 0044 0532 0130 00 ", "passport: A1 ",
    "next week on Monday ", "3 days ago ", "5 pm ", "password is ", "eyJ", "eyJa.", "sk-",
    "-----BEGIN PRIVATE KEY-----", "a-", "http://a:", "system:\n", "e\u0301", "\u200b",
    "\ud800", "\x00", "\ufffc", "中", "我喜欢", "去年", "日本語 ", "İ", "ﷺ", "ich mag ", "User's ", "user is ",
    "if ", "I ", "don't ", "not ", "the name of ", "is my ", "to run ", "then ", "I always ", "very ", "as a ", "my ",
    "says the ", "remember ", "oh, ", "hello ", "Mr. ", "King James I ", "data: a\n\n", "event: a\n", '{"a":', '"a":0,',
    "[],", '{"role":"user"},', '{"facts": [',
)  # fmt: skip
ENDED = ("or ", "a", "a ", " ", "\n", ", ", "-", "(", '"', "0", "1 ", "12-", ":", "<a>", "中", "my ", "not ")
"""Also with something else behind all the repetition: many an expression fails there only."""


def _numbered(prefix: str, chars: int) -> str:
    """Words that are all different and begin alike."""
    return " ".join(f"{prefix}{number:07d}" for number in range(chars // (len(prefix) + 8) + 1))[:chars]


def _lettered(chars: int) -> str:
    """Different words of letters only, which begin alike."""
    letters = str.maketrans("0123456789", "abcdefghij")
    return _numbered("intera", chars).translate(letters)


def _texts(chars: int) -> dict[str, str]:
    texts = {repr(seed): seed * (chars // len(seed)) for seed in SEEDS}
    texts |= {f"{seed!r} and an end": seed * (chars // len(seed)) + "!x" for seed in ENDED}
    texts |= {"numbered words": _numbered("User", chars), "lettered words": _lettered(chars)}
    texts |= {"nested": "(" * (chars // 2) + ")" * (chars // 2), "nested JSON": "[" * (chars // 2) + "]" * (chars // 2)}
    return texts


TEXTS = {chars: _texts(chars) for chars in SIZES}


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    """A collection's time belongs to whatever was made before."""
    gc.disable()
    yield
    gc.enable()


def _seconds(call: Call, text: str) -> float:
    started = time.process_time()
    call(text)
    return time.process_time() - started


def _best(call: Call, text: str) -> float:
    return min(_seconds(call, text) for _ in range(TRIES))


def _keeps_pace(call: Call, shorter: str, longer: str, took: float, floor_s: float = 0.0) -> bool:
    """Measured again, and better, only where one look is not enough. ``took``: the longer one, at the first."""
    if took <= max(floor_s, GROWTH_MAX * _seconds(call, shorter)):
        return True
    return _best(call, longer) <= max(floor_s, GROWTH_MAX * _best(call, shorter))


def _is_linear(call: Call, kind: str) -> bool:
    short, middle, long = (TEXTS[chars][kind] for chars in SIZES)
    took = _seconds(call, middle)
    if took * 100 <= FLOOR_S:  # even as a square it would not matter
        return True
    if took >= DEAR_S and _keeps_pace(call, short, middle, took):
        return True
    return took <= BEGINS_S and _keeps_pace(call, middle, long, _seconds(call, long), FLOOR_S)


def test_every_public_function_that_takes_text_is_measured_or_says_why_not() -> None:
    functions = set(found())
    assert functions == REGISTRY.keys() | NEEDLESS.keys()
    assert not REGISTRY.keys() & NEEDLESS.keys()


@pytest.mark.parametrize("name", REGISTRY)
def test_time_grows_with_the_length_of_the_text_and_no_faster(name: str) -> None:
    call = REGISTRY[name]
    kinds = list(TEXTS[SIZES[0]])[list(REGISTRY).index(name) % OF_TEXTS :: OF_TEXTS]
    slow = [kind for kind in kinds if not any(_is_linear(call, kind) for _ in range(LOOKS))]
    assert not slow


@pytest.mark.parametrize("step", [50, 200])
def test_a_quadratic_function_is_found(step: int) -> None:
    def quadratic(text: str) -> None:
        for end in range(0, len(text), step):
            text[:end].upper().split()

    assert not _is_linear(quadratic, repr("or "))
