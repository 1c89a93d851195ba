"""What runs beside the requests: owned tasks, the journal's writer, the learners. All bounded, all drained.

The core holds the steps and no loops; the loops that drive them stand here, log their failures and go on.
"""

from semmem.background.at_once import AtOnceLearner
from semmem.background.conversation_writer import ConversationWriter
from semmem.background.journal_writer import JournalWriter
from semmem.background.learner import DriftLoop, Learner
from semmem.background.outage import Outage
from semmem.background.patient_embedder import PatientEmbedder
from semmem.background.record_watch import RecordWatch
from semmem.background.state_maker import StateMaker
from semmem.background.talk_placer import TalkPlacer
from semmem.background.tasks import OffloadThreads, Tasks
from semmem.background.usage_writer import UsageRetention, UsageWriter
from semmem.background.warming import Warming

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
