"""A Milvus server for one part of a run, where the environment for it is installed and no other server was named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.plan import Say
from demo.processes import Children
from demo.stack import HOME

MILVUS_VENV = HOME / ".venv-milvus"
SERVER = Path(__file__).with_name("milvus_server.py")
START_S = 150.0


@contextmanager
def milvus_server(address: str, folder: Path, say: Say, *, environment: Path = MILVUS_VENV) -> Iterator[str]:
    """``address`` (host:port) if there is one; else that of a server of its own, whose data are in ``folder``; empty
    where ``environment`` is not installed. Raises Failed."""
    if address or not (environment / ".ready").exists():
        yield address
        return
    children = Children(folder, cwd=HOME)
    try:
        python = environment / "bin" / "python"
        child = children.start("milvus", [str(python), "-P", str(SERVER), str(folder / "server")], dict(os.environ))
        ready = child.wait_for(r"^milvus ready http://(\S+)$", timeout_s=START_S)
        say(f"a Milvus server is ready on {ready[1]}")
        yield ready[1]
        children.check_alive()
    finally:
        children.end()
