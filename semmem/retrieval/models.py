"""Optional models that improve a search, and fall back by themselves: one that writes queries, one that reranks.

Queries are written in two modes, both under one hard deadline, both falling back to ``query.build_query``:

- *rewrite*: a question that means nothing alone ("How much?") is asked again so that it stands on its own.
- *hyde*: a made-up fact ("User's budget for Hawaii is 5,000 dollars") is searched for beside the question, because a
  statement lies closer to statements than a question does (HyDE: Gao et al. 2022, "Precise Zero-Shot Dense Retrieval
  without Relevance Labels"). It is used as a vector only, and never shown to anybody.

The conversation is quoted data to the model, and its answer is a search text and nothing more: whatever somebody makes
the model say, at worst the user's own memories are searched with the wrong words."""

import asyncio
import hashlib
import json
import re
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from cachetools import TTLCache

from semmem.memory import Conversation, Hit, Message, Role, Vector
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError, ModelError
from semmem.ports.events import Announce, Reranked, Rewritten, nobody_listens
from semmem.ports.models import LanguageModel, Reranker
from semmem.retrieval.query.build import build_query, is_vague, key_words

Mode = Literal["rewrite", "hyde"]

TAIL_MESSAGES_MAX = 7
"""Messages of user and assistant that the model is shown, the question among them."""
MESSAGE_CHARS_MAX = 600
HYPOTHESIS_WEIGHT = 0.5
"""Of the guess's vector in the average with the question's."""

PROMPTS: dict[Mode, str] = {
    mode: Path(__file__).with_name(f"models_{mode}.txt").read_text("utf-8").rstrip("\n") for mode in get_args(Mode)
}

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_LABEL = re.compile(
    r"^(?:the |a )?(?:re-?written|standalone|complete|full|final)?\s*"
    r"(?:question|query|answer|note|output|rewrite)\s*:\s*",
    re.IGNORECASE,
)
_QUOTES = "\"'`“”„«»「」*_ "
_REFUSES_OR_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget)\b.{0,40}\b(?:instructions?|rules?|above|previous|prompt)\b"
    r"|\b(?:you are|you're|you must|act as|pretend)\b|\bas an? (?:ai|language model|assistant)\b|\bsystem prompt\b"
    r"|^i(?:'m| am) (?:sorry|unable|not able)\b|^(?:sorry\b.{0,20})?i (?:can(?:not|'t)|do(?: not|n't) (?:know|have))\b"
    r"|<\|?\w|```|https?://",
    re.IGNORECASE,
)
_ABOUT_USER = re.compile(r"(?:the user|user|用户)\b|用户", re.IGNORECASE)
_SPEAKERS = frozenset({"user", "assistant"})
_UNSAFE = ("Cc", "Cf", "Cs", "Co", "Cn")


@dataclass(eq=False, repr=False)
class QueryWriter:
    """Writes queries with a language model, and without it whenever that is slow, down, silent or strange.
    ``timeout_s`` bounds the whole of one call: so much longer a request may take for it. Answers of more than
    ``answer_chars_max`` characters are not used. Up to ``cache_entries_max`` answers are kept for ``cache_ttl_s``
    seconds, by a digest of what the model was shown, so a retry costs nothing. Rewritten is announced each time the
    model was wanted."""

    model: LanguageModel
    _: KW_ONLY
    mode: Mode
    timeout_s: float = 0.3
    answer_chars_max: int = 300
    cache_entries_max: InitVar[int] = 1000
    cache_ttl_s: InitVar[float] = 300.0
    announce: Announce = nobody_listens
    clock: InitVar[Callable[[], float]] = time.monotonic

    def __post_init__(self, cache_entries_max: int, cache_ttl_s: float, clock: Callable[[], float]) -> None:
        self._cache: TTLCache[bytes, str, float] = TTLCache(cache_entries_max, cache_ttl_s, clock)

    def wants(self, conversation: Conversation) -> bool:
        """Whether the model is to be asked: for anything that can be a question; to rewrite, only when it is vague and
        there is something before it."""
        said = [message.text.strip() for message in conversation.messages if message.role is Role.USER]
        if not said or not said[-1]:
            return False
        return self.mode == "hyde" or (len(said) > 1 and is_vague(said[-1]))

    async def write(self, conversation: Conversation, *, chars_max: int = 2000) -> tuple[str, str]:
        """What to search with: a text for words and vector, at most ``chars_max`` characters; a guess for a second
        vector, empty: none. Never raises but for cancellation."""
        plain = build_query(conversation, chars_max=chars_max)
        answer = await self._answer(_tail(conversation.messages)) if self.wants(conversation) else ""
        if self.mode == "hyde":
            return plain, answer
        return answer[:chars_max] or plain, ""

    async def improved(
        self, conversation: Conversation, text: str, vector: Vector, embedder: Embedder, *, embed_timeout_s: float
    ) -> tuple[str, Vector]:
        """A better text and vector to search with than these; these when there is none. Never raises but for
        cancellation."""
        written, guess = await self.write(conversation, chars_max=max(len(text), self.answer_chars_max))
        if (written, guess) == (text, ""):
            return text, vector
        try:
            async with asyncio.timeout(embed_timeout_s):
                return written, await embed(embedder, written, guess, within_s=embed_timeout_s)
        except (EmbedderError, TimeoutError):
            return text, vector

    async def _answer(self, shown: str) -> str:
        """The model's usable answer, empty when there is none in time."""
        key = hashlib.sha256(shown.encode("utf-8", "surrogatepass")).digest()
        if kept := self._cache.get(key):
            self.announce(Rewritten("cached"))
            return kept
        word, answer = await self._asked(shown)
        self.announce(Rewritten(word))
        if answer:
            self._cache[key] = answer
        return answer

    async def _asked(self, shown: str) -> tuple[str, str]:
        prompt = (Message(Role.SYSTEM, PROMPTS[self.mode]), Message(Role.USER, shown))
        try:
            async with asyncio.timeout(self.timeout_s):
                raw = await self.model.complete(prompt, timeout_s=self.timeout_s)
        except TimeoutError:
            return "late", ""
        except ModelError:
            return "failed", ""
        answer = cleaned(raw, chars_max=self.answer_chars_max)
        usable = bool(answer) and (_ABOUT_USER.match(answer) if self.mode == "hyde" else _is_grounded(answer, shown))
        return ("written", answer) if usable else ("unusable", "")


async def embed(embedder: Embedder, text: str, guess: str, *, within_s: float | None = None) -> Vector:
    """The text's vector; with a guess the average of both, of length 1. Raises EmbedderError."""
    texts = (text, guess) if guess else (text,)
    question, *others = await asyncio.gather(*(embedder.embed(each, within_s=within_s) for each in texts))
    if not others:
        return question
    mixed = (1.0 - HYPOTHESIS_WEIGHT) * question + HYPOTHESIS_WEIGHT * others[0]
    length = float(np.linalg.norm(mixed))
    return (mixed / length).astype(np.float32) if length > 0.0 else question


def cleaned(answer: str, *, chars_max: int) -> str:
    """The one line of an answer, without thoughts, label and quotes; empty when it is none that could be searched with:
    several lines, too long, a refusal, an order."""
    lines = [line for line in _THOUGHTS.sub("", answer[: 50 * chars_max]).splitlines() if line.strip()]
    if len(lines) != 1:
        return ""
    visible = "".join(c for c in " ".join(lines[0].split()) if unicodedata.category(c) not in _UNSAFE)
    line = _LABEL.sub("", visible.strip(_QUOTES)).strip(_QUOTES)
    return "" if len(line) > chars_max or _REFUSES_OR_ORDERS.search(line) else line


def _tail(messages: Sequence[Message]) -> str:
    """The conversation's end up to the user's last message, a JSON object a line."""
    spoken = [m for m in messages if m.role in (Role.USER, Role.ASSISTANT) and m.text.strip()]
    while spoken and spoken[-1].role is not Role.USER:
        spoken.pop()
    told = ({message.role.value: _shortened(message.text)} for message in spoken[-TAIL_MESSAGES_MAX:])
    return "\n".join(json.dumps(each, ensure_ascii=False) for each in told)


def _shortened(text: str) -> str:
    text = text.strip()
    half = MESSAGE_CHARS_MAX // 2
    return text if len(text) <= MESSAGE_CHARS_MAX else f"{text[:half]} … {text[-half:]}"


def _is_grounded(question: str, shown: str) -> bool:
    """Whether it names something of the conversation. A model that rambles, or answers, names something else."""
    if (key_words(question) - _SPEAKERS) & key_words(shown):
        return True
    # scripts without spaces have no words to compare, but a character says much
    return any(char in shown for char in question if unicodedata.category(char) == "Lo")


# --- reranking --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reranking:
    """The best candidates in a reranker's order, in their own whenever that does not help: at most ``candidates_max``
    hits per request, ``timeout_s`` seconds. Reranked is announced for each request that asked."""

    reranker: Reranker
    timeout_s: float = 0.1
    candidates_max: int = 20
    announce: Announce = nobody_listens

    async def order(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """``hits`` (best first) with the first ``candidates_max`` in the reranker's order, ties as they were. Each hit
        keeps its cosine; the candidates' ``score`` values are dealt out anew in the new order, so that what follows
        sees the scale it knows. Never raises but for cancellation."""
        candidates, rest = list(hits[: self.candidates_max]), list(hits[self.candidates_max :])
        if len(candidates) < 2:
            return [*candidates, *rest]
        word, scores = await self._scores(query, candidates)
        self.announce(Reranked(word))
        if scores is None:
            return [*candidates, *rest]
        order = sorted(range(len(candidates)), key=lambda i: -scores[i])
        dealt = sorted((hit.score for hit in candidates), reverse=True)
        best = [replace(candidates[i], score=score) for i, score in zip(order, dealt, strict=True)]
        return [*best, *rest]

    async def _scores(self, query: str, hits: Sequence[Hit]) -> tuple[str, list[float] | None]:
        try:
            async with asyncio.timeout(self.timeout_s):
                texts = [hit.memory.content for hit in hits]
                return "reranked", await self.reranker.rerank(query, texts, timeout_s=self.timeout_s)
        except TimeoutError:
            return "late", None
        except ModelError:
            return "failed", None
