"""``python -m quality.agent_memory FILE``: a benchmark's conversations, told through Envoy, and its questions.

Exit status: 0 measured, 1 something did not answer, 2 the file or the configuration cannot be read.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from bench.machine import commit, machine
from demo.processes import Failed, signals_raise
from quality.agent_memory.datasets import DatasetError, Story, read
from quality.agent_memory.figures import report, table
from quality.agent_memory.house import house
from quality.agent_memory.judging import Model, accuracy
from quality.agent_memory.talking import Told, play
from semmem import __version__

HOME = Path(__file__).resolve().parents[2]
SCHEMA = 1
KEY_VARIABLE = "MODEL_KEY"


def main(argv: list[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    if (options.answers is None) != (options.judge is None):
        _say("--answers and --judge need each other")
        return 2
    try:
        stories = read(options.file)[: options.conversations]
        config = _configured(options.config)
    except (DatasetError, ValueError) as error:
        _say(str(error))
        return 2
    started = datetime.now(UTC)
    try:
        figures = measure(stories, config, options)
    except Failed as failure:
        _say(str(failure))
        return 1
    if options.out:
        about = {"schema": SCHEMA, "started": started.isoformat(timespec="seconds"), "semmem": __version__}
        about |= {"commit": commit(HOME), "machine": machine(), "config": config, "file": options.file.name}
        options.out.write_text(json.dumps({**figures, "about": about}, indent=1, ensure_ascii=False) + "\n")
    sys.stdout.write(table(figures) + "\n")
    return 0


def measure(stories: list[Story], config: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """One story after another. Raises Failed."""
    told: list[Told] = []
    with signals_raise(), tempfile.TemporaryDirectory(prefix="semmem-agent-memory-") as temporary:
        folder = (options.keep or Path(temporary)).resolve()
        with house(folder, envoy=options.envoy, config=config) as running:
            for number, story in enumerate(stories, 1):
                told.append(play(running, story, questions_max=options.questions))
                _say(f"{number} of {len(stories)}: {told[-1].turns} turns, {told[-1].memories} memories")
    judged = None
    if options.answers is not None:
        key = os.environ.get(KEY_VARIABLE, "")
        models = [Model(url, name, key) for url, name in (options.answers, options.judge)]
        judged = accuracy((each for one in told for each in one.asked), *models)
    return report(told, judged)


def _configured(path: Path | None) -> Mapping[str, Any]:
    """Raises ValueError."""
    if path is None:
        return {}
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path}: cannot be read ({type(error).__name__})") from None
    if not isinstance(config, dict):
        raise ValueError(f"{path}: is no mapping")
    return config


def _say(line: str) -> None:
    sys.stderr.write(f"agent-memory: {line}\n")
    sys.stderr.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m quality.agent_memory", description=__doc__.split("\n")[0])
    parser.add_argument("file", type=Path, help="a JSON file in the shape of LoCoMo or LongMemEval")
    parser.add_argument("--conversations", type=int, default=None, help="only the first so many")
    parser.add_argument("--questions", type=int, default=None, help="only the first so many of each conversation")
    parser.add_argument("--config", type=Path, default=None, help="semmem's configuration over the defaults (YAML)")
    parser.add_argument("--out", type=Path, default=None, help="write every figure to this file as JSON")
    parser.add_argument("--keep", type=Path, default=None, help="an empty folder for logs and data, kept afterwards")
    parser.add_argument("--envoy", type=Path, default=Path(".venv-envoy/bin/envoy"), help="the Envoy binary")
    for name, what in (("--answers", "answers from the prompts"), ("--judge", "judges the answers")):
        words = f"the model that {what}: its URL with /v1, and its name; the key is in {KEY_VARIABLE}"
        parser.add_argument(name, nargs=2, metavar=("URL", "MODEL"), default=None, help=words)
    return parser


if __name__ == "__main__":
    sys.exit(main())
