"""How libraries are compared: in turns, by processor time."""

from __future__ import annotations

from bench.embedding import measure, table


def test_libraries_take_turns_and_each_has_its_own_figures() -> None:
    asked: list[tuple[str, list[str]]] = []

    def quick(texts: list[str]) -> None:
        asked.append(("quick", texts))

    def slow(texts: list[str]) -> None:
        asked.append(("slow", texts))
        sum(range(300_000))

    costs = measure({"quick": quick, "slow": slow}, ["a", "b"], rounds=5)
    assert asked == [("quick", ["a", "b"]), ("slow", ["a", "b"])] * 5
    assert costs["slow"].cpu_least > costs["quick"].cpu_median
    assert costs["slow"].cpu_least <= costs["slow"].cpu_median
    assert [line.split("|")[2].strip() for line in table({"two": costs}).splitlines()[2:]] == ["quick", "slow"]
