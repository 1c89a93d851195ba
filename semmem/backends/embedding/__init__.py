"""Vectors of texts, from a model in this process."""
