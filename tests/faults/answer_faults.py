"""Models that refuse, break off, say nothing, or answer in ways that are rare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.faults.counts import NotProven
from tests.faults.forms import Form
from tests.faults.house import House, Trial
from tests.faults.upstream import Script

Run = Callable[[House, Form], Trial]
BOMB_MB = 1024
GROWTH_MB_MAX = 48
"""What semmem's memory may grow by at its highest while it reads a bomb: its limits, and what Python keeps."""


def model_answers(script: Script, ending: str, status: int | None = None) -> Run:
    """``ending`` is how semmem closes the turn, ``status`` what the client must see, when it is not the model's."""

    def run(house: House, form: Form) -> Trial:
        plain = house.ask(form, plain=True, script=script)
        if plain.status != (status or script.status):
            raise NotProven(f"status {plain.status} without semmem")
        closed = house.turns(ending)
        return Trial(plain, house.ask(form, script=script), f"{closed()}, status {plain.status}")

    return run


def bomb(house: House, form: Form) -> Trial:
    """A megabyte that unpacks to a gigabyte: it reaches the client packed, and semmem stops at its limit."""
    script = Script(bomb_mb=BOMB_MB)
    plain = house.ask(form, plain=True, script=script)
    closed, before = house.turns("answer_lost"), peak_mb(house.sidecar.pid)
    faulted = house.ask(form, script=script)
    proof, growth = closed(), peak_mb(house.sidecar.pid) - before
    wrong = (f"semmem's memory grew by {growth:.0f} MB",) if growth > GROWTH_MB_MAX else ()
    return Trial(plain, faulted, f"{proof}, {len(plain.body)} bytes, semmem's memory +{growth:.0f} MB", wrong)


def peak_mb(pid: int) -> float:
    """The most memory that the process ever had, in MB: VmHWM of proc(5)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


MODEL_FAULTS: dict[str, Run] = {
    "model answers 401": model_answers(Script(status=401), "refused"),
    "model answers 429": model_answers(Script(status=429), "refused"),
    "model answers 500": model_answers(Script(status=500), "answer_lost"),
    "model resets in mid-stream": model_answers(Script(reset_after=8), "answer_lost"),
    "model answers nothing": model_answers(Script(empty=True), "answer_lost"),
    "model closes without an answer": model_answers(Script(drop=True), "answer_lost", 503),
    "model answers 204": model_answers(Script(status=204, empty=True), "answer_lost"),
    "model redirects, 301": model_answers(Script(status=301), "answer_lost"),
    "model redirects, 302": model_answers(Script(status=302), "answer_lost"),
    "model redirects, 307": model_answers(Script(status=307, empty=True), "answer_lost"),
    "model answers 304": model_answers(Script(status=304, empty=True), "answer_lost"),
    "model sends 103 first": model_answers(Script(informs=True), "answered"),
    "model sends trailers": model_answers(Script(trailers=True), "answered"),
    "model sends many headers": model_answers(Script(flood=80), "answered"),
    "model sends too many headers": model_answers(Script(flood=200), "answer_lost", 502),
    "model announces too much": model_answers(Script(length_off=400), "answered"),
    "model announces too little": model_answers(Script(length_off=-400), "answer_lost"),
    "model announces two lengths": model_answers(Script(two_lengths=True), "answer_lost", 502),
    "model answers in gzip": model_answers(Script(zipped=True), "answered"),
    "model answers a gzip bomb": bomb,
}
