"""What semmem counted against what was done to it: the words in its metrics, exact to one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.faults.sidecar import Sidecar
from tests.support.harness import SemmemProcess

PROVEN_WITHIN_S = 10.0
OUTCOMES = ("semmem_requests_total", "outcome")
TURNS = ("llm_memory_turns_total", "status")
"""Two metrics, and the label that holds the word."""

MEMORY = ("injected", "cold_dense")
"""Words for memories in the prompt: ranked as they should be, or, on a busy machine, as the store ranked them."""


class NotProven(AssertionError):
    """The fault was not seen to fire, so its cell says nothing."""


def proven(check: Callable[[], Any], what: str, within_s: float = PROVEN_WITHIN_S) -> str:
    """``what``, once the check holds. Raises NotProven."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            if check():
                return what
        except (httpx.TransportError, AssertionError):
            pass
        if time.monotonic() > deadline:
            raise NotProven(f"not seen: {what}")
        time.sleep(0.02)


def counted(semmem: SemmemProcess, metric: tuple[str, str]) -> Counter[str]:
    """The metric by word; words that were never counted are left out."""
    name, label = metric
    families = text_string_to_metric_families(semmem.metrics_text())
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    return +Counter({sample.labels[label]: int(sample.value) for sample in samples})


def settled(sidecar: Sidecar) -> str:
    """Every answer was seen to its end, so that nothing of before is counted from now on. Raises NotProven."""
    return proven(lambda: sidecar.semmem.metric("semmem_extproc_streams") == 0, "no stream is left")


def exactly(sidecar: Sidecar, metric: tuple[str, str], words: tuple[str, ...], times: int) -> Callable[[], str]:
    """Call the result to be told that from now on one of the words was counted so many times, and no other word was.

    It raises NotProven.
    """
    settled(sidecar)
    before = counted(sidecar.semmem, metric)

    def prove() -> str:
        proven(lambda: (counted(sidecar.semmem, metric) - before).total() >= times, f"{' or '.join(words)} +{times}")
        risen = counted(sidecar.semmem, metric) - before
        if risen.total() != times or not risen.keys() <= set(words):
            raise NotProven(f"counted {in_words(risen)}, not {' or '.join(words) or 'anything'} {times}")
        return f"{metric[1]} {in_words(risen)}"

    return prove


def in_words(counts: Counter[str]) -> str:
    return ", ".join(f"{word} {count}" for word, count in sorted(counts.items())) or "nothing"


@dataclass
class Ledger:
    """What clients were told (Envoy shows them semmem's word), to be held against what semmem says it did.

    Counters die with their process, so only what was told by the one that still runs is compared.
    """

    sidecar: Sidecar
    _told: list[tuple[int, int, str | None]] = field(default_factory=list)
    _opened: tuple[int, Counter[str]] = (0, Counter())

    def open(self) -> None:
        settled(self.sidecar)
        self._told.clear()
        self._opened = (self.sidecar.starts, counted(self.sidecar.semmem, OUTCOMES))

    def note(self, started: int, word: str | None) -> None:
        """A request ended that began when semmem had been started so often. None: nobody was told a word."""
        self._told.append((started, self.sidecar.starts, word))

    def close(self) -> tuple[str, list[str]]:
        """What was counted, in words, and where that is not what clients were told. Raises NotProven."""
        settled(self.sidecar)
        now = self.sidecar.starts
        before = self._opened[1] if self._opened[0] == now else Counter()
        risen = counted(self.sidecar.semmem, OUTCOMES)
        risen.subtract(before)
        told = [(begun, word) for begun, ended, word in self._told if ended == now]
        sure = Counter(word for begun, word in told if begun == now and word)
        unsure = sum(begun != now or not word for begun, word in told)
        return f"counted {in_words(+risen)}", miscounts(risen, sure, unsure)


def miscounts(risen: Counter[str], sure: Counter[str], unsure: int) -> list[str]:
    """``unsure`` are requests whose client left or was told nothing: semmem may have counted them, or another had."""
    missing, surplus = sure - risen, risen - sure
    found = [f"clients were told {in_words(missing)} more than was counted"] if missing else []
    if surplus.total() > unsure:
        found.append(f"counted {in_words(surplus)} for {unsure} requests without a word")
    return found
