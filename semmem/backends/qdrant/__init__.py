"""Memories in Qdrant: a server or cluster by its address, or the client's own local mode for trying out.

Local mode is no Qdrant: it is a reimplementation in Python that comes with ``qdrant-client``, holds everything in this
process's memory and a SQLite file, compares each request with every memory of every user, and ignores indexes and
quantisation. The package needs the extra ``semmem[qdrant]``."""
