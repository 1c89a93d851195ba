"""Language models and rerankers behind HTTP."""

import sys

sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # httpx's command line, with 4 MB of libraries
