"""``python -m tests.faults [--only TEXT] [--each N] [--keep FOLDER]``: every fault.

Exit status 1 when an answer differs or a house of faults did not run to its end.
"""

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
    parser.add_argument("--each", type=int, default=None, help="of each house so many cells at most")
    parser.add_argument("--keep", type=Path, default=None, help="an empty folder for logs and data")
    options = parser.parse_args()
    with signals_raise(), tempfile.TemporaryDirectory(prefix="semmem-faults-") as temporary:
        folder = (options.keep or Path(temporary)).resolve()
        result = suite.run(
            folder,
            lambda fault: re.search(options.only, fault) is not None,
            lambda told: print(told, flush=True),
            each_max=options.each,
        )
        if not options.only and options.each is None:
            print(suite.envoys_own_413(folder), flush=True)
    print(result)
    return 0 if result.good else 1


if __name__ == "__main__":
    sys.exit(main())
