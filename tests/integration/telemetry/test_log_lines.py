"""With ``log.format: json`` every line that semmem prints is JSON, whoever wrote it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from semmem.telemetry.log_lines import LINE_BYTES_MAX

START_S = 180.0
Line = dict[str, Any]


def config(folder: Path, **more: Any) -> Path:
    """The in-process store, and a model that is not there: semmem starts fast and has something to complain of."""
    file = folder / "config.yaml"
    listeners = {name: {"address": "127.0.0.1:0"} for name in ("grpc", "api", "health")}
    settings = {
        "data_dir": str(folder / "data"),
        "memory": {"backend": "in_process", "embedding": {"model": "./nope"}},
        "listeners": listeners,
        "log": {"format": "json", "level": "debug"},
    }
    file.write_text(yaml.safe_dump(settings | more))
    return file


def lines(text: str) -> list[Line]:
    """Every line parsed; there is no other."""
    found = [json.loads(line) for line in text.splitlines()]
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in found)
    return found


ENVIRON = os.environ | {"HF_HUB_OFFLINE": "1", "GRPC_VERBOSITY": "DEBUG", "PYTHONWARNINGS": "default"}


def command(file: Path) -> list[str]:
    return [sys.executable, "-m", "semmem", "serve", "--config", str(file)]


def told(file: Path) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a semmem that ends by itself."""
    done = subprocess.run(command(file), capture_output=True, text=True, env=ENVIRON, timeout=START_S)
    return done.returncode, done.stdout, done.stderr


def test_a_whole_life_is_json_from_the_first_line_to_the_last(tmp_path: Path) -> None:
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("w") as stdout, err.open("w") as stderr:
        process = subprocess.Popen(command(config(tmp_path)), stdout=stdout, stderr=stderr, env=ENVIRON)
        try:
            deadline = time.monotonic() + START_S
            while "semmem ready" not in out.read_text():
                assert process.poll() is None, err.read_text()
                assert time.monotonic() < deadline, err.read_text()
                time.sleep(0.1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()
    (ready,) = lines(out.read_text())
    assert ready["message"].startswith("semmem ready grpc=127.0.0.1:")
    logged = [line["message"] for line in lines(err.read_text())]
    assert any("no embedding model" in message for message in logged)
    assert any("starts with" in message and str(tmp_path / "data") in message for message in logged)


def test_a_start_that_fails_is_told_in_json(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "journal.db").write_text("this is no database " * 100)
    status, out, err = told(config(tmp_path))
    assert (status, out) == (1, "")
    assert any(line["level"] == "critical" and line["message"].startswith("cannot go on") for line in lines(err))


def test_a_configuration_that_is_refused_is_told_in_json(tmp_path: Path) -> None:
    status, out, err = told(config(tmp_path, data_dir="/proc/nope", deadlines={"phase_ms": 5000}))
    assert (status, out) == (2, "")
    assert {line["level"] for line in lines(err)} == {"critical"}
    assert len(lines(err)) == 2


def test_a_start_that_is_interrupted_is_told_in_json(tmp_path: Path) -> None:
    """The libraries of the backends take seconds to import; nobody handles signals yet."""
    program = "import sys\n"
    program += "class Interrupted:\n"
    program += "    def find_spec(self, name, *_):\n"
    program += "        if name == 'semmem.wiring.app': raise KeyboardInterrupt\n"
    program += "sys.meta_path.insert(0, Interrupted())\n"
    program += f"from semmem.cli import main\nsys.exit(main(['serve', '--config', {str(config(tmp_path))!r}]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=ENVIRON, timeout=START_S)
    assert (done.returncode, done.stdout) == (130, "")
    assert any("interrupted" in line["message"] for line in lines(done.stderr))


STRANGERS = f"""
import asyncio, logging, os, subprocess, sys, threading, warnings
from semmem.telemetry.log_lines import logging_to_stderr
with logging_to_stderr(as_json=True, level="info") as say:
    say("first")
    warnings.warn("a warning")
    logging.getLogger("uvicorn.error").error("two\\nlines")
    logging.getLogger("pymilvus").warning("milvus %s", "speaks")
    os.write(2, b"a library in C\\n")
    print("a print")
    subprocess.run([sys.executable, "-c", "import sys; print('a child'); sys.exit('a child fails')"])
    os.write(1, b"x" * {LINE_BYTES_MAX * 3})
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()

    async def fails():
        asyncio.get_running_loop().call_soon(lambda: [][1])
        await asyncio.sleep(0.01)

    asyncio.run(fails())
    try:
        raise RuntimeError("nobody catches this")
    except RuntimeError:
        sys.excepthook(*sys.exc_info())
"""


def test_whoever_prints_in_this_process_prints_json() -> None:
    done = subprocess.run([sys.executable, "-c", STRANGERS], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert [line["message"] for line in lines(done.stdout)] == ["first"]
    found = lines(done.stderr)
    for part in (
        "a warning",
        "two\nlines",
        "milvus speaks",
        "a library in C",
        "a print",
        "a child",
        "a child fails",
        "ZeroDivisionError",
        "Exception in callback",
        "nobody catches this",
    ):
        assert any(part in line["message"] for line in found), (part, found)
    assert sum(line["message"].count("x" * 1000) for line in found) >= 3 * LINE_BYTES_MAX // 1000 - 3
    assert any("IndexError" in line.get("trace", "") for line in found)


UNHEARD = """
import logging, threading
from semmem.telemetry.log_lines import logging_to_stderr
with logging_to_stderr(as_json=True, level="info") as say:
    def logs():
        for number in range(300):
            logging.getLogger("semmem").info("line %d of a long story that nobody can be told", number)
    thread = threading.Thread(target=logs, daemon=True)
    thread.start()
    thread.join(20)
    say("stuck" if thread.is_alive() else "went on")
    if thread.is_alive():
        import os
        os._exit(9)
"""


def test_a_log_that_cannot_be_written_holds_nobody_up() -> None:
    """A full disk, and a collector that has died."""
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", UNHEARD], stdout=subprocess.PIPE, stderr=full, timeout=120)
    assert [line["message"] for line in lines(done.stdout.decode())] == ["went on"]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-c", UNHEARD], stdout=subprocess.PIPE, stderr=write, timeout=120)
    os.close(write)
    assert [line["message"] for line in lines(done.stdout.decode())] == ["went on"]


MISUSED = """
import logging
from semmem.telemetry.log_lines import logging_to_stderr
with logging_to_stderr(as_json=True, level="info") as say:
    logging.getLogger("semmem").info("of %d", "a secret")
    logging.getLogger("semmem").info("and on")
"""


def test_a_line_that_cannot_be_made_says_where_and_stays_json() -> None:
    done = subprocess.run([sys.executable, "-c", MISUSED], capture_output=True, text=True, timeout=120)
    broken, after = lines(done.stderr)
    assert broken["level"] == "error"
    assert "TypeError" in broken["message"]
    assert "secret" not in done.stderr
    assert after["message"] == "and on"


HOLDS_THE_LOCK = """
import ctypes
from semmem.telemetry.log_lines import logging_to_stderr
with logging_to_stderr(as_json=True, level="info") as say:
    line = b"a library that keeps the interpreter's lock\\n"
    ctypes.PyDLL(None).write(2, line * 10_000, len(line) * 10_000)
    say("went on")
"""


def test_a_library_that_prints_a_lot_while_it_keeps_the_interpreters_lock_comes_to_its_end() -> None:
    done = subprocess.run([sys.executable, "-c", HOLDS_THE_LOCK], capture_output=True, text=True, timeout=60)
    assert "went on" in done.stdout
    assert len(lines(done.stderr)) == 10_000


def test_plain_lines_stay_plain() -> None:
    program = "import semmem.telemetry.log_lines as l, logging\n"
    program += "with l.logging_to_stderr(as_json=False, level='info') as say:\n"
    program += "    say('hello'); other = logging.getLogger('other')\n"
    program += "    other.setLevel('DEBUG'); other.debug('not told')\n"
    program += "    logging.getLogger('semmem.x').info('there')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "hello\n"
    assert done.stderr.endswith("INFO semmem.x: there\n")
    assert "not told" not in done.stderr


WITHIN_A_SPAN = """
import logging
from semmem.ports.spans import CURRENT, Place, Span
from semmem.telemetry.log_lines import logging_to_stderr

class Recorded(Span):
    place = Place("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

log = logging.getLogger("semmem.x")
with logging_to_stderr(as_json=True, level="debug"):
    log.debug("request: %s", "injected", extra={"outcome": "injected", "seconds": 0.25, "user": "ada"})
    CURRENT.set(Recorded())
    log.info("within")
"""


def test_a_line_tells_the_outcome_and_the_span_that_it_was_said_in() -> None:
    done = subprocess.run([sys.executable, "-c", WITHIN_A_SPAN], capture_output=True, text=True, timeout=60)
    outside, within = lines(done.stderr)
    assert (outside["outcome"], outside["seconds"], outside["message"]) == ("injected", 0.25, "request: injected")
    assert set(outside) == {"time", "level", "logger", "message", "outcome", "seconds"}
    assert (within["trace_id"], within["span_id"]) == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
    assert "outcome" not in within
