"""Third parties are imported without what they try to import, use where it is there, and semmem never needs.

Each such library is megabytes of every process: where it is used it says how many. Libraries without which an import
fails need a stand-in instead (``backends.milvus.without_pandas``).
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def as_if_absent(*names: str) -> Iterator[None]:
    """Inside, importing these modules fails as if they were not installed; afterwards it does not, and what is imported
    already stays. For imports at the top of a module: another thread's would fail as well."""
    absent = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None is Python's own way of saying so
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]
