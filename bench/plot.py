"""Pictures of a run: ``python -m bench.plot figures.json docs/`` writes ``bench-*.svg``.

The same figures give the same bytes. A picture whose part was not measured is not written.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.cases import REQUEST_CASES, STREAM_CASES
from bench.scale_figures import FLOORS

Json = dict[str, Any]

SHARE_SHOWN_MAX = 4.0
"""Of a target; a bar that would be longer is cut, its number stands beside it."""
MET, MISSED, NEUTRAL = "#2a7f62", "#c0392b", "#5b7083"
STYLE = {
    "svg.hashsalt": "semmem",  # names inside the file, otherwise drawn by lot
    "svg.fonttype": "none",  # text stays text
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def main(argv: list[str]) -> int:
    """Exit status: 0 written, 2 asked wrongly."""
    if len(argv) != 2:
        print("usage: python -m bench.plot figures.json folder/", file=sys.stderr)
        return 2
    report, folder = json.loads(Path(argv[0]).read_text()), Path(argv[1])
    with mpl.rc_context(STYLE):
        for name, figure in pictures(report):
            file = folder / f"bench-{name}.svg"
            figure.savefig(file, format="svg", metadata={"Date": None})
            print(file)
    return 0


def pictures(report: Json) -> Iterator[tuple[str, Figure]]:
    """Name and picture of whatever the report has figures for."""
    if report["verdicts"]:
        yield "verdicts", verdicts(report["verdicts"])
    for name, draw in PARTS.items():
        if name in report["parts"] and report["parts"][name].get("systems") != {}:
            yield name, draw(report["parts"][name])


def verdicts(found: list[Json]) -> Figure:
    """Each figure as a share of its target: what does not reach the line is met."""
    figure = Figure(figsize=(8.0, 0.34 * len(found) + 1.1), layout="constrained")
    axes = figure.subplots()
    shares = [_share(one, one["value"]) for one in found]
    axes.barh([one["key"] for one in found], shares, color=[MET if one["met"] else MISSED for one in found], height=0.6)
    for row, (one, share) in enumerate(zip(found, shares, strict=True)):
        ends = [_share(one, quartile) for quartile in one["quartiles"] or ()]
        axes.plot(ends, [row] * len(ends), color="black", linewidth=1.2)
        sign = "≥" if one["at_least"] else "≤"
        beside = min(max(share, 1.0, *ends) if ends else max(share, 1.0), SHARE_SHOWN_MAX)
        axes.annotate(f"  {one['value']:.2f} ({sign} {one['target']:g})", (beside, row), va="center", size=8)
    axes.axvline(1.0, color="black", linewidth=0.8, linestyle="--")
    axes.invert_yaxis()
    axes.set_xlim(0, SHARE_SHOWN_MAX)
    axes.set_xlabel("share of the target; up to the dashed line it is met")
    return figure


def _share(one: Json, value: float) -> float:
    """Above 1 the target is missed. At least so much: how many times the target is of what was reached."""
    return float(one["target"] / max(value, 1e-9) if one["at_least"] else value / one["target"])


def requests(part: Json) -> Figure:
    """Median and p99 of each case, one panel for each number of connections."""
    levels = list(part["ratios"])
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    panels = figure.subplots(1, len(levels), sharey=True, squeeze=False)[0]
    titles = [case.title for case in REQUEST_CASES]
    for axes, level in zip(panels, levels, strict=True):
        rows = [part["cases"][case.name][level]["latency_ms"] for case in REQUEST_CASES]
        axes.barh(titles, [row["p50"] for row in rows], color=NEUTRAL, height=0.6)
        axes.plot([row["p99"] for row in rows], titles, "|", color="black", markersize=8)
        axes.set_xscale("log")
        axes.set_title(f"{level.removeprefix('c')} at a time", size=9)
        axes.set_xlabel("ms; bar: median, mark: p99")
    panels[0].invert_yaxis()
    return figure


def streams(part: Json) -> Figure:
    """First token and transit of a token by the number of streams, and the processor time of each token."""
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    first, transit, cpu = figure.subplots(1, 3)
    counts = [int(level.removeprefix("c")) for level in part["cases"][STREAM_CASES[0].name]]
    for case in STREAM_CASES:
        by_level = part["cases"][case.name]
        rows = list(by_level.values())
        first.plot(counts, [row["first_token_ms"]["p50"] for row in rows], "o-", label=case.title)
        transit.plot(counts, [row["token_transit_ms"]["p50"] for row in rows], "o-", label=case.title)
        if case.sidecar:
            spent = [row["cpu_us_per_token"][case.sidecar] for row in rows]
            cpu.plot(counts, spent, "o-", label=case.title, color=transit.lines[-1].get_color())
    for axes, title in ((first, "first token, ms"), (transit, "transit of a token, ms"), (cpu, "CPU of a token, µs")):
        axes.set_title(f"{title} (median)" if axes is not cpu else title, size=9)
        axes.set_xscale("log", base=2)
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("streams")
    transit.legend(frameon=False, fontsize=7)
    return figure


def saturation(part: Json) -> Figure:
    """p99 by the rate that is offered."""
    figure = Figure(figsize=(6.0, 3.2), layout="constrained")
    axes: Axes = figure.subplots()
    steps = part["steps"]
    axes.plot([step["rate"] for step in steps], [step["p50_ms"] for step in steps], "o-", label="p50", color=NEUTRAL)
    axes.plot([step["rate"] for step in steps], [step["p99_ms"] for step in steps], "o-", label="p99", color=MISSED)
    axes.axhline(part["deadline_ms"], color="black", linewidth=0.8, linestyle="--", label="deadline")
    bare = part["bare_forwards_a_second"]["beside_as_many_requests"]
    axes.axvline(bare, color=MET, linewidth=0.8, linestyle=":", label="bare forwards in full batches")
    axes.set_yscale("log")
    axes.set_xlabel("new questions offered a second")
    axes.set_ylabel("ms")
    axes.legend(frameon=False, fontsize=7)
    return figure


def scale(part: Json) -> Figure:
    """Median of each way of searching, beside its floor, by size."""
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    panels = figure.subplots(1, len(FLOORS), squeeze=False)[0]
    sizes = {" of ".join(f"{int(number):,}" for number in size.split("x")): row for size, row in part["sizes"].items()}
    for axes, (path, floor) in zip(panels, FLOORS.items(), strict=True):
        for name, color in ((path, MISSED), (floor, NEUTRAL)):
            medians = [row[name]["latency_ms"]["p50"] for row in sizes.values()]
            axes.plot(medians, list(sizes), "o-", color=color, label=name.replace("_", " "))
        axes.set_xscale("log")
        axes.set_xlabel("ms, median")
        axes.invert_yaxis()
        axes.legend(frameon=False, fontsize=7)
    for axes in panels[1:]:
        axes.set_yticklabels([])
    panels[0].set_ylabel("memories of users")
    return figure


def mem0(part: Json) -> Figure:
    """Median of a search of each system: embedding, and the rest; with what was found."""
    figure = Figure(figsize=(8.0, 0.5 * len(part["systems"]) + 1.1), layout="constrained")
    axes: Axes = figure.subplots()
    for name, row in part["systems"].items():
        embedding, rest = row["embed_ms"]["p50"], row["search_ms"]["p50"]
        axes.barh(name, embedding, color=NEUTRAL, height=0.6)
        axes.barh(name, rest, left=embedding, color=MISSED, height=0.6)
        axes.annotate(f"  recall@5 {row['recall_at_5']:.0%}", (embedding + rest, name), va="center", size=8)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("ms, median; grey: embedding the question, red: everything else")
    return figure


PARTS: Mapping[str, Callable[[Json], Figure]] = {
    "requests": requests,
    "streams": streams,
    "saturation": saturation,
    "scale": scale,
    "mem0": mem0,
}
"""The parts that have a picture of their own, beside the verdicts."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
