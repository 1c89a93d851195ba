"""What figures are worth when the trained parts have never seen the set that they are judged on.

    python -m quality.leave_out FOLDER --train training.train_decision [--train ...] [--set clinc ...] [--out FILE]

For each set the package is copied to a folder that vanishes afterwards, trained there without the set (each module is
run as ``DATA=FOLDER python -m MODULE --without SET`` and writes its weights beside the code, which is the copy's), and
measured there. Nothing of the package itself changes, and it knows nothing of other weights.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from quality.folder import FIFTHS
from quality.scores import Json

HOME = Path(__file__).resolve().parent.parent
COPIED = ("semmem", "quality", "training", "bench")
SETS = ("clinc", "nq", "trivia", "bfcl")
"""What trained parts are made of, beside sentences of our own."""
PARTS = ("gate", "personal", "recall", "bfcl", "preferences", "leakage")
KEYS = (
    "gate_social_skipped", "gate_general_skipped", "gate_general_worst", "noise", "injected_r5", "personal_unserved",
    "bfcl_hit1", "bfcl_hit5", "preference_injected", "beneficial", "leak_cross_domain", "leak_sycophancy",
)  # fmt: skip
NOTHING = "nothing"
"""The column of the weights as they are."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 measured, 2 a training or a measurement failed (which says on stderr why)."""
    arguments = _parser().parse_args(argv)
    figures: dict[str, Json] = {}
    for name in (NOTHING, *(arguments.set or SETS)):
        sys.stderr.write(f"leave_out: without {name}\n")
        try:
            figures[name] = measured_without(name, arguments.folder, arguments.train, fifth=arguments.fifth)
        except subprocess.CalledProcessError as error:
            sys.stderr.write(f"leave_out: {' '.join(map(str, error.cmd))} ended with {error.returncode}\n")
            return 2
    if arguments.out:
        arguments.out.write_text(json.dumps(figures, indent=1) + "\n")
    sys.stdout.write(table(figures) + "\n")
    return 0


def measured_without(name: str, data: Path, modules: Sequence[str], *, fifth: str = "all", home: Path = HOME) -> Json:
    """Every figure of a copy of ``home`` that was trained without the set. Raises CalledProcessError."""
    with copied(home) as copy:
        for module in modules if name != NOTHING else ():
            _run(copy, data, ["-m", module, "--without", name])
        out = copy / "figures.json"
        parts = [word for part in PARTS for word in ("--only", part)]
        _run(copy, data, ["-m", "quality", str(data.resolve()), "--fifth", fifth, "--out", str(out), *parts])
        figures: Json = json.loads(out.read_text())
        return {key: figures.get(key) for key in KEYS}


@contextmanager
def copied(home: Path) -> Iterator[Path]:
    """The packages that are needed, in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="semmem-leave-out-") as name:
        for package in COPIED:
            if (home / package).is_dir():
                shutil.copytree(home / package, Path(name) / package, ignore=shutil.ignore_patterns("__pycache__"))
        yield Path(name)


def table(figures: Mapping[str, Json]) -> str:
    """One line per key, one column per set that was left out."""
    lines = [f"{'figure':<22}" + "".join(f"{name:>9}" for name in figures)]
    for key in KEYS:
        values = (column.get(key) for column in figures.values())
        lines.append(f"{key:<22}" + "".join("        -" if value is None else f"{value:9.2f}" for value in values))
    return "\n".join(lines)


def _run(copy: Path, data: Path, words: Sequence[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(copy), "DATA": str(data.resolve())}
    subprocess.run([sys.executable, *words], cwd=copy, env=environment, check=True, stdout=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="quality.leave_out", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the labelled data lie (docs/quality.md)")
    parser.add_argument("--train", action="append", required=True, help="module that trains a part; may be repeated")
    parser.add_argument("--set", action="append", choices=SETS, help="leave this set out; may be repeated; all if none")
    parser.add_argument("--fifth", choices=FIFTHS, default="all")
    parser.add_argument("--out", type=Path, help="write the table to this file as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
