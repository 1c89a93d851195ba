"""``python -m tests.faults [--only TEXT] [--keep FOLDER]``: every fault; exit status 1 when an answer differs."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

from demo.processes import signals_raise
from tests.faults import suite


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--only", default="", help="faults whose name matches this regular expression")
    parser.add_argument("--keep", type=Path, default=None, help="an empty folder for logs and data")
    options = parser.parse_args()
    with signals_raise(), tempfile.TemporaryDirectory(prefix="semmem-faults-") as temporary:
        folder = (options.keep or Path(temporary)).resolve()
        cells = suite.run(
            folder, lambda fault: re.search(options.only, fault) is not None, lambda cell: print(cell, flush=True)
        )
        if not options.only:
            print(suite.envoys_own_413(folder), flush=True)
    differ = sum(bool(cell.different) for cell in cells)
    print(f"faults: {len(cells)} cells, {differ} differ")
    return 1 if differ or not cells else 0


if __name__ == "__main__":
    sys.exit(main())
