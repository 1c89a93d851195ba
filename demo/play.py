"""The demo: starts everything, plays the two conversations, checks what was promised, says how long it took."""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from demo.envoy import DEMO_TOKEN_PREFIX, DEMO_USER
from demo.processes import POLL_S, Failed, Stopped, TimedOut, ignore_signals, signals_raise
from demo.stack import Stack
from demo.stand_in import MODEL

LEARN_S = 20.0
CAPTURE_S = 5.0
LOG_TAIL_LINES = 20


@dataclass(frozen=True, slots=True)
class Script:
    """What is said, and by whom. ``model`` is the name requests ask for."""

    fact: str = "My budget for the Hawaii trip is $10,000"
    question: str = "What's my budget for the trip?"
    expect: str = "10,000"
    user: str = "alice"
    model: str = MODEL

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Script:
        """From FACT, QUESTION, EXPECT, USER_ID and UPSTREAM_MODEL; empty means not given. Raises Failed."""
        names = {
            "fact": "FACT",
            "question": "QUESTION",
            "expect": "EXPECT",
            "user": "USER_ID",
            "model": "UPSTREAM_MODEL",
        }
        script = cls(**{name: environ[variable] for name, variable in names.items() if environ.get(variable)})
        if not DEMO_USER.fullmatch(script.user):
            raise Failed(f"USER_ID must match {DEMO_USER.pattern}: the demo's sign-in token is demo-<USER_ID>")
        return script

    @property
    def neighbour(self) -> str:
        """Somebody else."""
        return "bob" if self.user != "bob" else "carol"


@dataclass(slots=True)
class Steps:
    """The headings on the terminal, and how long each step took."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str, heading: str) -> Iterator[None]:
        print(f"\n=== {heading}", flush=True)
        started = time.monotonic()
        try:
            yield
        except Failed as failure:
            raise Failed(f"step '{name}' failed: {failure}", failure.log) from failure
        except httpx.HTTPError as error:
            raise Failed(f"step '{name}' failed: {type(error).__name__}: {error}") from error
        self.seconds[name] = time.monotonic() - started

    def summary(self) -> str:
        return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.seconds.items())


def main(*, stay_up: bool, upstream: str | None, environ: Mapping[str, str], data_dir: Path, envoy_binary: Path) -> int:
    """Plays the demo; the exit status: 0 when every promise was kept, 1 when not, 128 + signal when interrupted.

    ``upstream`` is a real model's base URL in place of the stand-in; its key, if it needs one, is in the environment
    variable UPSTREAM_API_KEY. Everything written lies in ``data_dir``. Every process that was started is ended.
    """
    stack = Stack(data_dir, envoy_binary=envoy_binary, upstream=upstream, environ=environ)
    with signals_raise():
        try:
            play(stack, Script.read(environ), stay_up=stay_up)
        except Failed as failure:
            print(f"\nsemmem demo: FAILED: {failure}", file=sys.stderr)
            if failure.log is not None:
                print(f"--- the end of {failure.log}\n{_tail(failure.log)}", file=sys.stderr)
            return 1
        except Stopped as stopped:
            print(f"\nsemmem demo: ended by {stopped}", flush=True)
            return 0 if stay_up and stack.played else 128 + stopped.signum
        finally:
            ignore_signals()
            stack.end()
    return 0


def play(stack: Stack, script: Script, *, stay_up: bool) -> None:
    """The whole evening. Raises Failed at the first broken promise."""
    steps = Steps()
    with steps.step("start", f"Starting everything; data and logs are in {stack.data_dir}"):
        stack.start(print)
        for user in (script.user, script.neighbour):
            _forget_earlier_runs(stack, user)
    with steps.step("first conversation", f"First conversation: {script.user} tells something"):
        _first_conversation(stack, script)
    with steps.step("learnt", "What semmem learns from it, in the background"):
        _show_learnt(stack, script)
    with steps.step("recalled", "Second conversation, new session: is it remembered?"):
        _second_conversation(stack, script)
    with steps.step("isolation", f"Third conversation: {script.neighbour} asks the same"):
        _third_conversation(stack, script)
    stack.played = True
    if stay_up:
        _stay(stack, script)
    print(f"\nsemmem demo: ok: {steps.summary()}", flush=True)


# --- the conversations -----------------------------------------------------------------------------------------------


def _first_conversation(stack: Stack, script: Script) -> None:
    said = _say(stack, script, script.user, script.fact)
    if not said.streamed:
        raise Failed(f"the answer was not an SSE stream but {said.content_type!r}")
    _wait(stack, CAPTURE_S, lambda: "answered" in stack.metrics_by("llm_memory_turns_total", "status"), "answer seen")
    print(f"    the answer was captured from its SSE stream ({said.events} events)")


def _show_learnt(stack: Stack, script: Script) -> None:
    try:
        _wait(stack, LEARN_S, lambda: bool(stack.memories(script.user)), "a memory")
    except TimedOut:
        raise Failed(
            f"semmem learnt nothing from {script.fact!r} within {LEARN_S:.0f} s"
            f" (batches by status: {stack.metrics_by('llm_memory_extraction_total', 'status') or 'none yet'};"
            f" rejected: {stack.metrics_by('semmem_facts_rejected_total', 'reason') or 'none'})."
            " Without a language model semmem learns by rules, from what people say about themselves:"
            ' "My ... is ...", "I live in ...", "I prefer ...". Try such a FACT.',
            stack.semmem_log,
        ) from None
    for memory in stack.memories(script.user):
        print(f"    stored for {script.user}: [{memory['type']}] {memory['content']}  ({memory['id']})")


def _second_conversation(stack: Stack, script: Script) -> None:
    said = _say(stack, script, script.user, script.question)
    if said.outcome != "injected":
        raise Failed(f"nothing was put into the prompt: the outcome was {said.outcome!r}", stack.semmem_log)
    if said.prompt is None:
        print(f"    {stack.upstream} does not show its prompt; Envoy reports the outcome {said.outcome!r} of semmem")
        return
    if not any(script.expect in str(message.get("content")) for message in said.added):
        raise Failed(f"{script.expect!r} is not in what was added to the prompt", stack.semmem_log)
    print(f"    {script.expect!r} reached the model in a part of the prompt that the client did not send")


def _third_conversation(stack: Stack, script: Script) -> None:
    said = _say(stack, script, script.neighbour, script.question)
    if said.outcome == "injected" or said.added:
        raise Failed(f"{script.neighbour} was given somebody's memories", stack.semmem_log)
    if said.outcome not in ("no_hits", "general_fact"):
        raise Failed(f"semmem did not look: the outcome was {said.outcome!r}", stack.semmem_log)
    print(f"    nothing was added for {script.neighbour} (outcome {said.outcome})")


@dataclass(frozen=True, slots=True)
class Reply:
    """One exchange. ``prompt`` None: the model does not show what it received."""

    outcome: str | None
    content_type: str
    events: int
    sent: list[dict[str, Any]]
    prompt: list[dict[str, Any]] | None

    @property
    def streamed(self) -> bool:
        return self.content_type.startswith("text/event-stream") and self.events > 1

    @property
    def added(self) -> list[dict[str, Any]]:
        """Messages the model received and the client did not send."""
        return [message for message in self.prompt or [] if message not in self.sent]


def _say(stack: Stack, script: Script, user: str, text: str) -> Reply:
    """One conversation of one message, streamed to the terminal. Its session is new, as in a new chat window."""
    sent = [{"role": "user", "content": text}]
    headers = {
        "authorization": f"Bearer {DEMO_TOKEN_PREFIX}{user}",
        "x-session-id": f"demo-{secrets.token_hex(6)}",
    }
    body = {"model": script.model, "stream": True, "messages": sent}
    url = f"{stack.url}/v1/chat/completions"
    print(f"    {user}: {text}\n    model: ", end="", flush=True)
    events = 0
    with stack.http.stream("POST", url, json=body, headers=headers, timeout=120.0) as response:
        if response.status_code != 200:
            response.read()
            raise Failed(f"the model answered {response.status_code}: {response.text[:300]}", stack.envoy_log)
        for line in response.iter_lines():
            if line.startswith("data:"):
                events += 1
                print(_delta(line.removeprefix("data:").strip()), end="", flush=True)
    print(flush=True)
    prompt = stack.last_prompt()
    for message in prompt or []:
        print(f"    the model received  {message.get('role')}: {_indented(str(message.get('content')))}")
    outcome = response.headers.get("x-semmem-outcome")
    return Reply(outcome, response.headers.get("content-type", ""), events, sent, prompt)


def _delta(data: str) -> str:
    try:
        return str(json.loads(data)["choices"][0]["delta"].get("content") or "")
    except (ValueError, LookupError, TypeError, AttributeError):
        return ""


def _indented(text: str) -> str:
    return text.replace("\n", "\n        ")


# --- around them -----------------------------------------------------------------------------------------------------


def _forget_earlier_runs(stack: Stack, user: str) -> None:
    if forgotten := stack.forget(user):
        print(f"    forgot what {user} told in an earlier run ({forgotten} memories)")


def _wait(stack: Stack, timeout_s: float, done: Callable[[], bool], what: str) -> None:
    """Raises TimedOut when it does not happen, Failed when a process died meanwhile."""
    deadline = time.monotonic() + timeout_s
    while not done():
        stack.check_alive()
        if time.monotonic() > deadline:
            raise TimedOut(f"no {what} within {timeout_s:.0f} s", stack.semmem_log)
        time.sleep(POLL_S)


def _stay(stack: Stack, script: Script) -> None:
    body = json.dumps({"model": script.model, "messages": [{"role": "user", "content": script.question}]})
    quoted = body.replace("'", "'\\''")
    print(
        f"\nEverything stays up. Try it; the token demo-NAME makes you NAME, and {script.neighbour} knows nothing:\n\n"
        f"  curl -s {stack.url}/v1/chat/completions -H 'authorization: Bearer demo-{script.user}' \\\n"
        f"    -H 'content-type: application/json' -d '{quoted}'\n\n"
        f"What semmem knows:\n\n"
        f"  curl -s '{stack.api_url}/v1/memory?user_id={script.user}' \\\n"
        f"    -H 'authorization: Bearer {stack.admin_token}'\n\n"
        "Ctrl-C ends it.",
        flush=True,
    )
    while True:
        stack.check_alive()
        time.sleep(0.5)


def _tail(log: Path) -> str:
    try:
        return os.linesep.join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:])
    except OSError as error:
        return str(error)
