"""Which times a text names, as intervals: "yesterday", "last May", "on 3 March 2024", "vor zwei Wochen", "去年五月".

A fixed grammar of our own: words become classes (``tokens``), patterns over the classes become rows of a table
(``grammar``), rows become dates (``calendar``). Everything reads forward with bounded steps, so the time taken grows
with the length of the text and no faster. What could be something else ("may I", "march on", "for two weeks", a price,
a version) is not a time: a wrong time hides memories, a missed one only does not help.

All dates are UTC: the user's own clock is not known. Weeks begin on Monday (ISO 8601), seasons are the northern
meteorological ones."""

from semmem.text.times.calendar import Interval, Towards
from semmem.text.times.grammar import INTERVALS_MAX, intervals, leaning

__all__ = ["INTERVALS_MAX", "Interval", "Towards", "intervals", "leaning"]
