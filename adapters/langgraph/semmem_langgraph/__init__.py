"""A LangGraph ``BaseStore`` whose items are semmem memories, kept and searched by semmem's management API.

One direction: ``store`` (LangGraph's operations) -> ``operations`` (what each asks of the API) -> ``items`` (an item as
a memory and back), ``namespaces``, ``filters`` -> ``calls`` (what a call and its answer are). Only ``client`` does I/O.
"""

from semmem_langgraph.errors import NotServed, Refused, SemmemStoreError, Unavailable
from semmem_langgraph.namespaces import Layout
from semmem_langgraph.store import SemmemStore

__all__ = ["Layout", "NotServed", "Refused", "SemmemStore", "SemmemStoreError", "Unavailable"]

__version__ = "0.1.0"
