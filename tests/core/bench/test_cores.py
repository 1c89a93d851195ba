"""What a further core brings: who is asked in each layout, and the table of it."""

from __future__ import annotations

from bench.cases import REQUEST_CASES
from bench.cores import CASES, LAYOUTS, _of_second, table


def row(**changed: float) -> dict[str, float]:
    return {
        "a_second": 1049.6, "p50_ms": 29.6, "p99_ms": 81.2, "as_meant": 0.9987,
        "semmem_cores": 0.987, "other_cores": 0.61, "semmem_cpu_us": 940.4,
    } | changed  # fmt: skip


def test_the_second_semmem_is_asked_the_same_by_filters_of_its_own() -> None:
    for case in CASES:
        second = _of_second(case)
        assert second.sidecar == "second"
        assert [name.partition(".")[2] for name in second.filters] == [name.partition(".")[2] for name in case.filters]
        assert second.request(7).partition(b"\r\n\r\n")[2] == case.request(7).partition(b"\r\n\r\n")[2]
        assert second.outcomes == case.outcomes


def test_it_is_a_case_of_its_own_beside_the_first() -> None:
    names = [case.name for case in (*REQUEST_CASES, *map(_of_second, CASES))]
    assert len(set(names)) == len(names)


def test_only_semmems_filters_become_the_seconds() -> None:
    plain = next(case for case in REQUEST_CASES if case.sidecar == "noop")
    assert _of_second(plain).filters == plain.filters


def test_the_table_has_a_line_for_each_layout_and_case_in_whole_numbers_where_halves_say_nothing() -> None:
    found = {"layouts": {layout.name: {"known": row(), "search": row(a_second=197.4)} for layout in LAYOUTS}}
    _, title, head, *lines = table(found).split("\n")
    assert title == "Cores: 32 connections that never rest"
    assert head.split()[-4:] == ["CPU", "us", "a", "request"]
    assert len(lines) == 2 * len(LAYOUTS)
    assert lines[0].startswith("one process, one core: known ")
    assert lines[0].split()[-7:] == ["1050", "30", "81", "99.9%", "0.99", "0.61", "940"]
    assert lines[1].split()[-7] == "197"
