"""The child process: one Milvus Lite server, mended, which leaves with its parent. Run by MilvusLiteProcess.

Its exit code says what its parent cannot see from outside; its output names files, never what they hold."""

import io
import logging
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import TextIO

HOST = "127.0.0.1"
EXIT_DAMAGED = 65
EXIT_STORAGE = 74
EXIT_LOCKED = 75
ORPHAN_GRACE_S = 5.0


def serve(data_dir: str, port: str) -> int:
    """Serve until SIGTERM, or until the parent's end of the pipe on stdin closes. The exit code."""
    os.umask(0o077)
    sys.stdout, sys.stderr = _Log(sys.stdout), _Log(sys.stderr)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # Lite closes its files on KeyboardInterrupt only
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    logging.disable(logging.CRITICAL)
    from milvus_lite import DataDirLockedError
    from milvus_lite.cmdline import main

    from semmem.backends.milvus import lite_engine, lite_files, lite_pruning

    lite_engine.install(lambda: os._exit(EXIT_STORAGE))
    lite_pruning.install()
    lite_files.install()
    try:
        main(["server", "--data-dir", data_dir, "--host", HOST, "--port", port])
    except DataDirLockedError:
        return EXIT_LOCKED
    except lite_files.DamagedFiles:
        return EXIT_DAMAGED
    return 0


class _Log(io.TextIOBase):
    """Standard output or error, into a file that may lie on a full disk: no reason to end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
            self._stream.flush()
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


def _leave_with_parent() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_GRACE_S)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(serve(*sys.argv[1:]))
