"""pymilvus, imported without pandas.

Its client takes data frames, so it imports pandas, and that pyarrow: 70 MB of every process and 0.3 s of its start.
semmem writes lists of rows. While pymilvus is imported, an empty stand-in is there in place of pandas; what it cannot
do fails loudly, and whoever imports pandas later gets pandas. Where pymilvus comes to want more, pandas is imported.

It also wants requests, for what one vendor's clusters need: that is loaded when it is used. And with the first row it
looks for sparse matrices of scipy, which is 15 MB more in the middle of a write: it is told that there are none."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

USED = ("infer_dtype", "is_array_like", "is_float", "is_list_like", "is_scalar")
"""What pymilvus takes of pandas.api.types, for columns and for defaults of fields; semmem uses neither."""


def import_pymilvus() -> None:
    """Without pandas, unless either is imported already."""
    if "pymilvus" in sys.modules or "pandas" in sys.modules:
        return
    stand_in = _stand_in()
    sys.modules.update(stand_in)
    try:
        import pymilvus  # noqa: F401
    except (ImportError, AttributeError):
        for name in [name for name in sys.modules if name.partition(".")[0] == "pymilvus"]:
            del sys.modules[name]
    finally:
        for name in stand_in:
            del sys.modules[name]
    helper = getattr(sys.modules.get("pymilvus.client.utils"), "SciPyHelper", None)
    if helper is not None:  # else pymilvus has no such switch (any more)
        helper._checked = True


def _stand_in() -> dict[str, ModuleType]:
    pandas, api, types = (ModuleType(name) for name in ("pandas", "pandas.api", "pandas.api.types"))
    vars(pandas).update(api=api, DataFrame=type("DataFrame", (), {}), Series=type("Series", (), {}))
    vars(api).update(types=types)
    vars(types).update(dict.fromkeys(USED, _absent))
    later = [] if "requests" in sys.modules else [_Later("requests")]
    return {module.__name__: module for module in (pandas, api, types, *later)}


class _Later(ModuleType):
    """The module of this name, imported when something of it is wanted."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import machinery asks for these
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)


def _absent(*_: Any) -> NoReturn:
    raise NotImplementedError("pymilvus was imported without pandas (semmem.backends.milvus.without_pandas)")
