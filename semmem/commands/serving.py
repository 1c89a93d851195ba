"""``semmem serve``, ``check``, ``mcp``, ``demo``: run the sidecar, say what is wrong before, lend its memories to a
model, and show it all."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import semmem
from semmem import __version__
from semmem.commands.asking import connected, settings_of
from semmem.commands.command import Exit, Failure
from semmem.commands.terminal import answer, document, say
from semmem.config import ConfigError, Problem, Settings, examine, remarks


class Hangups:
    """From when it is made SIGHUP never ends the process: what comes before there is anybody to ask is kept, what comes
    after is dropped."""

    def __init__(self) -> None:
        self._ask: Callable[[], object] | None = None
        self._early = False
        signal.signal(signal.SIGHUP, self._heard)

    def tell(self, loop: asyncio.AbstractEventLoop, ask: Callable[[], None]) -> None:
        """Call ``ask`` for each one, and once for those that came before."""
        self._ask = partial(loop.call_soon_threadsafe, ask)
        if self._early:
            ask()

    def end(self) -> None:
        """The interpreter takes its own handlers back before it ends."""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def _heard(self, _number: int, _frame: object) -> None:
        if self._ask is None:
            self._early = True
        else:
            with suppress(RuntimeError):  # the loop is closed
                self._ask()


if TYPE_CHECKING:
    from semmem.wiring.app import Addresses

log = logging.getLogger("semmem")

Read = Callable[[], tuple[Settings | None, list[Problem]]]


def check(given: argparse.Namespace) -> int:
    path, here = given.config, not given.elsewhere
    settings, problems = _examined(path, here=here)
    good = None if problems else settings
    notes = [] if good is None else [*remarks(good, os.environ, here=here), *_advice(good)]
    if not given.json:
        for problem in problems:
            say(str(problem))
    told = {"config": str(path), "ok": not problems, "problems": [asdict(each) for each in problems], "remarks": notes}
    verdict = f"{len(problems)} problem(s)" if problems else "ok"
    answer(given, told, (f"{path}: {line}" for line in (*notes, verdict)))
    return Exit.MISUSED if problems else 0


def _advice(settings: Settings) -> Iterator[str]:
    """How many users have room in process, where somebody set it; who is known; what will happen to a request."""
    from semmem.retrieval.index.sizes import advice

    memory, places, default = settings.memory, settings.identity.places, Settings()
    if memory.hot_cache != default.memory.hot_cache:
        yield advice(memory.hot_cache.bytes_max, memory.embedding.dimension)
    if memory.enabled and settings.identity == default.identity:
        yield (
            "warning: users are known by their sign-in at Envoy alone (its filter jwt_authn, section identity); without"
            " that filter nobody is known, and nothing is remembered"
        )
    if memory.enabled and places:
        learnt = "what they say is learnt from" if memory.auto_store else "nothing is learnt"
        yield (
            f"a request is given at most {memory.default_retrieval_limit} memories of the user that"
            f" {', then '.join(places)} names, within {settings.deadlines.phase_ms} ms, and {learnt}; of nobody, it"
            " passes as it came"
        )
    else:
        yield "every request passes as it came"


def _examined(path: Path | None, *, here: bool) -> tuple[Settings | None, list[Problem]]:
    """The settings and every problem; ``here``: also with what the configuration names on this machine."""
    from semmem.retrieval.decide.trained import Trained, UnusableWeights

    settings, problems = examine(path, os.environ, here=here)
    if here and settings is not None and not problems and (weights := settings.signals.weights):
        try:
            Trained.load(Path(weights))
        except UnusableWeights as unusable:
            remedy = "write it with semmem calibrate, or leave it empty"
            problems = [Problem("signals.weights", "", str(unusable), remedy)]
    return settings, problems


def serve(given: argparse.Namespace) -> int:
    from semmem.telemetry.log_lines import logging_to_stderr  # with numpy, as what is served

    path, hangups = given.config, Hangups()
    settings, problems = _examined(path, here=True)
    if settings is None or (problems and settings.log.format != "json"):
        raise ConfigError(problems)
    with logging_to_stderr(as_json=settings.log.format == "json", level=settings.log.level) as tell:
        if problems:
            for problem in problems:
                log.critical("the configuration: %s", problem)
            return Exit.MISUSED
        log.info(
            "semmem %s starts with %s; its data is in %s; loading takes seconds",
            __version__,
            path or "the defaults, because no --config names a file",
            Path(settings.data_dir).resolve(),
        )
        read = partial(_examined, path, here=True)
        return _run(settings, read, hangups, lambda addresses: tell(ready_line(addresses, as_json=given.json)))


def ready_line(addresses: Addresses, *, as_json: bool) -> str:
    """What is said on standard output once everything listens."""
    at = {"grpc": addresses.grpc, "api": addresses.api, "health": addresses.health}
    return json.dumps({"ready": at}) if as_json else "semmem ready " + " ".join(f"{k}={v}" for k, v in at.items())


def _run(settings: Settings, read: Read, hangups: Hangups, ready: Callable[[Addresses], None]) -> int:
    # Children are started by exec alone; gRPC's care for forks would print a line about each of them.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    try:
        import uvloop  # a faster event loop where it exists; nothing depends on it

        uvloop.run(_serve_until_told(settings, read, hangups, ready))
    except KeyboardInterrupt:  # before anything was there to stop; the interpreter would print a trace
        log.warning("interrupted before it was ready")
        return Exit.INTERRUPTED
    except Exception as error:
        log.critical("cannot go on: %s", error, exc_info=settings.log.level == "debug")
        return Exit.NOT_DONE
    finally:
        hangups.end()
    return 0


async def _serve_until_told(
    settings: Settings, read: Read, hangups: Hangups, ready: Callable[[Addresses], None]
) -> None:
    gc.disable()  # as where commands are imported
    from semmem.wiring.app import App  # imports every backend

    gc.enable()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    app = App(settings, read)
    hangups.tell(loop, app.reloading.ask)
    async with app.running() as addresses:
        ready(addresses)
        await app.until(stop)


def mcp(given: argparse.Namespace) -> int:
    from semmem.management.mcp_doors import serve_stdio  # imports an SDK

    api = connected(given, settings_of(given))
    asyncio.run(serve_stdio(api.url, api.token, given.user))
    return 0


CLONE = Path(semmem.__file__).parents[1]
"""Where the demo lies when this is a clone; nothing of it is installed with the package."""


def demo(given: argparse.Namespace) -> int:
    if not (CLONE / "demo" / "__main__.py").is_file():
        reason = "the demo is not installed with the package: clone the repository, and run semmem demo from there"
        raise Failure("NO_DEMO", str(CLONE), reason)
    asked = {"--upstream": given.upstream, "--data-dir": given.data_dir, "--port": given.port, "--envoy": given.envoy}
    options = [word for name, value in asked.items() if value is not None for word in (name, str(value))]
    began = time.monotonic()
    status = _played([*options, "--stay"] if given.stay else options, sys.stderr if given.json else None)
    if given.json:
        document({"passed": status == 0, "seconds": round(time.monotonic() - began, 1)})
    return status if status in (0, Exit.INTERRUPTED) else Exit.NOT_DONE


def _played(options: list[str], output: object) -> int:
    """Ctrl-C reaches the demo as well, which then ends what it started; this waits for it."""
    path = os.pathsep.join(filter(None, (str(CLONE), os.environ.get("PYTHONPATH"))))
    argv = [sys.executable, "-m", "demo", *options]
    with subprocess.Popen(argv, env=os.environ | {"PYTHONPATH": path}, stdout=output) as demo:  # type: ignore[call-overload]
        try:
            return int(demo.wait())
        except KeyboardInterrupt:
            demo.wait()
            return Exit.INTERRUPTED
