"""``semmem doctor``: walks from the configuration to what was learnt, and stops at the first link that is wrong.

Everything is read from outside: the configuration, semmem's health address and API, and Envoy's admin page. Nothing is
sent through Envoy and nothing is changed.
"""

import argparse
import os
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from semmem.commands.asking import connected, settings_of
from semmem.commands.command import Exit, Failure
from semmem.commands.envoy_reading import EnvoyAdmin, Filter
from semmem.commands.terminal import answer
from semmem.config import Settings, examine
from semmem.request.outcome import Outcome

TIMEOUT_S = 5.0
LAST = 50
"""So many of the last requests are looked at."""
WRONG_SHARE = 0.2
"""From this share on a word that is no good is wrong."""

Totals = dict[str, Counter[str]]
Seen = tuple["State", *tuple[str, ...]]
"""What became of a link, what was seen there, and what to do about it, if anything."""


class State(StrEnum):
    """Of a link: as it should be, not as it should be, or nothing that could be looked at."""

    WORKS = "works"
    WRONG = "WRONG"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """One link of the chain. ``seen``: what was found there. ``remedy``: what to do about it."""

    link: str
    state: State
    seen: str
    remedy: str = ""


WRONG_OUTCOMES: dict[Outcome, tuple[str, str]] = {
    Outcome(word): (means, remedy)
    for word, (means, remedy) in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}
"""What a word means that is no good, where it is said often, and what to do."""


class Chain:
    """The links, in the order in which a request meets them."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._given = given

    def findings(self) -> Iterator[Finding]:
        """One for each link; after one that is wrong nothing is worth knowing."""
        for name, link in (
            ("configuration", self._configuration),
            ("semmem", self._semmem),
            ("parts", self._parts),
            ("Envoy", self._envoy_answers),
            ("filters", self._filters),
            ("routes", self._routes),
            ("cluster", self._cluster),
            ("requests", self._requests),
            ("outcomes", self._outcomes),
            ("answers", self._answers),
            ("learning", self._learning),
        ):
            try:
                finding = Finding(name, *link())
            except (httpx.HTTPError, httpx.InvalidURL, ValueError, LookupError) as error:
                remedy = "is every address right (--health, --envoy-admin), and does everything still run?"
                seen = f"the answer broke off, or is not understood ({_said(error)})"
                finding = Finding("reading", State.WRONG, seen, remedy)
            yield finding
            if finding.state is State.WRONG:
                return

    # --- semmem ------------------------------------------------------------------------------------------------------

    def _configuration(self) -> Seen:
        settings, problems = examine(self._given.config, os.environ, here=False)
        name = str(self._given.config or "the defaults")
        if settings is None or problems:
            return State.WRONG, f"{problems[0]}", f"semmem check {name} says everything that is wrong"
        return State.WORKS, f"{name}; who is asking: {_identity(settings)}"

    @cached_property
    def _settings(self) -> Settings:
        return settings_of(self._given)

    @cached_property
    def _health(self) -> str:
        told: str | None = self._given.health
        return (told or f"http://{self._settings.listeners.health.address}").rstrip("/")

    def _semmem(self) -> Seen:
        try:
            answer = _get(f"{self._health}/healthz")
        except httpx.HTTPError as error:
            remedy = "start it (semmem serve --config FILE), or name its health address with --health"
            return State.WRONG, f"{self._health} does not answer ({_said(error)})", remedy
        if not answer.is_success or answer.text.strip() != "ok":
            return State.WRONG, f"{self._health} is not semmem's health address", "name it with --health"
        return State.WORKS, f"runs; its health address is {self._health}"

    def _parts(self) -> Seen:
        try:
            told = _get(f"{self._health}/readyz").json()
            why: dict[str, str] = told.pop("why", {})
        except (httpx.HTTPError, ValueError) as error:
            return State.WRONG, f"{self._health}/readyz does not answer ({_said(error)})", "look at semmem's log"
        if why:
            name, reason = next(iter(why.items()))
            return State.WRONG, f"{name}: {reason}", "semmem's log says more; semmem status asks each part anew"
        return State.WORKS, f"ready: {', '.join(told)}"

    # --- Envoy -------------------------------------------------------------------------------------------------------

    @cached_property
    def _envoy(self) -> EnvoyAdmin:
        return EnvoyAdmin(self._given.envoy_admin.rstrip("/"))

    def _envoy_answers(self) -> Seen:
        try:
            state = self._envoy.state()
        except httpx.HTTPError as error:
            remedy = "start Envoy, or name its admin page with --envoy-admin (in Kubernetes: kubectl port-forward)"
            return State.WRONG, f"{self._given.envoy_admin} does not answer ({_said(error)})", remedy
        except ValueError:
            remedy = "name Envoy's admin page with --envoy-admin"
            return State.WRONG, f"{self._given.envoy_admin} is no admin page of Envoy's", remedy
        if state != "LIVE":
            return State.WRONG, f"its state is {state}", "look at Envoy's log"
        return State.WORKS, "serves"

    @property
    def _roles(self) -> tuple[str, ...]:
        """Of the filters that there must be: one alone is to hear answers too, or none is, where so configured."""
        return ("mutate", "observe") if self._settings.capture.mode == "observe" else ("mutate",)

    def _filter_of(self, role: str) -> Filter:
        return next(each for each in self._envoy.filters if each.role == role)

    def _filters(self) -> Seen:
        found = self._envoy.filters
        if not found:
            return State.WRONG, "no ext_proc filter of Envoy's asks semmem", "take both from deploy/envoy.yaml"
        for role in self._roles:
            if all(each.role != role for each in found):
                return State.WRONG, f"no filter sends {_SENDS[role]} ({_BY[role]})", "take it from deploy/envoy.yaml"
        wrong = next(filter(None, (_wrong_filter(self._filter_of(role)) for role in self._roles)), None)
        return wrong or (State.WORKS, ", ".join(each.name for each in found))

    def _routes(self) -> Seen:
        served: dict[str, list[str]] = {}
        for role in self._roles:
            each = self._filter_of(role)
            on, off = self._envoy.routes_with(each.name)
            if not each.enabled and not on:
                remedy = "typed_per_filter_config, as the routes of deploy/envoy.yaml have it"
                return State.WRONG, f"{each.name} is disabled, and no route switches it on", remedy
            served[role] = on if not each.enabled else [f"all but {', '.join(off)}"] if off else ["all"]
        asked, answered = (", ".join(served[role]) for role in (self._roles[0], self._roles[-1]))
        if asked != answered:
            remedy = "switch both filters on for the same routes: what only one of them sees is not learnt from"
            return State.WRONG, f"requests of {asked} are sent, and answers of {answered}", remedy
        return State.WORKS, asked

    def _cluster(self) -> Seen:
        name = self._filter_of("mutate").cluster
        own = self._settings.listeners.grpc.address
        hosts = self._envoy.hosts(name)
        if not hosts:
            why = "has no host" if hosts is not None else "is not there"
            return State.WRONG, f"Envoy's cluster {name} {why}", f"its address is where semmem listens: {own}"
        healthy = [address for address, is_healthy in hosts if is_healthy]
        if not healthy:
            seen = f"no host of Envoy's cluster {name} is healthy: {', '.join(address for address, _ in hosts)}"
            return State.WRONG, seen, f"semmem listens at {own} by this configuration; the cluster must speak HTTP/2"
        return State.WORKS, f"{name}: {', '.join(healthy)}"

    # --- what came by ------------------------------------------------------------------------------------------------

    @cached_property
    def _totals(self) -> Totals:
        from semmem.telemetry.totals import totals_of

        return totals_of(_get(f"{self._health}/metrics").text)

    def _requests(self) -> Seen:
        seen = self._totals.get("semmem_requests_total", Counter()).total()
        if seen:
            return State.WORKS, f"{seen} since semmem started"
        if sent := self._envoy.requests():
            on, _ = self._envoy.routes_with(self._filter_of("mutate").name)
            remedy = f"are they POSTs to {', '.join(on) or 'a route with semmem'}?"
            return State.WRONG, f"Envoy has had {sent}, and semmem none", remedy
        return State.UNKNOWN, "none yet", "send one to Envoy, and ask again"

    @cached_property
    def _last(self) -> Counter[str]:
        """Outcome words of the last requests; without a token those of all since the start."""
        try:
            told: Any = connected(self._given, self._settings, timeout_s=TIMEOUT_S).call("GET", "/v1/activity")
            return Counter(each["outcome"] for each in told["requests"][-LAST:])
        except Failure:
            return self._totals.get("semmem_requests_total", Counter())

    def _outcomes(self) -> Seen:
        words = self._last
        if not words:
            return State.UNKNOWN, "none yet"
        counted = ", ".join(f"{word} {count}" for word, count in words.most_common(6))
        for word, count in words.most_common():
            if count < WRONG_SHARE * words.total():
                break
            if word in WRONG_OUTCOMES:
                what, remedy = WRONG_OUTCOMES[Outcome(word)]
                remedy = remedy or f"semmem was told to look at: {_identity(self._settings)}"
                return State.WRONG, f"{what}: {word} {count} of the last {words.total()}", remedy
        return State.WORKS, counted

    def _answers(self) -> Seen:
        turns = self._totals.get("llm_memory_turns_total", Counter())
        asked = sum(count for word, count in self._last.items() if word in _LEARNT_FROM)
        if turns.total():
            lost = turns["answer_lost"] + turns["unknown_encoding"]
            if lost > WRONG_SHARE * turns.total() and lost > turns["answered"]:
                seen = f"{lost} of {turns.total()} answers were lost, or compressed"
                remedy = "what the model server answers must be 2xx and whole, in an encoding that semmem reads"
                return State.WRONG, seen, remedy
            return State.WORKS, ", ".join(f"{word} {count}" for word, count in turns.items())
        if asked and self._settings.capture.mode == "observe":
            remedy = "is the observe filter on for these routes, and forwarding_namespaces [semmem] in it?"
            return State.WRONG, f"{asked} requests were read, and no answer was seen", remedy
        return State.UNKNOWN, "none yet"

    def _learning(self) -> Seen:
        batches = self._totals.get("llm_memory_extraction_total", Counter())
        failed = batches["extraction_failed"] + batches["gave_up"]
        if dropped := self._totals.get("semmem_journal_dropped_total", Counter()).total():
            return State.WRONG, f"{dropped} halves of turns were lost to a full queue", "the journal is too slow"
        if failed > batches.total() / 2:
            remedy = "look at external_models (memory_extraction) and at semmem's log"
            return State.WRONG, f"{failed} of {batches.total()} batches failed", remedy
        at_once = self._totals.get("semmem_at_once_facts_total", Counter())
        facts = self._totals.get("semmem_fact_actions_total", Counter()) + at_once
        if facts.total():
            return State.WORKS, ", ".join(f"{word} {count}" for word, count in facts.items())
        about = "nothing that users said was worth keeping yet" if batches.total() else "nothing was learnt from yet"
        remedy = "say something lasting of yourself, such as: I live in Oslo"
        return State.UNKNOWN, about, remedy


_SENDS = {"mutate": "requests", "observe": "answers"}
_BY = {"mutate": "without observability_mode", "observe": "observability_mode: true"}
_LEARNT_FROM = frozenset(
    {Outcome.INJECTED, Outcome.NO_HITS, Outcome.COLD_DENSE, Outcome.GENERAL_FACT, Outcome.GREETING}
)


def _wrong_filter(each: Filter) -> Seen | None:
    """What is wrong with how it is configured, in the order in which it would show."""
    mutates = each.role == "mutate"
    if not each.has("failure_mode_allow"):
        return State.WRONG, f"{each.name} fails requests when semmem is away", "failure_mode_allow: true"
    mode, wanted = ("request_body_mode", "BUFFERED") if mutates else ("response_body_mode", "STREAMED")
    if each.has("processing_mode", mode) != wanted:
        return State.WRONG, f"{each.name} does not send {_SENDS[each.role]} whole", f"processing_mode.{mode}: {wanted}"
    path = "receiving_namespaces" if mutates else "forwarding_namespaces"
    if "semmem" not in (each.has("metadata_options", path, "untyped") or ()):
        remedy = f"metadata_options: {{{path}: {{untyped: [semmem]}}}}"
        return State.WRONG, f"{each.name} does not pass on which request an answer is for", remedy
    return None


def _identity(settings: Settings) -> str:
    return ", then ".join(settings.identity.places) or "nowhere"


def _get(url: str) -> httpx.Response:
    return httpx.get(url, timeout=TIMEOUT_S, trust_env=False)


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


def doctor(given: argparse.Namespace) -> int:
    found = list(Chain(given).findings())
    wrong = found[-1] if found[-1].state is State.WRONG else None
    told = {"ok": wrong is None, "links": [asdict(each) for each in found]}
    answer(given, told, (line for each in found for line in shown(each)))
    return Exit.NOT_DONE if wrong else Exit.DONE


def shown(finding: Finding) -> Iterator[str]:
    """A line, and another one for what to do."""
    yield f"{finding.link:14} {finding.state:8} {finding.seen}"
    if finding.remedy:
        yield f"{'':14} {'':8} what to do: {finding.remedy}"
