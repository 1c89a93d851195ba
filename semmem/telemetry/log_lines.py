"""Every line of the process in one form: plain, or one JSON object a line whoever wrote it.

With ``json`` the two output streams are pipes into this process, so that what C libraries and child processes print,
warnings, and uncaught exceptions become JSON as well. Only what is printed in the very moment of a crash (a signal, an
abort) may be lost with the process that would have wrapped it.

Nobody may write into a pipe while holding the lock of the handler: its reader needs that lock to empty it. So a line
that cannot be written (a full disk, a collector that has died) is lost, as it would be with any handler, and is not
complained of on stderr.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TextIO

from semmem.ports.spans import current

LINE_BYTES_MAX = 65_536
"""A longer line of somebody else's is cut into lines of this length."""
PIPE_BYTES = 1024 * 1024
"""Room for what a library prints at a stretch while it keeps the interpreter's lock, which the reader waits for. What
Linux lets every process have; elsewhere a pipe stays as it is."""
DRAIN_S = 2.0
"""How long the end of the process waits for lines that are still in the pipes."""

PLAIN = "%(asctime)s %(levelname)s %(name)s: %(message)s"

TOLD = ("outcome", "seconds")
"""What a line may say beside its message, each under its own name (``extra``)."""


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, what is in TOLD, and the trace of an exception where there
    is one. Within a span that is recorded also ``trace_id`` and ``span_id``."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name in TOLD if (value := getattr(record, name, None)) is not None}
        if traceparent := current().place.traceparent:
            _, line["trace_id"], line["span_id"], _ = traceparent.split("-")
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)


class _JsonHandler(logging.StreamHandler[TextIO]):
    def handleError(self, record: logging.LogRecord) -> None:
        """What the base class would print comes back through the pipe, to be written again."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            text = f"a line of {record.pathname}:{record.lineno} cannot be made: {type(error).__name__}"
            said = logging.LogRecord(record.name, logging.ERROR, record.pathname, record.lineno, text, (), None)
            with suppress(Exception):
                self.stream.write(self.format(said) + self.terminator)
                self.flush()


@contextmanager
def logging_to_stderr(*, as_json: bool, level: str) -> Iterator[Callable[[str], None]]:
    """Log to stderr inside the block. Yields what says a line of semmem's own on stdout."""
    if not as_json:
        _configure(logging.StreamHandler(), logging.Formatter(PLAIN), level)
        yield _say
        return
    with _Wrapped() as wrapped:
        handler = _JsonHandler(wrapped.stderr)
        _configure(handler, JsonLines(), level)
        logging.captureWarnings(True)
        with _uncaught_are_logged():
            yield wrapped.say
    handler.setStream(sys.stderr)
    wrapped.close()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


OWN = ("semmem", "stdout")
"""Loggers whose lines below a warning are told: ours, and what a child prints."""


def _is_told(record: logging.LogRecord) -> bool:
    """A library's logger may have a level of its own (bm25s has DEBUG), which the root's does not hold back."""
    return record.levelno >= logging.WARNING or record.name.partition(".")[0] in OWN


def _configure(handler: logging.Handler, formatter: logging.Formatter, level: str) -> None:
    handler.setFormatter(formatter)
    handler.addFilter(_is_told)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    tell_from(level)


def tell_from(level: str) -> None:
    """From now on semmem's own lines of this severity and above are told."""
    logging.getLogger("semmem").setLevel(level.upper())


@contextmanager
def _uncaught_are_logged() -> Iterator[None]:
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    log = logging.getLogger("semmem.uncaught")

    def uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        log.critical("%s: %s", kind.__name__, error, exc_info=(kind, error, trace))

    sys.excepthook = uncaught
    threading.excepthook = lambda hook: uncaught(hook.exc_type, hook.exc_value or hook.exc_type(), hook.exc_traceback)
    sys.unraisablehook = lambda hook: log.error("%s: %r", hook.err_msg or "ignored", hook.exc_value)
    try:
        yield
    finally:
        sys.excepthook, threading.excepthook, sys.unraisablehook = hooks


class _Wrapped:
    """File descriptors 1 and 2 as pipes; the real ones are ``stdout`` and ``stderr``, for whole JSON lines only."""

    def __enter__(self) -> _Wrapped:
        self.stdout, self.stderr = (os.fdopen(os.dup(fd), "w", encoding="utf-8") for fd in (1, 2))
        self._readers = [_wrap(1, "stdout", logging.INFO), _wrap(2, "stderr", logging.WARNING)]
        return self

    def say(self, line: str) -> None:
        record = logging.LogRecord("semmem", logging.INFO, "", 0, line, (), None)
        print(JsonLines().format(record), file=self.stdout, flush=True)

    def __exit__(self, *_: object) -> None:
        """The real descriptors take their places back; the readers end when nobody has the pipes any more."""
        for stream, fd in ((sys.stdout, 1), (sys.stderr, 2)):
            with suppress(OSError, ValueError):
                stream.flush()
            os.dup2((self.stdout if fd == 1 else self.stderr).fileno(), fd)
        for reader in self._readers:
            reader.join(DRAIN_S)

    def close(self) -> None:
        """When nobody writes any more."""
        self.stdout.close()
        self.stderr.close()


def _wrap(fd: int, name: str, level: int) -> threading.Thread:
    """Put a pipe in the descriptor's place; each line that comes through it is logged under the stream's name."""
    read, write = os.pipe()
    with suppress(AttributeError, OSError):
        fcntl.fcntl(read, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    os.dup2(write, fd)  # inheritable, unlike the pipe itself: children write into it as well
    os.close(write)
    reader = threading.Thread(target=_read, args=(read, logging.getLogger(name), level), name=name, daemon=True)
    reader.start()
    return reader


def _read(fd: int, log: logging.Logger, level: int) -> None:
    rest = b""
    while piece := os.read(fd, LINE_BYTES_MAX):
        *lines, rest = (rest + piece).split(b"\n")
        while len(rest) >= LINE_BYTES_MAX:
            lines, rest = [*lines, rest[:LINE_BYTES_MAX]], rest[LINE_BYTES_MAX:]
        for line in lines:
            _log(log, level, line)
    _log(log, level, rest)
    os.close(fd)


def _log(log: logging.Logger, level: int, line: bytes) -> None:
    if text := line.decode("utf-8", "replace").strip():
        record = logging.LogRecord(log.name, level, "", 0, text, (), None)
        logging.getLogger().handle(record)
