"""Every target by name: a function of bytes that raises when a promise is broken; and words that help to find such."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.fuzz import answers, configuration, doors, encodings, requests, texts

CORPUS = Path(__file__).parent / "corpus"


class Target(NamedTuple):
    check: Callable[[bytes], None]
    words: tuple[bytes, ...] = ()
    bytes_max: int = 2048

    def seeds(self, name: str) -> list[Path]:
        return sorted((CORPUS / name).iterdir())


TARGETS: Mapping[str, Target] = {
    "requests": Target(requests.request, requests.WORDS),
    "answers": Target(answers.answer, answers.FRAGMENTS),
    "encodings": Target(encodings.encoded_answer),
    "texts": Target(texts.text, texts.FRAGMENTS),
    "exchange": Target(doors.exchange, requests.WORDS),
    "extproc": Target(doors.extproc, requests.WORDS),
    "config": Target(configuration.config, configuration.FRAGMENTS, 1024),
}
