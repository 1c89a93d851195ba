"""Memories in Milvus: Milvus Lite as a child process, a server, or a cluster."""
