"""Stores on real servers: what cannot be had in a process or behind a stand-in."""
