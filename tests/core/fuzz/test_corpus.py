"""The corpus, replayed without atheris; and the checks themselves, which must be able to fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from semmem.dialects import BY_NAME, Dialect, chat
from semmem.dialects.answer import TextTail
from semmem.memory import Injection, Replacement
from tests.fuzz import requests, texts
from tests.fuzz.__main__ import SHARES
from tests.fuzz.targets import CORPUS, TARGETS

SEEDS = sorted(CORPUS.glob("*/*"))


def seed(name: str) -> bytes:
    return (CORPUS / name).read_bytes()


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_input_of_the_corpus_breaks_no_promise(path: Path) -> None:
    TARGETS[path.parent.name].check(path.read_bytes())


def test_every_target_is_searched_and_has_seeds() -> None:
    assert set(SHARES) == set(TARGETS) == {path.parent.name for path in SEEDS}


# --- broken on purpose


def careless(old: bytes, new: bytes) -> Dialect:
    """The chat dialect, but its rewritten bodies are changed once more."""

    class CarelessRequest(chat.ChatRequest):
        def rewrite(self, *injections: Injection, replacement: Replacement | None = None) -> bytes | None:
            body = super().rewrite(*injections, replacement=replacement)
            return body.replace(old, new) if body is not None and injections else body

    def parse(body: bytes) -> CarelessRequest:
        parsed = chat.parse(body)
        return CarelessRequest(parsed._source, parsed._roles, parsed.conversation)

    return replace(BY_NAME["chat"], parse=parse)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"temperature":2.50,', b""),
        (b"2.50", b"2.5"),
        (b"] }", b"]}"),
        (b'"What?"', b'"What"'),
        (b'"role":"system"', b'"role":"tool"'),
        (b"Facts", b"facts"),
    ],
)
def test_a_rewriting_that_changes_anything_else_is_noticed(old: bytes, new: bytes) -> None:
    body = b'{"temperature":2.50,"messages":[{"role":"user","content":"What?"}] }'
    requests.check(careless(b"nothing", b""), body)
    with pytest.raises(AssertionError):
        requests.check(careless(old, new), body)


def test_an_answer_kept_beyond_its_limit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TextTail, "_trim", lambda self: None)
    with pytest.raises(AssertionError):
        TARGETS["answers"].check(seed("answers/chat_sse_small_limits"))


def test_a_text_that_takes_too_long_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "CPU_S_MAX", 0.0)
    with pytest.raises(AssertionError, match="characters"):
        TARGETS["texts"].check(seed("texts/likes"))


def test_what_reaches_the_last_resort_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    TARGETS["extproc"].check(seed("extproc/mutate"))
    monkeypatch.setattr("semmem.envoy.wire.body_reply", lambda result: 1 // 0)
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        TARGETS["extproc"].check(seed("extproc/mutate"))
