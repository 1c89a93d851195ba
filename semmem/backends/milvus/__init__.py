"""Memories in Milvus: Milvus Lite as a child process, a server, or a cluster."""

from semmem.backends.milvus.without_pandas import import_pymilvus

import_pymilvus()
