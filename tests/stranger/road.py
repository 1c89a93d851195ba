"""The commands of README's section "Your own model, in five minutes", as it has them."""

from __future__ import annotations

import re
from dataclasses import dataclass

SECTION = "## Your own model, in five minutes\n"
KINDS = ["sh", "sh", "sh", "console", "python"]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Missing(Exception):
    """README lacks a part of the road; the message says which."""


@dataclass(frozen=True, slots=True)
class Road:
    """``fact``: how the first memory is listed. ``outcome``: what Envoy's access log says of the question."""

    setup: str
    install: str
    configure: str
    model: str
    serve: str
    envoy: str
    tell: str
    look: str
    fact: str
    client: str
    ask: str
    outcome: str


def road(readme: str) -> Road:
    section = re.split(r"^##", readme.partition(SECTION)[2], maxsplit=1, flags=re.MULTILINE)[0]
    blocks: list[tuple[str, str]] = _BLOCK.findall(section)
    if (kinds := [kind for kind, _ in blocks]) != KINDS:
        raise Missing(f"README's section has the blocks {kinds}, not {KINDS}")
    configure, start, tell, listed, ask = (block for _, block in blocks)
    prose = _BLOCK.sub("", section)
    return Road(
        setup=_one(r"`(make setup)`", prose),
        install=_one(r"`(pip install \. [^`]+)`", prose),
        configure=configure,
        model=_one(r"`(\S+ -m demo\.model [^`]+)`", prose),
        serve=_one(r"^(\S+/semmem serve .*)$", start),
        envoy=_one(r"^(\S+/envoy .*)$", start),
        tell=tell,
        look=_one(r"^\$ (.+)$", listed),
        fact=_one(r"^mem_.* active +(.+)$", listed),
        client=_one(r"`(pip install openai)`", prose),
        ask=ask,
        outcome=_one(r'`("semmem_outcome":"\w+")`', prose),
    )


def _one(pattern: str, text: str) -> str:
    found = re.findall(pattern, text, re.MULTILINE)
    if len(found) != 1:
        raise Missing(f"README's section has {len(found)} times, not once: {pattern}")
    return str(found[0])
