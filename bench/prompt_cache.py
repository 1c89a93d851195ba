"""What memory leaves of a model's prompt cache: ``python -m bench --only prompt_cache``.

llama.cpp is the model behind Envoy. An engine evaluates only what comes after the tokens that a prompt has in common
with the last one, and that is what the first token waits for. In a session each request repeats the ones before it, so
without memory only the newest message is evaluated. Sessions with memory and without take turns; every turn needs
another memory of the user's, and nothing is learnt meanwhile.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from bench.blocks import ending
from bench.cases import CASE_HEADER, SEMMEM_BOTH, Case
from bench.client import Reply
from bench.figures import grid, once, paired
from bench.kernel import cpu_seconds
from bench.llama_server import LLAMA_VENV, installed
from bench.plan import Place, Plan, Say
from bench.road import Road, road
from bench.talks import MEMORIES, SYSTEM, said_in
from demo.envoy import DEMO_TOKEN_PREFIX
from demo.processes import Failed

Json = dict[str, Any]

KEYS = ("prompt_cache_ttft", "prompt_cache_kept")
ON = Case("on", "with memory", SEMMEM_BOTH, outcomes=("injected",), stream=True)
OFF = Case("off", "without", SEMMEM_BOTH, outcomes=("opted_out",), stream=True)
CASES = (ON, OFF)
KEPT_MIN = 0.99
"""Of an earlier prompt: so much has to be found again for it to count as kept. A few tokens at its end may be others:
text is cut into tokens anew."""
ANSWER_TOKENS = 24
WARM_UP_TURNS = 2
PATIENCE = 20.0
"""Every deadline is so many times longer than the plan's. On a busy machine a question that is embedded too late would
be given the newest memories, the same as the last one that was late, and an engine would keep that block."""
TOKEN_TIMEOUT_S = 180.0
"""The first one of a long prompt, on a busy machine."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One request and its answer. ``cached`` of the ``prompt`` tokens were not evaluated, by the engine's own word.
    ``engine_cpu_s``: what the engine's process used until the first token was here."""

    reply: Reply
    prompt: int
    cached: int
    answer: str
    engine_cpu_s: float = 0.0

    @property
    def evaluated(self) -> int:
        return self.prompt - self.cached

    @property
    def first_token_s(self) -> float:
        """Raises Failed where no token came."""
        if self.reply.first_token_s is None:
            raise Failed("an answer had no token")
        return self.reply.first_token_s


Session = Sequence[Turn]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sessions in which the user says the same."""

    on: Session
    off: Session

    def of(self, case: Case) -> Session:
        return self.on if case is ON else self.off


def measure(plan: Plan, place: Place, say: Say, *, environment: Path = LLAMA_VENV) -> Json:
    """``turns``, ``cases``, ``keys``; ``not_measured``: why not, by key. Raises Failed."""
    llama = installed(environment)
    if llama is None:
        reason = f"llama.cpp is not installed: make {environment.name}/.ready"
        return {"keys": {}, "not_measured": dict.fromkeys(KEYS, reason)}
    users = [_user(number) for number in range(plan.cache_pairs + 1)]
    patient = replace(plan, patience=plan.patience * PATIENCE)
    with road(place, CASES, patient, users=users, memories=len(MEMORIES), known=MEMORIES, model=llama.start) as here:
        pairs = _pairs(here, plan, say)
    return {"about": llama.about(), **figures(pairs)}


# --- what is sent ----------------------------------------------------------------------------------------------------


def _pairs(here: Road, plan: Plan, say: Say) -> list[Pair]:
    """The first of a pair is with memory in every other one."""
    pairs = []
    with httpx.Client(base_url=f"http://127.0.0.1:{here.port}", timeout=TOKEN_TIMEOUT_S, trust_env=False) as http:
        for case in CASES:
            _session(here, http, case, plan.cache_pairs, WARM_UP_TURNS)
        for number in range(plan.cache_pairs):
            order = CASES if number % 2 == 0 else CASES[::-1]
            held = {case.name: _session(here, http, case, number, plan.cache_turns) for case in order}
            pairs.append(Pair(held[ON.name], held[OFF.name]))
            last = {name: session[-1] for name, session in held.items()}
            told = ", ".join(f"{turn.first_token_s:.2f} s {name}" for name, turn in last.items())
            say(f"prompt_cache: pair {number + 1} of {plan.cache_pairs}: first token of the last turn {told}")
    return pairs


def _session(here: Road, http: httpx.Client, case: Case, number: int, turns: int) -> Session:
    """A conversation with the model's own answers in it."""
    headers = {
        "authorization": f"Bearer {DEMO_TOKEN_PREFIX}{_user(number)}",
        "x-session-id": f"{case.name}-{number}",
        "x-semmem-memory": case.name,
        CASE_HEADER: case.name,
    }
    messages: list[Json] = [{"role": "system", "content": SYSTEM}]
    held = []
    for said in said_in(number, turns):
        messages.append({"role": "user", "content": said})
        turn = _turn(here, http, headers, messages)
        messages.append({"role": "assistant", "content": turn.answer})
        held.append(turn)
    return held


def _turn(here: Road, http: httpx.Client, headers: dict[str, str], messages: Sequence[Json]) -> Turn:
    """Raises Failed for an answer that is none."""
    more = {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": ANSWER_TOKENS}
    body = {"model": "llama", "messages": messages, **more}
    engine = here.pids["upstream"]
    cpu, began = cpu_seconds(engine), time.monotonic()
    pieces: list[tuple[float, Json]] = []
    try:
        with http.stream("POST", "/v1/chat/completions", json=body, headers=headers) as answer:
            for event in events(answer.iter_lines()):
                pieces.append((time.monotonic() - began, event))
                if len(pieces) == 1:
                    cpu = cpu_seconds(engine) - cpu
    except httpx.HTTPError as error:
        raise Failed(f"a request was not answered: {error!r}") from error
    if answer.status_code != 200 or not pieces:
        raise Failed(f"a request was answered {answer.status_code}")
    outcome = answer.headers.get("x-semmem-outcome", "")
    return replace(turn_of(answer.status_code, outcome, time.monotonic() - began, pieces), engine_cpu_s=cpu)


def events(lines: Iterable[str]) -> Iterator[Json]:
    """Of a stream of chat completions."""
    for line in lines:
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def turn_of(status: int, outcome: str, seconds: float, pieces: Sequence[tuple[float, Json]]) -> Turn:
    """From events and when they came. Raises Failed without usage."""
    texts = [(came, _text(event)) for came, event in pieces]
    first = next((came for came, text in texts if text), None)
    usage = pieces[-1][1].get("usage")
    if not usage:
        raise Failed("an answer ended without usage")
    reply = Reply(status, outcome, 0, seconds, first)
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    return Turn(reply, usage["prompt_tokens"], cached, "".join(text for _, text in texts))


def _text(event: Json) -> str:
    return "".join(choice["delta"].get("content") or "" for choice in event["choices"])


def _user(number: int) -> str:
    return f"talker{number}"


# --- what it says ----------------------------------------------------------------------------------------------------


def figures(pairs: Sequence[Pair]) -> Json:
    """Every turn, with memory and without."""
    turns = [{case.name: _of_turn(pairs, case, number) for case in CASES} for number in range(len(pairs[0].on))]
    kept = {case.name: kept_share(pair.of(case) for pair in pairs) for case in CASES}

    def last_turn(value: Callable[[Turn], float]) -> Json:
        return paired(len(pairs), lambda n: value(pairs[n].on[-1]) / value(pairs[n].off[-1]))

    def session(value: Callable[[Turn], float]) -> Json:
        return paired(len(pairs), lambda n: sum(map(value, pairs[n].on)) / sum(map(value, pairs[n].off)))

    first_token, evaluated = attrgetter("first_token_s"), attrgetter("evaluated")
    return {
        "pairs": len(pairs),
        "turns": turns,
        "sessions": [{case.name: [_seen(turn) for turn in pair.of(case)] for case in CASES} for pair in pairs],
        "kept": kept,
        "ratios": {
            "last_turn_evaluated": last_turn(evaluated),
            "last_turn_engine_cpu": last_turn(attrgetter("engine_cpu_s")),
            "session_first_token": session(first_token),
            "session_evaluated": session(evaluated),
        },
        "cases": {
            case.name: {"c1": ending(case, [turn.reply for pair in pairs for turn in pair.of(case)])} for case in CASES
        },
        "keys": {"prompt_cache_ttft": last_turn(first_token), "prompt_cache_kept": once(kept[ON.name])},
    }


def _seen(turn: Turn) -> Json:
    return {
        "prompt_tokens": turn.prompt,
        "cached_tokens": turn.cached,
        "first_token_ms": turn.first_token_s * 1000,
        "engine_cpu_ms": turn.engine_cpu_s * 1000,
        "outcome": turn.reply.outcome,
    }


def kept_share(sessions: Iterable[Session]) -> float:
    """Of requests that follow another, the share that finds the prompt of the earlier one in the cache."""
    shares = [later.cached / earlier.prompt for session in sessions for earlier, later in itertools.pairwise(session)]
    return sum(share >= KEPT_MIN for share in shares) / len(shares)


def _of_turn(pairs: Sequence[Pair], case: Case, number: int) -> Json:
    """Medians over the sessions."""
    turns = [pair.of(case)[number] for pair in pairs]
    return {
        "prompt_tokens": median(turn.prompt for turn in turns),
        "cached_tokens": median(turn.cached for turn in turns),
        "cached_share": median(turn.cached / turn.prompt for turn in turns),
        "evaluated_tokens": median(turn.evaluated for turn in turns),
        "first_token_ms": median(turn.first_token_s for turn in turns) * 1000,
    }


# --- for people ------------------------------------------------------------------------------------------------------


def table(found: Json) -> str:
    """Times in ms."""
    if "not_measured" in found:
        return "\n".join(["", *(f"{key} not measured: {reason}" for key, reason in found["not_measured"].items())])
    about = ", ".join(f"{name} {what}" for name, what in found["about"].items())
    head = ["turn", *(name for what in _COLUMNS for name in (f"{what} with", "without"))]
    rows = [
        [str(number), *(shown.format(turn[case.name][key]) for key, shown in _COLUMNS.values() for case in CASES)]
        for number, turn in enumerate(found["turns"], start=1)
    ]
    ratios = ", ".join(f"{name} {ratio['value']:.2f}" for name, ratio in found["ratios"].items())
    kept = ", ".join(f"{found['kept'][case.name]:.0%} {case.title}" for case in CASES)
    title = f"\nPrompt cache: {found['pairs']} pairs of sessions; {about}"
    return "\n".join(
        [title, *grid(",".join(head), rows), f"earlier prompt found again: {kept}", f"with memory / without: {ratios}"]
    )


_COLUMNS = {
    "tokens": ("prompt_tokens", "{:.0f}"),
    "cached": ("cached_share", "{:.1%}"),
    "evaluated": ("evaluated_tokens", "{:.0f}"),
    "first token": ("first_token_ms", "{:.0f}"),
}
