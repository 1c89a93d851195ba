"""What a text's vector costs by each library that can make it, in turns in one process: ``python -m bench.embedding``.

One thread each, without queue and cache. Processor time is the verdict: the least of all rounds, and the median.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from semmem.config.backends_section import EmbeddingSection
from semmem.ports.errors import EmbedderError
from semmem.wiring.models import local_embedder

QUESTION = "What is my budget for the Hawaii trip?"
LONGER = "Please remember that my sister Emma lives in Oslo and that she likes green tea more than coffee in winter"
BATCHES = {"a question": [QUESTION], "a longer text": [LONGER], "eight questions": [QUESTION] * 8}
LIBRARIES = {"PyTorch": {"backend": "torch"}, "ONNX": {"backend": "onnx"}, "ONNX int8": {"precision": "int8"}}

Make = Callable[[list[str]], object]


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds: the least processor time, its median, and the median on the clock."""

    cpu_least: float
    cpu_median: float
    wall_median: float


def measure(libraries: Mapping[str, Make], texts: Sequence[str], *, rounds: int) -> dict[str, Cost]:
    """Each library once a round, so that a machine that slows down slows all of them."""
    cpu: dict[str, list[float]] = {name: [] for name in libraries}
    wall: dict[str, list[float]] = {name: [] for name in libraries}
    for _ in range(rounds):
        for name, make in libraries.items():
            began, worked = time.perf_counter(), time.process_time()
            make(list(texts))
            cpu[name].append(1000 * (time.process_time() - worked))
            wall[name].append(1000 * (time.perf_counter() - began))
    return {name: Cost(min(cpu[name]), median(cpu[name]), median(wall[name])) for name in libraries}


def table(costs: Mapping[str, Mapping[str, Cost]]) -> str:
    """A row for each batch and library."""
    lines = ["| texts | library | CPU, least | CPU, median | wall, median |", "|---|---|---|---|---|"]
    for texts, found in costs.items():
        lines += [
            f"| {texts} | {name} | {cost.cpu_least:.2f} | {cost.cpu_median:.2f} | {cost.wall_median:.2f} |"
            for name, cost in found.items()
        ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.embedding", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=100)
    rounds = parser.parse_args().rounds
    try:
        made = {name: local_embedder(EmbeddingSection.model_validate(rules)) for name, rules in LIBRARIES.items()}
        libraries = {name: embedder.vectors for name, embedder in made.items()}
        measure(libraries, [QUESTION], rounds=3)  # loads them
    except EmbedderError as error:
        print(error, file=sys.stderr)
        return 1
    print(table({name: measure(libraries, texts, rounds=rounds) for name, texts in BATCHES.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
