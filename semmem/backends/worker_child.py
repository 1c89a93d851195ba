"""The child process of WorkerProcess: does what it is asked on standard input, and answers on standard output.

It has no socket and proves nothing: OpenSSL, which asyncio and hashlib take where it is there, would be 6 MB of it."""

import pickle
import signal
import sys
from importlib import import_module
from typing import BinaryIO

from semmem.imports import as_if_absent

LENGTH_BYTES = 8
"""In front of each message on the pipes."""
READY = b"ready"


def serve(asked: BinaryIO, answers: BinaryIO) -> None:
    """Until the pipe closes."""
    _answer(answers, READY)
    while len(length := asked.read(LENGTH_BYTES)) == LENGTH_BYTES:
        budget_s, alarm_s, work, args = pickle.loads(asked.read(int.from_bytes(length)))
        # Without handlers: they end the process, and nothing that runs can put them off.
        signal.setitimer(signal.ITIMER_PROF, budget_s)
        signal.setitimer(signal.ITIMER_REAL, alarm_s)
        try:
            answer = pickle.dumps((True, work(*args)))
        except Exception as error:
            answer = pickle.dumps((False, type(error).__name__))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _answer(answers, answer)


def _answer(answers: BinaryIO, answer: bytes) -> None:
    answers.write(len(answer).to_bytes(LENGTH_BYTES) + answer)
    answers.flush()


if __name__ == "__main__":
    with as_if_absent("ssl", "_hashlib"):  # whoever imports ssl later gets it
        for name in ("asyncio", "hashlib"):  # what every text function needs of the standard library
            import_module(name)
    serve(sys.stdin.buffer, sys.stdout.buffer)
