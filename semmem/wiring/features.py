"""Settings -> features that are off unless enabled: conversations, compression of long sessions, statistics of use."""

import secrets
import time
from collections import Counter
from collections.abc import Callable
from decimal import Decimal

from semmem.backends.sql.journal import SqlJournal
from semmem.background.derived import StateMaker, TalkPlacer
from semmem.background.writers import ConversationWriter, RequestLogWriter, UsageRetention, UsageWriter
from semmem.compression.compressor import CompressionRules, Compressor, KnownStates
from semmem.compression.making import Making, ModelWriter
from semmem.config.settings import Settings
from semmem.config.values import DAY_S
from semmem.conversations.chains import Chained, Chains
from semmem.conversations.feature import ConversationsFeature
from semmem.conversations.tap import Tap
from semmem.exchange.exchange import ExchangeRules
from semmem.extraction.work import IN_THREAD
from semmem.lifecycle.hiding_store import Marks
from semmem.management.conversations import Conversations
from semmem.management.usage_api import Usage
from semmem.ports.conversations import ConversationLimits
from semmem.ports.embedder import shipped_for
from semmem.ports.events import Announce
from semmem.ports.usage import UsageRecords, user_name
from semmem.request.body_work import BodyWork
from semmem.retrieval.fence import Fence
from semmem.retrieval.past_talks import PastTalks
from semmem.retrieval.query.past_conversations import SHIPPED, LooksBack
from semmem.usage.meter import KnownNames, Meter
from semmem.usage.report import Price, Prices, UsageReport
from semmem.wiring.backends import Backends

ROLE = "compression"
KEY_BYTES = 32


class ConversationRecord:
    """What stays as long as the process: halves that wait."""

    def __init__(self, settings: Settings, journal: SqlJournal) -> None:
        rules = settings.conversations
        self.enabled = rules.enabled
        self.chained = Counter(dict.fromkeys((word.value for word in Chained), 0))
        self._journal = journal
        kept = rules.fill(ConversationLimits)
        self.writer = rules.fill(ConversationWriter, journal, kept, interval_s=rules.flush_s)

    def feature(self, settings: Settings, work: BodyWork, rules: ExchangeRules) -> ConversationsFeature | None:
        """None where nothing is recorded."""
        if not self.enabled:
            return None
        keys = settings.conversations
        chains = None  # no history is added to requests
        if keys.chains:
            chains = keys.fill(
                Chains,
                self._journal,
                settle=self.writer.flush,
                waiting=lambda: len(self.writer),
                messages_max=keys.chain_messages_max,
                timeout_s=keys.chain_ms / 1000,
                counts=self.chained,
            )
        tap = Tap(self.writer.add, chars_max=self.writer.limits.message_chars_max)
        return ConversationsFeature(tap, chains, work, rules)

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


class Compression:
    """What stays as long as the process: states that are known here, turns under way, sessions that wait.
    ``is_erased``: whether anything of the user's is hidden."""

    def __init__(
        self, settings: Settings, backends: Backends, announce: Announce, *, is_erased: Callable[[str], bool]
    ) -> None:
        keys, journal = settings.compression, backends.journal
        self.known = KnownStates(journal, sessions_max=keys.known_sessions_max, refresh_s=keys.refresh_s)
        made, again_turns = making(settings, backends), keys.renew_turns
        self.maker = keys.fill(StateMaker, made, self.known, announce, again_turns=again_turns, clock=time.time)
        self.is_erased = is_erased

    def feature(self, settings: Settings, backends: Backends, work: BodyWork, announce: Announce) -> Compressor | None:
        """None where long requests stay as they are."""
        if not settings.compression.enabled:
            return None
        rules = settings.compression.fill(CompressionRules)
        fence = fence_of(backends)
        return Compressor(self.known, self.maker.offer, fence, rules, work, announce, self.is_erased)


def making(settings: Settings, backends: Backends) -> Making:
    keys, model = settings.compression, settings.external_model(ROLE)
    writer = None
    if model is not None:
        writer = ModelWriter(
            backends.models[ROLE], tokens_max=keys.state_tokens_max, timeout_s=model.llm_timeout_seconds
        )
    return Making(
        backends.journal,
        backends.worker or IN_THREAD,
        writer,
        tokens_max=keys.state_tokens_max,
        ttl_s=min(keys.ttl_days, settings.journal.retention_days) * DAY_S,
        budget_s=keys.budget_s,
        clock=time.time,
    )


def fence_of(backends: Backends) -> Fence:
    return backends.fence or Fence(secrets.token_bytes(KEY_BYTES))


def request_log_writer(settings: Settings, journal: SqlJournal) -> RequestLogWriter:
    rules = settings.request_log
    return rules.fill(RequestLogWriter, journal, kept_s=rules.days * DAY_S, interval_s=rules.flush_s)


class Recording:
    """What stays as long as the process: rows that wait, names of the day, the key of digests."""

    def __init__(self, settings: Settings, records: UsageRecords) -> None:
        rules = settings.usage
        self.enabled = rules.enabled
        self.records = records
        retention = rules.fill(UsageRetention)
        self.writer = rules.fill(UsageWriter, records, retention, full=rules.flush_rows, interval_s=rules.flush_s)
        self._names = KnownNames(rules.names_max)
        self._key: bytes | None = None

    async def key(self) -> bytes:
        """Raises JournalError."""
        if self._key is None:
            self._key = await self.records.usage_key()
        return self._key

    async def begin(self) -> None:
        """Before requests come. Raises JournalError."""
        if self.enabled:
            await self.key()

    def feature(self, settings: Settings) -> Meter | None:
        """None where nothing is recorded."""
        if not self.enabled or self._key is None:
            return None
        return Meter(self._key, prices(settings), self._names, self.writer.add)

    def shown(self, settings: Settings) -> Usage:
        return Usage(
            UsageReport(self.records, prices(settings)), self._name, self.writer.flush, time.time, self.enabled
        )

    async def _name(self, user: str) -> str:
        return user_name(await self.key(), user)


def prices(settings: Settings) -> Prices:
    rules = settings.usage
    table = [
        Price(each.model, each.provider, Decimal(str(each.input_per_million)), Decimal(str(each.output_per_million)))
        for each in rules.prices
    ]
    return Prices(table, compared_with=rules.compared_with, currency=rules.currency)
