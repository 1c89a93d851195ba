"""A scripted day: requests of several users, models and projects, and what they come to, counted by hand."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from semmem.memory import Answer, Conversation, Message, PromptCache, Role, Scope, TurnEnding
from semmem.ports.usage import UsageRow
from semmem.usage.meter import KnownNames, Meter
from semmem.usage.report import Price, Prices

KEY = b"k" * 32
PRICES = Prices(
    [
        Price("gpt-4o*", "openai", Decimal("2.5"), Decimal("10")),
        Price("local-*", "here", Decimal("0"), Decimal("0")),
        Price("claude*", "anthropic", Decimal("3"), Decimal("15")),
    ],
    compared_with="gpt-4o",
    currency="USD",
)
TENTHS = {"gpt-4o-mini": (25, 100), "local-8b": (0, 0), "claude-x": (30, 150)}
"""Of a dollar, for a million tokens."""
PROVIDERS = {"gpt-4o-mini": "openai", "local-8b": "here", "claude-x": "anthropic", "mistral/large": "mistral"}
DIALECTS = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
}
ENDINGS = (TurnEnding.ANSWERED,) * 7 + (TurnEnding.CONTINUES, TurnEnding.REFUSED, TurnEnding.ANSWER_LOST)


@dataclass(frozen=True)
class Scripted:
    """One request as it was written down, before anything of ours has seen it. ``cache``: tokens of the prompt, and
    those of them that were cached."""

    at: datetime
    user: str
    session: str
    project: str
    dialect: str
    model: str
    asked: str
    tokens: tuple[int, int] | None
    cache: tuple[int, int] | None
    seconds: float
    ending: TurnEnding
    calls: int
    speaks: bool
    streamed: bool


def script(number: int, *, seed: int, begins: datetime, days: int = 1) -> list[Scripted]:
    """In no order of time."""
    dice, caches = random.Random(seed), random.Random(-seed)
    return [_one(dice, caches, begins, days) for _ in range(number)]


def _one(dice: random.Random, caches: random.Random, begins: datetime, days: int) -> Scripted:
    user = f"user-{dice.randrange(40)}"
    ending = dice.choice(ENDINGS)
    return Scripted(
        at=begins + timedelta(milliseconds=dice.randrange(days * 86_400_000)),
        user=user,
        session=f"session-{dice.randrange(5)}" if dice.random() < 0.9 else "",
        project=dice.choice(("", "atlas", "borealis", "cumulus")),
        dialect=dice.choice(list(DIALECTS)),
        model=dice.choice(list(PROVIDERS)),
        asked=dice.choice(("auto", "gpt-4o", "local-8b")),
        tokens=(dice.randrange(1, 9000), dice.randrange(0, 2000)) if dice.random() < 0.9 else None,
        cache=(caches.randrange(4000, 9000), caches.randrange(0, 4000)) if caches.random() < 0.6 else None,
        seconds=dice.randrange(60_000) / 1000,
        ending=ending,
        calls=dice.randrange(1, 4) if ending is TurnEnding.CONTINUES else 0,
        speaks=dice.random() < 0.8,
        streamed=dice.random() < 0.5,
    )


WORDS_ASKED, WORDS_ANSWERED = "x" * 401, "y" * 79
ESTIMATED = (101, 20)
"""A token for each four letters, and for what is left over."""


def rows(scripted: Sequence[Scripted]) -> list[UsageRow]:
    """As the meter makes them."""
    made: list[UsageRow] = []
    meter = Meter(KEY, PRICES, KnownNames(1000), made.append)
    for one in scripted:
        said = Conversation((Message(Role.USER, WORDS_ASKED),), model=one.asked, stream=one.streamed)
        scope = Scope(one.user, one.project or None, None, one.session or None)
        began = one.at.timestamp()
        asked = meter.asked(scope, said, began, speaks=one.speaks, injected_tokens=0)
        counted = one.tokens or (None, None)
        answer = Answer(
            WORDS_ANSWERED,
            True,
            input_tokens=counted[0],
            output_tokens=counted[1],
            prompt_cache=PromptCache(*one.cache) if one.cache else None,
            model=one.model,
            tool_calls=one.calls,
        )
        meter.answered(asked, one.dialect, one.ending, answer, began + one.seconds)
    return made


COUNTED = (
    *("requests", "errors", "messages", "tool_calls", "tokens_in", "tokens_out", "estimated", "unpriced"),
    *("cache_reported", "prompt_tokens", "cached_tokens"),
)


def by_hand(scripted: Sequence[Scripted]) -> dict[str, Any]:
    """What they come to, by another road than the tables': one walk over the script."""
    told: Counter[str] = Counter()
    tenths = 0
    for one in scripted:
        tokens = one.tokens or ESTIMATED
        told["requests"] += 1
        told["errors"] += one.ending in (TurnEnding.REFUSED, TurnEnding.ANSWER_LOST)
        told["messages"] += int(one.speaks) + int(one.ending is TurnEnding.ANSWERED)
        told["tool_calls"] += one.calls
        told["tokens_in"] += tokens[0]
        told["tokens_out"] += tokens[1]
        told["estimated"] += one.tokens is None
        told["cache_reported"] += one.cache is not None
        told["prompt_tokens"] += one.cache[0] if one.cache else 0
        told["cached_tokens"] += one.cache[1] if one.cache else 0
        told["unpriced"] += one.model not in TENTHS
        prices = TENTHS.get(one.model, (0, 0))
        tenths += tokens[0] * prices[0] + tokens[1] * prices[1]
    share = Fraction(told["cached_tokens"], told["prompt_tokens"]) if told["prompt_tokens"] else None
    return {name: told[name] for name in COUNTED} | {
        "cost": float(round(Fraction(tenths, 10_000_000), 6)),
        "cached_share": None if share is None else float(round(share, 4)),
    }


def parted(scripted: Sequence[Scripted], by: str) -> Iterator[tuple[Any, list[Scripted]]]:
    """The script in groups, the largest first; times in their order."""
    groups: dict[Any, list[Scripted]] = {}
    for one in scripted:
        groups.setdefault(_group(one, by), []).append(one)
    if by in ("hour", "day"):
        yield from sorted(groups.items())
    else:
        yield from sorted(groups.items(), key=lambda item: (-len(item[1]), str(item[0])))


def _group(one: Scripted, by: str) -> Any:
    at = one.at.astimezone(UTC)
    found: dict[str, Any] = {
        "hour": at.strftime("%Y-%m-%dT%H:00:00Z"),
        "day": at.strftime("%Y-%m-%d"),
        "model": one.model,
        "model_asked": one.asked,
        "provider": PROVIDERS[one.model],
        "project": one.project,
        "endpoint": DIALECTS[one.dialect],
        "streamed": one.streamed,
        "user": one.user,
    }
    return found[by]
