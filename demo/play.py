"""The demo: starts everything, plays the two conversations, checks what was promised, says how long it took."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path

import httpx

from demo.conversation import Reply, say
from demo.envoy import DEMO_USER
from demo.folder import Folder
from demo.processes import POLL_S, Failed, Stopped, TimedOut, ignore_signals, signals_raise
from demo.stack import Stack
from demo.stand_in import MODEL

LEARN_S = 20.0
CAPTURE_S = 5.0
LOG_TAIL_LINES = 20
BATCHES = "llm_memory_extraction_total"
LEARNT = {"stored", "unchanged"}
"""What comes of a batch that tells something about its user; ``unchanged``: it was known."""
LATE = {"timeout", "store_timeout", "embedder_busy"}
"""Outcomes of a request that a machine with much else to do had no time for."""
NEIGHBOURS = ("bob", "carol")


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


def main(
    *,
    stay_up: bool,
    upstream: str | None,
    environ: Mapping[str, str],
    data_dir: Path,
    first_port: int,
    envoy_binary: Path,
) -> int:
    """Plays the demo; the exit status: 0 when every promise was kept, 1 when not, 128 + signal when interrupted.

    ``upstream`` is a real model's base URL in place of the stand-in; its key, if it needs one, is in the environment
    variable UPSTREAM_API_KEY. Everything written lies in ``data_dir``, what earlier runs left there is kept.
    ``first_port`` and the two after it are listened on; 0 for any. Every process that was started is ended.
    """
    stack = Stack(
        Folder(data_dir), first_port=first_port, envoy_binary=envoy_binary, upstream=upstream, environ=environ
    )
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
    with steps.step("start", f"Starting everything in {stack.folder.path}"):
        stack.start(print)
        known = _known_from_earlier_runs(stack, script.user)
        neighbour = _somebody_unknown(stack, script.user)
    with steps.step("first conversation", f"First conversation: {script.user} tells something"):
        session, learnt = _first_conversation(stack, script)
    with steps.step("learnt", "What semmem learns from it, in the background"):
        _show_learnt(stack, script, session, learnt, known)
    with steps.step("recalled", "Second conversation, new session: is it remembered?"):
        _second_conversation(stack, script)
    with steps.step("isolation", f"Third conversation: {neighbour} asks the same"):
        _third_conversation(stack, script, neighbour)
    stack.played = True
    if stay_up:
        _stay(stack, script, neighbour)
    print(f"\nsemmem demo: ok: {steps.summary()}", flush=True)


# --- the conversations -----------------------------------------------------------------------------------------------


def _first_conversation(stack: Stack, script: Script) -> tuple[str, Counter[str]]:
    """Its session, and the batches before it."""
    before = _batches(stack)
    said = say(stack, script.model, script.user, script.fact)
    if not said.streamed:
        raise Failed(f"the answer was not an SSE stream but {said.content_type!r}")
    _wait(stack, CAPTURE_S, lambda: "answered" in stack.metrics_by("llm_memory_turns_total", "status"), "answer seen")
    print(f"    the answer was captured from its SSE stream ({said.events} events)")
    return said.session, before


def _show_learnt(stack: Stack, script: Script, session: str, before: Counter[str], known: set[str]) -> None:
    def learnt() -> bool:
        stack.end_session(script.user, session)
        return bool((_batches(stack) - before).keys() & LEARNT)

    try:
        _wait(stack, LEARN_S, learnt, "batch that was learnt from")
    except TimedOut:
        raise _nothing_learnt(stack, script) from None
    for memory in stack.memories(script.user):
        source = "known from an earlier run" if memory["id"] in known else f"stored for {script.user}"
        print(f"    {source}: [{memory['type']}] {memory['content']}  ({memory['id']})")


def _nothing_learnt(stack: Stack, script: Script) -> Failed:
    return Failed(
        f"semmem learnt nothing from {script.fact!r} within {LEARN_S:.0f} s"
        f" (batches by status: {dict(_batches(stack)) or 'none yet'};"
        f" rejected: {stack.metrics_by('semmem_facts_rejected_total', 'reason') or 'none'})."
        " Without a language model semmem learns by rules, from what people say about themselves:"
        ' "My ... is ...", "I live in ...", "I prefer ...". Try such a FACT.',
        stack.semmem_log,
    )


def _batches(stack: Stack) -> Counter[str]:
    """How many batches of turns were learnt from, by what came of them."""
    return Counter({status: int(number) for status, number in stack.metrics_by(BATCHES, "status").items()})


def _asked(stack: Stack, script: Script, user: str) -> Reply:
    """The question, in a new session; once more where a machine with much else to do was late."""
    said = say(stack, script.model, user, script.question)
    return say(stack, script.model, user, script.question) if said.outcome in LATE else said


def _second_conversation(stack: Stack, script: Script) -> None:
    said = _asked(stack, script, script.user)
    if said.outcome != "injected":
        raise Failed(f"nothing was put into the prompt: the outcome was {said.outcome!r}", stack.semmem_log)
    if said.prompt is None:
        print(f"    {stack.upstream} does not show its prompt; Envoy reports the outcome {said.outcome!r} of semmem")
        return
    if not any(script.expect in str(message.get("content")) for message in said.added):
        raise Failed(f"{script.expect!r} is not in what was added to the prompt", stack.semmem_log)
    print(f"    {script.expect!r} reached the model in a part of the prompt that the client did not send")


def _third_conversation(stack: Stack, script: Script, neighbour: str) -> None:
    said = _asked(stack, script, neighbour)
    if said.outcome == "injected" or said.added:
        raise Failed(f"{neighbour} was given somebody's memories", stack.semmem_log)
    if said.outcome not in ("no_hits", "general_fact"):
        raise Failed(f"semmem did not look: the outcome was {said.outcome!r}", stack.semmem_log)
    print(f"    nothing was added for {neighbour} (outcome {said.outcome})")


# --- around them -----------------------------------------------------------------------------------------------------


def _known_from_earlier_runs(stack: Stack, user: str) -> set[str]:
    """The ids of what semmem knows already, after saying so."""
    if not stack.found_memories:
        return set()
    remove = "" if stack.folder.path.name in (".run", ".demo") else f" DATA_DIR={stack.folder.path}"
    known = stack.memories(user)
    print(
        f"    found the memories of an earlier run ({user} has {len(known)}): kept, and recalled below."
        f" `make clean-run{remove}` removes them"
    )
    return {memory["id"] for memory in known}


def _somebody_unknown(stack: Stack, user: str) -> str:
    """A neighbour about whom nothing is known, not from an earlier run either."""
    names = (name for name in chain(NEIGHBOURS, (f"guest{i}" for i in count(1))) if name != user)
    return next(name for name in names if not stack.memories(name))


def _wait(stack: Stack, timeout_s: float, done: Callable[[], bool], what: str) -> None:
    """Raises TimedOut when it does not happen, Failed when a process died meanwhile."""
    deadline = time.monotonic() + timeout_s
    while not done():
        stack.check_alive()
        if time.monotonic() > deadline:
            raise TimedOut(f"no {what} within {timeout_s:.0f} s", stack.semmem_log)
        time.sleep(POLL_S)


def _stay(stack: Stack, script: Script, neighbour: str) -> None:
    body = json.dumps({"model": script.model, "messages": [{"role": "user", "content": script.question}]})
    quoted = body.replace("'", "'\\''")
    print(
        f"\nEverything stays up. Try it; the token demo-NAME makes you NAME, and {neighbour} knows nothing:\n\n"
        f"  curl -s {stack.url}/v1/chat/completions -H 'authorization: Bearer demo-{script.user}' \\\n"
        f"    -H 'content-type: application/json' -d '{quoted}'\n\n"
        f"What semmem knows:\n\n"
        f"  curl -s '{stack.api_url}/v1/memory?user_id={script.user}' \\\n"
        f"    -H 'authorization: Bearer {stack.admin_token}'\n\n"
        f"The same as pages, with that token to sign in: {stack.api_url}/studio/\n\n"
        f"{_after_a_restart(stack)}Ctrl-C ends it.",
        flush=True,
    )
    while True:
        stack.check_alive()
        time.sleep(0.5)


def _after_a_restart(stack: Stack) -> str:
    if not stack.first_port:  # any free port: another one next time
        return ""
    return f"Both work after a restart as well: ports, token and memories ({stack.folder.path}) stay the same.\n"


def _tail(log: Path) -> str:
    try:
        return os.linesep.join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:])
    except OSError as error:
        return str(error)
