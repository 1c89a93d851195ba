"""Milvus Lite's child processes as forks of one that has its engine imported: two thirds of what a start costs.

A fork has everything that such a child is: a session, its log, a pipe to its parent, signals, an exit status.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import Process
from typing import TYPE_CHECKING, cast

from semmem.backends.milvus.lite import LOG_NAME, MilvusLiteProcess
from tests.support.forked import MILVUS_LITE, Forked

if TYPE_CHECKING:
    import pytest


def use_lite_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the patch is undone this process starts Milvus Lite so."""
    monkeypatch.setattr(MilvusLiteProcess, "_spawn", _spawn)


async def _spawn(lite: MilvusLiteProcess) -> Process:
    return cast("Process", _Child(lite))


class _Child:
    """What of asyncio's processes MilvusLiteProcess asks for."""

    def __init__(self, lite: MilvusLiteProcess) -> None:
        self.returncode: int | None = None
        stdin, self._pipe = os.pipe()
        try:
            with open(lite.data_dir / LOG_NAME, "wb", opener=_private) as log:
                words = [str(lite.data_dir), str(lite._port)]
                self._forked = Forked(MILVUS_LITE, words, environ=os.environ, stdout=log, stderr=log, stdin=stdin)
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(stdin)
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._loop.add_reader(self._forked.fileno(), self._ended)

    @property
    def pid(self) -> int:
        return self._forked.pid

    async def wait(self) -> int:
        await self._over.wait()
        assert self.returncode is not None
        return self.returncode

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.returncode is None:  # until then nobody else has its id
            os.kill(self.pid, number)

    def _ended(self) -> None:
        self._loop.remove_reader(self._forked.fileno())
        self.returncode = self._forked.wait()
        os.close(self._pipe)
        self._over.set()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
