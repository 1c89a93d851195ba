"""Settings -> what records conversations, and what the API does with them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from semmem.backends.sql.journal import SqlJournal
from semmem.background.derived import TalkPlacer
from semmem.background.writers import ConversationWriter
from semmem.config.settings import Settings
from semmem.conversations.chains import Chained, Chains
from semmem.conversations.feature import ConversationsFeature
from semmem.conversations.tap import Tap
from semmem.lifecycle.hiding_store import Marks
from semmem.management.conversations import Conversations
from semmem.ports.conversations import ConversationLimits
from semmem.ports.embedder import shipped_for
from semmem.request.body_work import BodyWork
from semmem.request.exchange_rules import ExchangeRules
from semmem.retrieval.past_talks import PastTalks
from semmem.retrieval.query.past_conversations import SHIPPED, LooksBack
from semmem.wiring.backends import Backends


class ConversationRecord:
    """What stays as long as the process: halves that wait."""

    def __init__(self, settings: Settings, journal: SqlJournal) -> None:
        rules = settings.conversations
        self.enabled = rules.enabled
        self.chained = Counter(dict.fromkeys((word.value for word in Chained), 0))
        self._journal = journal
        self.writer = ConversationWriter(
            journal,
            limits(settings),
            retention_s=rules.retention_s,
            interval_s=rules.flush_s,
            queue_bytes_max=rules.queue_bytes_max,
        )

    def feature(self, settings: Settings, work: BodyWork, rules: ExchangeRules) -> ConversationsFeature | None:
        """None where nothing is recorded."""
        if not self.enabled:
            return None
        tap = Tap(self.writer.add, chars_max=self.writer.limits.message_chars_max)
        return ConversationsFeature(tap, self._chains(settings), work, rules)

    def _chains(self, settings: Settings) -> Chains | None:
        """None where no history is added to requests."""
        rules = settings.conversations
        if not rules.chains:
            return None
        return Chains(
            self._journal,
            settle=self.writer.flush,
            waiting=lambda: len(self.writer),
            messages_max=rules.chain_messages_max,
            timeout_s=rules.chain_ms / 1000,
            begin_unknown=rules.begin_unknown,
            per_user_max=rules.per_user_max,
            counts=self.chained,
        )

    def shown(self, marks: Marks, forgotten: Callable[[str, str], None]) -> Conversations:
        """``forgotten`` is told whose conversation is gone, and which."""
        return Conversations(
            self._journal,
            self.writer.limits,
            settle=self.writer.flush,
            clock=time.time,
            after=marks.after,
            recording=self.enabled,
            forgotten=forgotten,
        )


def past_talks(settings: Settings, backends: Backends) -> PastTalks | None:
    """None where former conversations are not shown. Nearness is judged by vectors of the model alone that it was
    learnt for; with others a question's form and its words tell."""
    rules = settings.conversations
    if not (rules.enabled and rules.recall):
        return None
    learnt = looks_back(backends.embedder.signature)
    model = "" if learnt is None else learnt.signature
    return PastTalks(backends.journal, timeout_s=rules.recall_ms / 1000, model=model, learnt=learnt)


def placer(settings: Settings, patient: Backends) -> TalkPlacer | None:
    """None where nobody compares vectors of conversations. ``patient``: the backends as learning uses them."""
    rules = settings.conversations
    is_compared = rules.enabled and rules.recall and looks_back(patient.embedder.signature) is not None
    return TalkPlacer(patient.journal, patient.embedder) if is_compared else None


def looks_back(signature: str) -> LooksBack | None:
    """What was learnt of questions for what was talked about before; None where it was for another model's vectors."""
    learnt = LooksBack.load(shipped_for(SHIPPED, signature))
    return learnt if learnt.signature == signature else None


def limits(settings: Settings) -> ConversationLimits:
    return settings.conversations.fill(ConversationLimits)
