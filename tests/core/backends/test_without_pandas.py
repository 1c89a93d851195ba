"""pymilvus without pandas, each time in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import semmem

ROOT = Path(semmem.__file__).parents[1]


def printed(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_family_of_milvus_imports_pymilvus_without_pandas() -> None:
    program = "import sys, semmem.backends.milvus.store; print('pymilvus' in sys.modules, 'pandas' in sys.modules)"
    assert printed(program) == "True False"


def test_whoever_imports_pandas_afterwards_gets_pandas() -> None:
    program = "import semmem.backends.milvus.store, pandas; print(pandas.DataFrame({'a': [1, 2]}).a.sum())"
    assert printed(program) == "3"


def test_a_pymilvus_that_wants_more_of_pandas_gets_pandas() -> None:
    program = "import sys, types; from pathlib import Path\n"
    program += "source = Path('semmem/backends/milvus/without_pandas.py').read_text()\n"
    program += "module = types.ModuleType('m'); exec(compile(source, 'm', 'exec'), vars(module))\n"
    program += "module.USED = ('is_float',)\n"
    program += "module.import_pymilvus(); assert 'pymilvus' not in sys.modules and 'pandas' not in sys.modules\n"
    program += "import pymilvus; print('pandas' in sys.modules)"
    assert printed(program) == "True"


def test_what_pymilvus_needs_seldom_is_imported_when_it_is_needed() -> None:
    program = "import sys, semmem.backends.milvus.store; from pymilvus.client import global_topology\n"
    program += "print('requests' in sys.modules, issubclass(global_topology.requests.exceptions.Timeout, OSError))"
    assert printed(program) == "False True"


def test_a_row_of_numbers_is_written_without_scipy() -> None:
    program = "import sys, semmem.backends.milvus.store; from pymilvus.client import entity_helper\n"
    program += "print(entity_helper.entity_is_sparse_matrix([0.5, 0.25]), 'scipy' in sys.modules)"
    assert printed(program) == "False False"
