"""Training and measuring a copy without a set: the copy changes, the package does not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from quality.leave_out import KEYS, NOTHING, measured_without, table

TRAINER = """
import os, pathlib, sys
assert sys.argv[1] == "--without"
assert pathlib.Path(os.environ["DATA"]).is_dir()
pathlib.Path("semmem/weights.txt").write_text(sys.argv[2])
sys.exit(3 if sys.argv[2] == "bfcl" else 0)
"""
MEASURE = """
import json, pathlib, sys
known = {"all": 50.0, "nq": 40.0}[pathlib.Path("semmem/weights.txt").read_text()]
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
out.write_text(json.dumps({"noise": known, "vague_r5": 1.0}))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    files = {"semmem/weights.txt": "all", "training/train_it.py": TRAINER, "quality/__main__.py": MEASURE}
    files["quality/__init__.py"] = ""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_set_is_left_out_of_the_copy_s_training_alone(home: Path) -> None:
    found = {name: measured_without(name, home, ["training.train_it"], home=home) for name in (NOTHING, "nq")}
    assert [figures["noise"] for figures in found.values()] == [50.0, 40.0]
    assert set(found["nq"]) == set(KEYS)
    assert (home / "semmem" / "weights.txt").read_text() == "all"
    lines = table(found).splitlines()
    assert next(line for line in lines if line.startswith("noise")).split() == ["noise", "50.00", "40.00"]
    assert next(line for line in lines if line.startswith("bfcl_hit1")).split() == ["bfcl_hit1", "-", "-"]


def test_a_training_that_fails_is_no_figure(home: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        measured_without("bfcl", home, ["training.train_it"], home=home)
