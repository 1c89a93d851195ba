"""Every target by name: a function of bytes that raises when a promise is broken; and words that help to find such."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.fuzz import answers, api, configuration, doors, encodings, requests, texts

CORPUS = Path(__file__).parent / "corpus"


class Target(NamedTuple):
    """``words`` are put into inputs, which have at most ``bytes_max`` bytes."""

    check: Callable[[bytes], None]
    words: tuple[bytes, ...] = ()
    bytes_max: int = 1024


TARGETS: Mapping[str, Target] = {
    "requests": Target(requests.request, requests.WORDS),
    "answers": Target(answers.answer, answers.FRAGMENTS),
    "encodings": Target(encodings.encoded_answer),
    "texts": Target(texts.text, texts.FRAGMENTS, 128),
    "long_texts": Target(texts.long_text, texts.FRAGMENTS, 64),
    "exchange": Target(doors.exchange, requests.WORDS),
    "extproc": Target(doors.extproc, requests.WORDS),
    "config": Target(configuration.config, configuration.FRAGMENTS, 512),
    "calls": Target(api.call, api.FRAGMENTS, 512),
    "tools": Target(api.tool, api.FRAGMENTS, 512),
    "web_tokens": Target(api.web_token, api.PARTS, 256),
    "cursors": Target(api.cursor, (), 128),
    "import_lines": Target(api.import_line, api.LINES, 512),
}
