"""What runs beside the requests: owned tasks, the journal's writer, the learners. All bounded, all drained.

The core holds the steps and no loops; the loops that drive them stand here, log their failures and go on.
"""

from semmem.background.at_once import AtOnceLearner
from semmem.background.derived import StateMaker, TalkPlacer
from semmem.background.in_process import RecordWatch, Warming
from semmem.background.learner import DriftLoop, Learner, PatientEmbedder
from semmem.background.tasks import OffloadThreads, Outage, Tasks
from semmem.background.writers import ConversationWriter, JournalWriter, UsageRetention, UsageWriter

__all__ = [
    "AtOnceLearner",
    "ConversationWriter",
    "DriftLoop",
    "JournalWriter",
    "Learner",
    "OffloadThreads",
    "Outage",
    "PatientEmbedder",
    "RecordWatch",
    "StateMaker",
    "TalkPlacer",
    "Tasks",
    "UsageRetention",
    "UsageWriter",
    "Warming",
]
