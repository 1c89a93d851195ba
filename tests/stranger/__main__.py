"""``python -m tests.stranger [--only clone,wheel]``: README's road from nothing to the first memory, run as it stands.

``clone``: a fresh clone and its `make setup`. ``wheel``: an environment of its own with the wheel and the embedding
model alone; Envoy is this clone's. The model of both is the stand-in that README names. They use README's own ports, so
nothing else may listen there: exit status 2. Exit status 1 when a command did not do what README says.
"""

from __future__ import annotations

import argparse
import re
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from demo.processes import Failed, Stopped, signals_raise
from demo.stack import HOME
from deploy.artefacts import Broken, build_packages, exported, run
from tests.stranger.road import Missing, Road, road
from tests.stranger.shell import Shell

PORTS = {
    8000: "the model",
    10000: "Envoy",
    9901: "Envoy's admin page",
    50051: "semmem, for Envoy",
    8080: "semmem's API",
    9090: "semmem's health checks",
}
SETUP_S = 3600.0
SHOWN_CHARS = 4000


@dataclass(slots=True)
class Walk:
    """How one way went. ``seconds``: from nothing to the first memory, where it came."""

    commands: int = 0
    seconds: float | None = None
    problem: str = ""


Way = Callable[[Shell, Path, Walk], None]
"""The folder is one for what the stranger does not see."""


def clone(shell: Shell, _folder: Path, walk: Walk) -> None:
    began = time.monotonic()
    run("git", "clone", "--quiet", HOME, shell.home)
    way = road((shell.home / "README.md").read_text())
    shell.run("setup", way.setup, SETUP_S)
    follow(way, shell, way.model, began, walk)


def wheel(shell: Shell, folder: Path, walk: Walk) -> None:
    source = exported(folder)
    build_packages(source, folder)
    way = road((source.tree / "README.md").read_text())
    (shell.home / "deploy").mkdir()
    shutil.copy(source.tree / "deploy" / "envoy.yaml", shell.home / "deploy")
    (shell.home / ".venv-envoy").symlink_to(HOME / ".venv-envoy")
    (source.tree / ".venv").symlink_to(HOME / ".venv")  # the stand-in model's alone
    began = time.monotonic()
    install = way.install.replace(" . ", f" {folder / f'semmem-{source.version}-py3-none-any.whl'} ")
    shell.run("install", f"python3 -m venv .venv\n.venv/bin/{install}", SETUP_S)
    follow(way, shell, f"cd {source.tree}\n{way.model}", began, walk)


WAYS: Mapping[str, Way] = {"clone": clone, "wheel": wheel}


def follow(way: Road, shell: Shell, model: str, began: float, walk: Walk) -> None:
    """What both ways share: README's steps 2 to 6."""
    shell.run("configure", way.configure)
    shell.start("model", model, r"^model ready")
    shell.start("semmem", way.serve, r"^semmem ready")
    envoy = shell.start("envoy", way.envoy, r"starting workers")
    shell.run("tell", way.tell)
    shell.until("memories", way.look, way.fact)
    walk.seconds = time.monotonic() - began
    shell.run("client", f"python3 -m venv .venv-client\n.venv-client/bin/{way.client}", SETUP_S)
    answer = shell.run("ask", f".venv-client/bin/python - <<'END'\n{way.ask}END")
    if way.fact not in answer:
        raise Failed(f"ask: the answer does not have the memory: {answer}")
    envoy.wait_for(re.escape(way.outcome), timeout_s=60)


def taken(ports: Mapping[int, str]) -> list[str]:
    """Those of README's ports that somebody listens on."""
    found = []
    for port, whose in ports.items():
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            found.append(f"port {port} ({whose})")
    return found


def walked(name: str) -> Walk:
    walk = Walk()
    with tempfile.TemporaryDirectory(prefix=f"semmem-stranger-{name}-") as temporary:
        home, logs, folder = (Path(temporary) / part for part in ("home", "logs", "behind"))
        for each in (home, logs, folder):
            each.mkdir()
        shell = Shell(home, logs)
        try:
            WAYS[name](shell, folder, walk)
        except (Broken, Failed, Missing) as problem:
            log = problem.log if isinstance(problem, Failed) else None
            walk.problem = f"{problem}\n{log.read_text(errors='replace')[-SHOWN_CHARS:] if log else ''}"
        finally:
            shell.end()
            walk.commands = shell.commands
    return walk


def verdict(walks: Sequence[Walk]) -> str:
    after = " and ".join("never" if walk.seconds is None else f"{walk.seconds:.0f} s" for walk in walks)
    commands, failed = sum(walk.commands for walk in walks), sum(bool(walk.problem) for walk in walks)
    return f"stranger: {len(walks)} ways, {commands} commands, first memory after {after}, {failed} failed"


def _ways(text: str) -> list[str]:
    names = [name for name in text.split(",") if name] or list(WAYS)
    if unknown := set(names) - set(WAYS):
        raise argparse.ArgumentTypeError(f"no such way: {', '.join(sorted(unknown))}")
    return names


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stranger", description=__doc__)
    parser.add_argument("--only", type=_ways, default=list(WAYS), help=f"of {', '.join(WAYS)}, comma between them")
    walks = []
    try:
        with signals_raise():
            for name in parser.parse_args(argv).only:
                if found := taken(PORTS):
                    print(f"README's ports must be free, and somebody listens on {', '.join(found)}", file=sys.stderr)
                    return 2
                print(f"{name}:", flush=True)
                walks.append(walk := walked(name))
                if walk.problem:
                    print(f"FAILED {name}: {walk.problem}", flush=True)
                if walk.seconds is not None:
                    print(f"{name}: {walk.seconds:.0f} s from nothing to the first memory", flush=True)
    except Stopped as stopped:
        return 128 + stopped.signum
    print(verdict(walks))
    return 1 if any(walk.problem for walk in walks) else 0


if __name__ == "__main__":
    sys.exit(main())
