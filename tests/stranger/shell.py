"""The terminals of somebody who follows README: what runs there knows nothing of this clone."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from demo.processes import Child, Children, Failed
from demo.stack import HOME

GRACE_S = 30.0
PAUSE_S = 0.5
KEPT = ("HOME", "LANG", "TMPDIR", "TORCH", "SSL_CERT_FILE")


def environment(given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Of ours, what the machine is and how it reaches packages: nothing of make, of this clone or of semmem."""
    kept = {
        name: value
        for name, value in given.items()
        if name in KEPT or name.startswith("PIP_") or name.lower().endswith("_proxy")
    }
    path = [folder for folder in given["PATH"].split(":") if not Path(folder).is_relative_to(HOME)]
    return kept | {"PATH": ":".join(path)}


class Shell:
    """Blocks for bash in ``home``, one after another; what one exports, the next ones have. ``logs``: what they print.

    ``run``, ``until`` and ``start`` raise Failed when a command does not do what it promises.
    """

    def __init__(self, home: Path, logs: Path) -> None:
        self.commands = 0
        self.home, self._logs, self._exported = home, logs, logs / "exported.sh"
        self._children = Children(logs, cwd=home, grace_s=GRACE_S)
        self._exported.touch()

    def run(self, name: str, block: str, within_s: float = 60.0) -> str:
        """What it printed."""
        self.commands += 1
        began = time.monotonic()
        printed = self._run(name, block, within_s)
        self._say(name, began)
        return printed

    def until(self, name: str, block: str, shown: str, within_s: float = 60.0) -> None:
        """Again and again, until it prints what is wanted."""
        self.commands += 1
        began = time.monotonic()
        while shown not in self._run(name, block, within_s):
            if time.monotonic() - began > within_s:
                raise Failed(f"{name}: {shown!r} was not shown within {within_s:.0f} s", self._logs / f"{name}.log")
            time.sleep(PAUSE_S)
        self._say(name, began)

    def start(self, name: str, command: str, ready: str, within_s: float = 120.0) -> Child:
        """In a terminal of its own. ``ready``: the pattern of what it prints when it is."""
        self.commands += 1
        began = time.monotonic()
        child = self._children.start(name, ("bash", "-c", command), environment())
        child.wait_for(ready, timeout_s=within_s)
        self._say(name, began)
        return child

    def end(self) -> None:
        self._children.end()

    def _run(self, name: str, block: str, within_s: float) -> str:
        script = f". {self._exported}\n{block}\nexport -p > {self._exported}\n"
        log = self._logs / f"{name}.log"
        child = Child(name, ("bash", "-e", "-c", script), log=log, cwd=self.home, environ=environment())
        try:
            code = child.process.wait(within_s)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{name} was not at its end within {within_s:.0f} s", log) from error
        finally:
            if child.process.poll() is None:
                child.terminate()
            child.wait(GRACE_S)
        if code:
            raise Failed(f"{name} ended with status {code}", log)
        return child.printed()

    def _say(self, name: str, began: float) -> None:
        print(f"  {name:9} {time.monotonic() - began:6.1f} s", flush=True)
