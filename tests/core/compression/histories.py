"""Conversations of any shape, and how each API spells them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]


@dataclass(frozen=True)
class Spoken:
    """One turn: what the user says (with an image, in parts), rounds of so many parallel calls, and the answer, if the
    conversation has come so far. ``system``: an instruction stands before it."""

    text: str
    image: bool = False
    rounds: tuple[int, ...] = ()
    answer: str | None = "Noted."
    system: str = ""
    words_with_results: bool = False


IMAGE = "aGVsbG8="


def chat(turns: Sequence[Spoken]) -> Json:
    messages: list[Json] = []
    for number, turn in enumerate(turns):
        if turn.system:
            messages.append({"role": "developer" if number else "system", "content": turn.system})
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}}
        parts = [{"type": "text", "text": turn.text}, picture]
        messages.append({"role": "user", "content": parts if turn.image else turn.text})
        for at, calls in enumerate(turn.rounds):
            names = [f"c{number}_{at}_{call}" for call in range(calls)]
            made = [{"id": n, "type": "function", "function": {"name": "f", "arguments": "{}"}} for n in names]
            messages.append({"role": "assistant", "content": None, "tool_calls": made})
            messages += [{"role": "tool", "tool_call_id": name, "content": f"result of {name}"} for name in names]
        if turn.answer is not None:
            messages.append({"role": "assistant", "content": turn.answer})
    return {"model": "m", "messages": messages}


def messages_api(turns: Sequence[Spoken]) -> Json:
    messages: list[Json] = []
    for number, turn in enumerate(turns):
        picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}
        parts = [{"type": "text", "text": turn.text}, picture]
        messages.append({"role": "user", "content": parts if turn.image else turn.text})
        for at, calls in enumerate(turn.rounds):
            names = [f"c{number}_{at}_{call}" for call in range(calls)]
            made = [{"type": "tool_use", "id": name, "name": "f", "input": {}} for name in names]
            messages.append({"role": "assistant", "content": made})
            results: list[Json] = [
                {"type": "tool_result", "tool_use_id": name, "content": f"result of {name}"} for name in names
            ]
            also = [{"type": "text", "text": "And hurry."}] if turn.words_with_results else []
            messages.append({"role": "user", "content": results + also})
        if turn.answer is not None:
            messages.append({"role": "assistant", "content": [{"type": "text", "text": turn.answer}]})
    systems = [turn.system for turn in turns if turn.system]
    return {"model": "m", **({"system": systems[0]} if systems else {}), "messages": messages}


def responses(turns: Sequence[Spoken]) -> Json:
    items: list[Json] = []
    for number, turn in enumerate(turns):
        if turn.system:
            items.append({"role": "developer", "content": turn.system})
        picture = {"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}"}
        parts = [{"type": "input_text", "text": turn.text}, picture]
        items.append({"role": "user", "content": parts if turn.image else turn.text})
        for at, calls in enumerate(turn.rounds):
            names = [f"c{number}_{at}_{call}" for call in range(calls)]
            items.append({"type": "reasoning", "id": f"r{number}_{at}", "summary": []})
            items += [{"type": "function_call", "call_id": n, "name": "f", "arguments": "{}"} for n in names]
            items += [{"type": "function_call_output", "call_id": n, "output": f"result of {n}"} for n in names]
        if turn.answer is not None:
            items.append({"type": "reasoning", "id": f"r{number}", "summary": []})
            told = [{"type": "output_text", "text": turn.answer, "annotations": []}]
            items.append({"type": "message", "id": f"m{number}", "role": "assistant", "content": told})
    return {"model": "m", "instructions": "Be brief.", "input": items}


@dataclass(frozen=True)
class Api:
    path: str
    member: str
    body: Callable[[Sequence[Spoken]], Json]

    def encoded(self, turns: Sequence[Spoken]) -> bytes:
        return json.dumps(self.body(turns)).encode()


APIS: Mapping[str, Api] = {
    "chat": Api("/v1/chat/completions", "messages", chat),
    "messages": Api("/v1/messages", "messages", messages_api),
    "responses": Api("/v1/responses", "input", responses),
}


def names_of_calls(element: Json) -> set[str]:
    """The calls that an element makes."""
    if element.get("type") == "function_call":
        return {element["call_id"]}
    if element.get("role") != "assistant":
        return set()
    blocks = element["content"] if isinstance(element.get("content"), list) else []
    made = {call["id"] for call in element.get("tool_calls") or ()}
    return made | {block["id"] for block in blocks if block.get("type") == "tool_use"}


def names_of_results(element: Json) -> set[str]:
    """The calls whose results an element brings."""
    if element.get("type") == "function_call_output":
        return {element["call_id"]}
    if element.get("role") == "tool":
        return {element["tool_call_id"]}
    blocks = element["content"] if isinstance(element.get("content"), list) else []
    return {block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"}


WORDS = st.sampled_from(
    ["I live in Lisbon.", "Book 4 nights.", "What now?", "日本語で", 'a "quoted" \\ word', "So be it"]
)
SPOKEN = st.builds(
    Spoken,
    text=WORDS,
    image=st.booleans(),
    rounds=st.lists(st.integers(1, 3), max_size=2).map(tuple),
    answer=st.sampled_from(["Done.", "The total is 412.", None, ""]),
    system=st.sampled_from(["", "", "", "Be kind."]),
    words_with_results=st.booleans(),
)
HISTORIES = st.lists(SPOKEN, min_size=1, max_size=12)
