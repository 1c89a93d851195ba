"""Takes out of an environment what no running semmem needs: python3 prune.py /opt/semmem

Files by their names, and what linkers left in libraries for debuggers. What is left is tried by ``make image-test``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

UNUSED = (
    "*/tests/*",
    "*.pyi",
    "*.pyx",
    "*.pxd",
    "*.pxi",
    "*.h",
    "*.hpp",
    # pyarrow: memories lie in Parquet files; not what talks to other machines or reads other formats.
    "pyarrow/include/*",
    "pyarrow/libarrow_flight.*",
    "pyarrow/libarrow_python_flight.*",
    "pyarrow/_flight.*",
    "pyarrow/libarrow_s3.*",
    "pyarrow/_s3fs.*",
    "pyarrow/_azurefs.*",
    "pyarrow/_gcsfs.*",
    "pyarrow/_hdfs.*",
    "pyarrow/_orc.*",
    "pyarrow/_dataset_orc.*",
    "pyarrow/_substrait.*",
    "pyarrow/_pyarrow_cpp_tests.*",
    "pyarrow/libarrow_python_parquet_encryption.*",
    "pyarrow/_parquet_encryption.*",
    "pyarrow/_dataset_parquet_encryption.*",
    # The same library three times, for compilers and for whoever runs what they make: the last is loaded.
    "pyarrow/libarrow_python.so",
    "pyarrow/libarrow_python.so.*.*",
    # onnxruntime: the module for Python holds the library that programs in C would load.
    "onnxruntime/capi/libonnxruntime.so*",
    "onnxruntime/transformers/*",
    "onnxruntime/tools/*",
    "onnxruntime/quantization/*",
    "onnxruntime/datasets/*",
    "numpy/_core/_*tests.*.so",
    "numpy/_core/_simd.*",
    "numpy/distutils/*",
    "pymilvus/bulk_writer/*",
    # Of SQLAlchemy, databases that semmem has no journal on.
    "sqlalchemy/dialects/mssql/*",
    "sqlalchemy/dialects/mysql/*",
    "sqlalchemy/dialects/oracle/*",
    "numpy/f2py/*",
    "*/lib/*.a",
    "pyarrow/src/*",
    "jsonschema/benchmarks/*",
    "sqlalchemy/testing/*",
)
"""Below site-packages, as fnmatch has them: * crosses folders."""
STRIPPED_BYTES_MIN = 100_000


def prune(environment: Path) -> Iterator[str]:
    """What was done, in words."""
    (packages,) = environment.glob("lib/python3.*/site-packages")
    before = _size(packages)
    for file in [each for each in _files(packages) if _is_unused(each.relative_to(packages).as_posix())]:
        file.unlink()
    yield f"removed {(before - _size(packages)) / 1e6:.0f} MB of files that are not used"
    before = _size(packages)
    libraries = [each for each in _files(packages) if _is_stripped(each, packages)]
    subprocess.run(["strip", "--strip-unneeded", *libraries], check=True)
    yield f"stripped {(before - _size(packages)) / 1e6:.0f} MB from {len(libraries)} libraries"


def _is_unused(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in UNUSED)


def _is_stripped(file: Path, packages: Path) -> bool:
    """Not those that were patched to be found beside their package: what strip makes of them does not load."""
    is_patched = file.relative_to(packages).parts[0].endswith(".libs")
    return ".so" in file.name and not is_patched and file.stat().st_size >= STRIPPED_BYTES_MIN


def _files(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file() and not each.is_symlink()]


def _size(folder: Path) -> int:
    return sum(each.stat().st_size for each in _files(folder))


def main(argv: Iterable[str]) -> int:
    """The exit status."""
    for environment in argv:
        for line in prune(Path(environment)):
            sys.stdout.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
