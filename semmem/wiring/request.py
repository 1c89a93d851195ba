"""Settings -> what a request goes through: the exchange, its rules, and the search."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from semmem.background.at_once import AtOnceLearner
from semmem.background.writers import JournalWriter
from semmem.config.settings import Settings
from semmem.config.values import DAY_S
from semmem.dialects import Paths
from semmem.dialects.parsing import ParseLimits
from semmem.exchange.exchange import ExchangeRules
from semmem.memory import Turn, Vector
from semmem.ports.embedder import shipped_for
from semmem.ports.events import Announce, nobody_listens
from semmem.ports.recording import TurnClosed
from semmem.ports.spans import NO_TRACER, Place, Tracer
from semmem.request.asker import AskerRules
from semmem.request.identity import IdentityRules
from semmem.request.permission import PermissionRules
from semmem.request.switches import Switches
from semmem.request.verdicts import VerdictRules, VerdictSource
from semmem.retrieval.decide.decision import Decision
from semmem.retrieval.decide.trained import SHIPPED, SHIPPED_READER, Reader, Trained, UnusableWeights
from semmem.retrieval.feedback import Votes
from semmem.retrieval.index.hot_memories import Spawn
from semmem.retrieval.ledger.ledger import Ledger, LedgerRecords, LedgerRules
from semmem.retrieval.models import QueryWriter, Reranking
from semmem.retrieval.passages import PassageSearch
from semmem.retrieval.query.past_conversations import has_form
from semmem.retrieval.recall import Recall, RecallRules
from semmem.retrieval.search import Fusion, Strategy
from semmem.turns.recorder import TurnRecorder
from semmem.turns.recovery import RecoveryRules
from semmem.wiring.backends import Backends
from semmem.wiring.features import looks_back, past_talks

log = logging.getLogger(__name__)

UNREAD_RETRY_S = 1.0
WAITING_SHARE = 0.8
"""Of the time in which a turn has to be committed: the rest is for the commit."""


def exchange_rules(settings: Settings) -> ExchangeRules:
    reading = settings.limits.fill(ParseLimits, prefix="request_")
    paths = Paths(settings.paths.by_name)
    return settings.limits.fill(ExchangeRules, phase_s=settings.deadlines.phase_ms / 1000, reading=reading, paths=paths)


def identity(settings: Settings) -> IdentityRules:
    rules = settings.identity
    return rules.fill(
        IdentityRules,
        api_key_secret=rules.api_key.hmac_secret.get_secret_value().encode() if rules.api_key.enabled else None,
        name_chars_max=rules.user_chars_max,
        group_headers=rules.trusted_group_headers,
    )


def asker_rules(settings: Settings, switches: Switches) -> AskerRules:
    names = ("fact", "tool", "blocked", "pii")
    verdicts = VerdictRules(**{name: settings.signals.fill(VerdictSource, prefix=f"{name}_") for name in names})
    return AskerRules(identity(settings), settings.memory.fill(PermissionRules), verdicts, switches)


def journal_writer(
    settings: Settings,
    backends: Backends,
    announce: Announce,
    at_once: AtOnceLearner | None,
    tracer: Tracer = NO_TRACER,
) -> JournalWriter:
    def committed(opened: Sequence[Turn], closed: Sequence[TurnClosed]) -> None:
        for place, began_at in (
            *((turn.trace, turn.opened_at) for turn in opened),
            *((half.trace, half.closed_at) for half in closed),
        ):
            if place:
                tracer.past("semmem.commit", Place(place), began_at)
        if at_once is not None:
            at_once.committed(opened, closed)

    return JournalWriter(
        backends.journal,
        queue_max=settings.journal.queue_max,
        interval_s=settings.journal.commit_interval_ms / 1000 * WAITING_SHARE,
        announce=announce,
        committed=committed,
    )


async def read_again(turns: Callable[[], TurnRecorder]) -> None:
    """Compare histories with the journal that it did not answer for, until cancelled; by the recorder of the moment,
    all of which have the same unread ones."""
    while True:
        await turns().unread.some()
        await asyncio.sleep(UNREAD_RETRY_S)
        await turns().read_again()


def recovery_rules(settings: Settings, began: float) -> RecoveryRules:
    """Words are believed no longer than what was declined, or erased, after them is known."""
    rules = settings.capture
    return rules.fill(
        RecoveryRules,
        mode=rules.recover_history,
        away_until=began + rules.recover_beginnings_s,
        kept_s=min(settings.journal.retention_days, settings.erasure.marks_days) * DAY_S,
    )


def recall(
    settings: Settings, backends: Backends, announce: Announce = nobody_listens, spawn: Spawn | None = None
) -> Recall:
    memory, injection, deadlines = settings.memory, settings.memory.injection, settings.deadlines
    judge = decision(settings, backends.embedder.signature, backends.votes)
    rules = injection.fill(
        RecallRules,
        limit=memory.default_retrieval_limit,
        standing_max=injection.standing_lines_max,
        profile_max=injection.profile_lines_max,
        fusion=Fusion(memory.fusion),
        threshold=memory.default_similarity_threshold,
        strategy=Strategy(memory.retrieval_strategy),
        scope=memory.retrieval_scope,
        tokens_max=injection.max_inject_tokens,
        query_chars_max=settings.limits.query_chars_max,
        embed_timeout_s=(deadlines.phase_ms - deadlines.store_ms) / 1000,
        store_timeout_s=deadlines.store_ms / 1000,
    )
    return Recall(
        backends.store,
        backends.embedder,
        rules,
        decision=judge,
        announce=announce,
        writer=query_writer(settings, backends, announce),
        reranking=reranking(settings, backends, announce),
        fence=backends.fence,
        spawn=spawn,
        past=past_talks(settings, backends),
        changes=backends.changes,
        passages=passages(settings, backends, judge),
    )


def passages(settings: Settings, backends: Backends, judge: Decision) -> PassageSearch | None:
    """None where what was said is not kept."""
    if not settings.passages.retention_days:
        return None
    return PassageSearch(
        backends.store,
        judge,
        timeout_s=settings.deadlines.store_ms / 1000,
        hides=backends.is_erasing,
        unsaid=backends.store.unsaid,
        looks_back=_looks_back(settings, backends.embedder.signature),
    )


def _looks_back(settings: Settings, signature: str) -> Callable[[str, Vector], bool]:
    """Whether a question asks for what was talked about before, by its form, and where that was learnt by its vector of
    this model. Where conversations are recorded these answer it."""
    if settings.conversations.enabled and settings.conversations.recall:
        return lambda _question, _vector: False
    learnt = looks_back(signature)
    if learnt is None:
        return lambda question, _vector: has_form(question)
    return lambda question, vector: learnt.asks(question, vector, in_form=has_form(question))


def decision(settings: Settings, signature: str, votes: Votes | None = None) -> Decision:
    """The decision that was calibrated for this embedding model: what ``semmem calibrate`` wrote, else what is shipped;
    uncalibrated, which is said, where that is for another model, and where so configured. Raises UnusableWeights for a
    configured file that is none or was written for another model."""
    rules = settings.signals
    if rules.engine == "rules":
        return Decision(votes=votes)
    trained = Trained.load(Path(rules.weights) if rules.weights else shipped_for(SHIPPED, signature))
    if trained.signature == signature:
        reader = None if rules.weights else Reader.load(shipped_for(SHIPPED_READER, signature))
        return Decision(trained, votes, reader)
    if rules.weights:
        raise UnusableWeights(f"{rules.weights}: written for {trained.signature}, not for {signature}")
    log.warning(
        "which memories are shown is decided by nearness alone: nothing was learnt for %s (signals.weights; see semmem"
        " calibrate)",
        signature,
    )
    return Decision(votes=votes)


def query_writer(settings: Settings, backends: Backends, announce: Announce) -> QueryWriter | None:
    """What writes queries with the memory_rewrite model, where that is wanted."""
    mode, model = settings.memory.query.mode, backends.models.get("memory_rewrite")
    if mode == "prepend" or model is None:
        return None
    return QueryWriter(model, mode=mode, timeout_s=settings.deadlines.rewrite_ms / 1000, announce=announce)


def reranking(settings: Settings, backends: Backends, announce: Announce) -> Reranking | None:
    rules = settings.memory.rerank
    if backends.reranker is None:
        return None
    return Reranking(backends.reranker, rules.timeout_ms / 1000, rules.candidates_max, announce)


def ledger(settings: Settings, journal: LedgerRecords, spawn: Spawn, announce: Announce) -> Ledger:
    keys = settings.memory.injection
    kept_s, bytes_max = keys.shown_hours * 3600, keys.shown_mb_max * 1024 * 1024
    rules = keys.fill(LedgerRules, prefix="shown_", kept_s=kept_s, bytes_max=bytes_max)
    return Ledger(journal, rules, spawn=spawn, announce=announce)
