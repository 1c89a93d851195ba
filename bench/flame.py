"""Flame graphs of a live semmem under cases of the benchmark: ``make flame``.

py-spy samples the process from outside, native frames among them, while one case is asked again and again over one
connection; idle, while nothing is. It is no part of the usual environments: ``make flame`` sets up its own.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

import uvloop

from bench.blocks import REQUEST_TIMEOUT_S
from bench.cases import REQUEST_CASES, Case
from bench.client import connect
from bench.plan import FULL, Place, Plan
from bench.road import Road, road
from demo.processes import Failed
from demo.stack import HOME

CASES = tuple(case for case in REQUEST_CASES if case.name in ("skip", "known", "search"))
SAMPLES_A_SECOND = 500
CONNECTIONS = 4
SHARE_MIN = 0.005
"""Of the samples: a frame that is narrower says nothing to people."""
WIDTH, ROW, CHAR = 1200, 16, 6.5
WAITING = {"PyThread_acquire_lock_timed", "epoll_wait", "epoll_pwait", "nanosleep", "clock_nanosleep"}
"""py-spy holds a thread in one of these for running when it reads native frames."""
COLOURS = {"semmem": "#f4a261", "python": "#f6d186", "native": "#a8c5da"}


def main(argv: list[str] | None = None) -> int:
    """Exit status: 0 written, 1 failed."""
    parser = argparse.ArgumentParser(prog="bench.flame", description=__doc__)
    parser.add_argument("--py-spy", type=Path, required=True)
    parser.add_argument("--seconds", type=int, default=15, help="of each case")
    parser.add_argument("--out", type=Path, default=HOME / "docs")
    arguments = parser.parse_args(argv)
    try:
        with tempfile.TemporaryDirectory(prefix="semmem-flame-") as folder:
            place = Place(HOME / ".venv-envoy" / "bin" / "envoy", Path(folder))
            _draw_all(place, FULL, arguments)
    except Failed as failure:
        print(f"flame: {failure}", file=sys.stderr)
        return 1
    return 0


def _draw_all(place: Place, plan: Plan, arguments: argparse.Namespace) -> None:
    with road(place, CASES, plan) as here:
        for case in (*CASES, None):
            name = case.name if case else "idle"
            folded = place.folder / f"{name}.folded"
            uvloop.run(_sampled(here, case, folded, arguments))
            title = f"{case.title if case else 'idle'}: {arguments.seconds} s, functions of Python and native frames"
            draw(folded.read_text(), title, arguments.out / f"flame-{name}.svg")


async def _sampled(here: Road, case: Case | None, folded: Path, arguments: argparse.Namespace) -> None:
    """Raises Failed."""
    sampler = await asyncio.create_subprocess_exec(
        *(str(arguments.py_spy), "record", "--native", "--format", "raw", "--function"),
        *("--rate", str(SAMPLES_A_SECOND), "--duration", str(arguments.seconds)),
        *("--pid", str(here.semmem.pid), "--output", str(folded)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    connections = await connect(here.port, CONNECTIONS)
    for number in itertools.count() if case else ():
        assert case is not None
        if sampler.returncode is not None:
            break
        numbered = enumerate(connections, CONNECTIONS * number)
        await asyncio.gather(*(each.ask(case.request(at), REQUEST_TIMEOUT_S) for at, each in numbered))
    if await sampler.wait():
        raise Failed("py-spy has seen nothing: it needs the right to trace other processes")
    for connection in connections:
        connection.close()


@dataclass
class Frame:
    """A function below those that called it, with its samples and its callees'."""

    samples: int = 0
    callees: dict[str, Frame] = field(default_factory=dict)


def tree(folded: str) -> Frame:
    """From lines ``outermost;...;innermost samples``, without those of threads that wait."""
    root = Frame()
    for line in folded.splitlines():
        stack, _, samples = line.rpartition(" ")
        if any(name.partition(" (")[0] in WAITING for name in stack.split(";")):
            continue
        frame = root
        frame.samples += int(samples)
        for name in stack.split(";"):
            frame = frame.callees.setdefault(name, Frame())
            frame.samples += int(samples)
    return root


def draw(folded: str, title: str, file: Path) -> None:
    """Write the picture of folded stacks."""
    root = tree(folded)
    boxes = list(_boxes(root, 0.0, 0, WIDTH / max(root.samples, 1), SHARE_MIN * root.samples))
    height = (max((depth for _, depth, _, _ in boxes), default=0) + 3) * ROW
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace"',
        'font-size="11">',
        f'<text x="4" y="12">{escape(title)}; {root.samples} samples</text>',
        *(_box(name, left, height - (depth + 1) * ROW, width) for name, depth, left, width in boxes),
        "</svg>",
    ]
    file.write_text("\n".join(lines) + "\n")


def _boxes(
    frame: Frame, left: float, depth: int, scale: float, least: float
) -> Iterator[tuple[str, int, float, float]]:
    """Name, depth, left edge and width of every callee, the outermost first."""
    for name, callee in sorted(frame.callees.items()):
        if callee.samples >= least:
            yield name, depth, left, callee.samples * scale
            yield from _boxes(callee, left, depth + 1, scale, least)
        left += callee.samples * scale


def _box(name: str, left: float, top: float, width: float) -> str:
    function, _, place = name.partition(" (")
    kind = "native" if ".py" not in place else "semmem" if "semmem/" in place else "python"
    shown = function if len(function) * CHAR < width - 4 else function[: max(0, int((width - 4) / CHAR))]
    text = f'<text x="{left + 2:.1f}" y="{top + 12:.0f}">{escape(shown)}</text>' if len(shown) > 2 else ""
    return (
        f'<g><title>{escape(name)}: {width / WIDTH:.1%}</title><rect x="{left:.1f}" y="{top:.0f}" width="{width:.1f}"'
        f' height="{ROW - 1}" fill="{COLOURS[kind]}"/>{text}</g>'
    )


if __name__ == "__main__":
    sys.exit(main())
