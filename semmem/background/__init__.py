"""What runs beside the requests: owned tasks, the journal's writer, the learners. All bounded, all drained.

The core holds the steps and no loops; the loops that drive them stand here, log their failures and go on."""

from semmem.background.tasks import OffloadThreads, Outage, Tasks

__all__ = ["OffloadThreads", "Outage", "Tasks"]
