"""The figures that decide: what each is to reach, and whether it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.figures import grid

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Key:
    """``target``: at most so much, or with ``at_least`` at least. The docstring of docs/benchmarks.md defines it."""

    name: str
    title: str
    target: float
    at_least: bool = False

    def is_met(self, value: float) -> bool:
        return value >= self.target if self.at_least else value <= self.target


KEYS = (
    Key("skip_cpu_ratio", "rule skip: sidecar CPU / no-op mutate", 1.3),
    Key("gate_skip_p50_ratio", "decision nothing: added p50 / (no-op mutate + forward)", 1.2),
    Key("hot_p50_ratio", "hot search: added p50 / (no-op rewrite + forward)", 1.2),
    Key("known_cpu_ratio", "known question: sidecar CPU / no-op rewrite", 2.5),
    Key("cold_p50_ratio", "cold search: added p50 / (no-op rewrite + forward + Milvus)", 1.25),
    Key("skip_p99_ms", "rule skip: added p99 at one connection, ms", 3.0),
    Key("loop_lag_p99_ms", "event loop: lag p99 at the most connections, ms", 10.0),
    Key("token_transit_ratio", "token of a stored stream: transit / two no-op filters", 1.1),
    Key("hung_tokens", "tokens that pass while the sidecar is stopped, share", 1.0, at_least=True),
    Key("rss_mb", "resident after 1,000 requests and 1,000 memories, MB", 300.0),
    Key("ready_s", "start to ready, s", 2.0),
    Key("idle_ms", "CPU while idle, ms per second", 5.0),
    Key("efficiency", "new questions a second at saturation / bare batched forwards", 0.6, at_least=True),
    Key("mem0_search_ratio", "mem0 on Milvus / semmem, p50, embedding out of both", 25.0, at_least=True),
    Key("mem0_total_ratio", "mem0 on Milvus / semmem, p50, each as shipped", 3.0, at_least=True),
    Key("scale_hot_ratio", "100k memories of 10k users / 1k of 10, hot", 1.2),
    Key("scale_cold_ratio", "100k memories of 10k users / 1k of 10, cold on the server", 1.5),
    Key("prompt_cache_ttft", "llama.cpp: first token of a session's last turn, with memory / without", 1.15),
    Key("prompt_cache_kept", "requests that find the prompt before them in its cache, share", 0.95, at_least=True),
)
BY_NAME = {key.name: key for key in KEYS}


def verdicts(parts: Mapping[str, Json]) -> list[Json]:
    """One for each key that the parts have measured (under ``keys``, by name), in the order of KEYS.

    Raises KeyError for a key that is none of KEYS.
    """
    measured = {name: figure for part in parts.values() for name, figure in part.get("keys", {}).items()}
    if unknown := measured.keys() - BY_NAME.keys():
        raise KeyError(f"no such key: {', '.join(sorted(unknown))}")
    return [
        {
            "key": key.name,
            "title": key.title,
            "value": measured[key.name]["value"],
            "quartiles": measured[key.name]["quartiles"],
            "target": key.target,
            "at_least": key.at_least,
            "met": key.is_met(measured[key.name]["value"]),
        }
        for key in KEYS
        if key.name in measured
    ]


def verdict_table(found: list[Json]) -> str:
    """What people read first. ``rounds``: between these values lies the middle half of the rounds."""
    rows = [
        [
            one["key"],
            f"{one['value']:.2f}",
            f"{'>=' if one['at_least'] else '<='} {one['target']:g}",
            "yes" if one["met"] else "NO",
            "" if one["quartiles"] is None else "{:.2f} - {:.2f}".format(*one["quartiles"]),
            one["title"],
        ]
        for one in found
    ]
    return "\n".join(grid("key,value,target,met,rounds,what", rows))
