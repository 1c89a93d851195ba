"""Memories get vectors of another embedding model, while they are asked for and written.

The collection that everybody reads stays as it is until the new one beside it holds the same memories: text decides
what there is, versions decide what is newer, and vectors of two models never meet."""
