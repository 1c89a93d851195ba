"""Settings -> what learns: the learner, its extractors, screen and dedup, and the watch for changes of topic; what of
it a reload changes, with the upkeep of what was learnt."""

import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from semmem.background.at_once import AtOnceLearner
from semmem.background.learner import Learner, PatientEmbedder
from semmem.config.settings import Settings
from semmem.config.values import DAY_S
from semmem.extraction.at_once import AtOnce
from semmem.extraction.comparing import Comparing, PairJudge
from semmem.extraction.contradiction.verdict import closed
from semmem.extraction.dedup import Dedup
from semmem.extraction.drift import DriftWatch
from semmem.extraction.llm import LlmExtractor, SessionSummariser
from semmem.extraction.model_judge import ModelJudge, Unsettled
from semmem.extraction.pipeline import Learning, choose_extractor
from semmem.extraction.reading import Reader
from semmem.extraction.result import BatchLearnt
from semmem.extraction.rules import RulesExtractor, facts_in
from semmem.extraction.screen import Ruling, Screened, screen
from semmem.extraction.storing import Keeping, Storing
from semmem.extraction.unlearning import Erase, Unlearning, WaitingWords
from semmem.extraction.voice.hearing import Embedded, Heard, heard
from semmem.extraction.work import IN_THREAD
from semmem.lifecycle.quota import PassageQuota
from semmem.ports.errors import SemmemError
from semmem.ports.events import Announce, nobody_listens
from semmem.ports.learning import Batch, BatchRules, Extractor
from semmem.ports.spans import NO_TRACER, Tracer
from semmem.retrieval.context import FENCE_MARKERS, without_tags
from semmem.turns.recorder import OBSERVING
from semmem.upkeep.maintenance import Maintenance
from semmem.wiring.backends import Backends, Opened
from semmem.wiring.erasure import holds
from semmem.wiring.maintenance import lifetime_s, quota, upkeep
from semmem.wiring.models import has_no_model

log = logging.getLogger(__name__)

SUMMARY_CHARS_MAX = 500
READER_START_S = 5.0


def learner(
    settings: Settings, backends: Backends, announce: Announce, batches: Learning, tracer: Tracer = NO_TRACER
) -> Learner:
    return settings.memory.extraction.fill(
        Learner,
        backends.journal,
        learn(batches, announce, tracer),
        rules=batch_rules(settings),
        last_write=backends.journal.last_write,
    )


def batch_rules(settings: Settings) -> BatchRules:
    extraction = settings.memory.extraction
    return extraction.fill(
        BatchRules,
        size=settings.memory.extraction_batch_size,
        idle_s=extraction.session_idle_s,
        answer_wait_s=0.0 if settings.capture.mode == "off" else extraction.answer_wait_s,
    )


@dataclass(frozen=True, slots=True)
class LearningSide:
    """What learns from batches and from single turns, when, and what keeps memories in bounds. None of it has a state
    of its own that matters: what is under way may end with the former one."""

    batches: Learning
    rules: BatchRules
    reading: AtOnce
    upkeep: Maintenance
    drift: DriftWatch | None


def learning_side(
    settings: Settings, patient: Backends, opened: Opened, announce: Announce, erase: Erase
) -> LearningSide:
    """``patient``: the backends as learning uses them. ``erase``: what erases one memory."""
    batches = learning(settings, patient, announce, erase=erase)
    return LearningSide(
        batches,
        batch_rules(settings),
        reading(settings, patient, batches),
        upkeep(settings, opened.backends, opened.store_backend, announce),
        drift_watch(settings, patient),
    )


def drift_watch(settings: Settings, backends: Backends) -> DriftWatch | None:
    """None when changes of topic are not looked for: two messages on one topic hardly share words, so without a model
    nothing can be seen of it."""
    extraction = settings.memory.extraction
    if not extraction.drift_threshold or has_no_model(backends.embedder.signature):
        return None
    return extraction.fill(
        DriftWatch,
        backends.journal,
        backends.embedder,
        prefix="drift_",
        look_back_s=extraction.session_idle_s,
        strip_block=without_tags,
        last_write=backends.journal.last_write,
    )


def learn(batches: Learning, announce: Announce, tracer: Tracer = NO_TRACER) -> Callable[[Batch], Awaitable[None]]:
    """What a learner does with each batch."""

    async def learn_one(batch: Batch) -> None:
        started = time.perf_counter()
        with tracer.gather("semmem.learn", [turn.trace for turn in batch.turns]) as span:
            span.about(batch.scope)
            result = await batches.learn(batch)
            span.note("semmem.trigger", batch.trigger)
            span.note("semmem.turns", len(batch.turns))
            span.note("semmem.status", result.status)
        announce(BatchLearnt(batch.id, batch.trigger, len(batch.turns), result, time.perf_counter() - started))

    return learn_one


def patient(settings: Settings, backends: Backends) -> Backends:
    """The same, with an embedder that learning may use without being in the way of requests."""
    texts_max = settings.memory.extraction.embed_texts_max
    return replace(backends, embedder=PatientEmbedder(backends.embedder, texts_max=texts_max))


async def start_reader(backends: Backends) -> None:
    """Have the process that reads texts started, before there is a text."""
    if backends.worker is not None:
        with suppress(SemmemError):  # it is started again with the first text
            await backends.worker.run(facts_in, "", budget_s=READER_START_S)


def at_once(
    settings: Settings,
    backends: Backends,
    announce: Announce,
    batches: Learning,
    can_learn: Callable[[], bool],
    tracer: Tracer = NO_TRACER,
) -> AtOnceLearner | None:
    """Learns from each turn when its answer has ended; None where only batches shall. What cannot be read is counted
    with its batch."""
    extraction = settings.memory.extraction
    if not extraction.at_once:
        return None
    return extraction.fill(
        AtOnceLearner,
        reading(settings, backends, batches),
        batches.settling,
        holds(settings, backends),
        prefix="at_once_",
        can_learn=can_learn,
        announce=announce,
        tracer=tracer,
    )


def reading(settings: Settings, backends: Backends, batches: Learning) -> AtOnce:
    return AtOnce(
        backends.journal,
        local_extractor(settings, backends, nobody_listens),
        batches.storing,
        reader=Reader(backends.embedder, strip_block=without_tags),
        unlearning=batches.unlearning,
        unanswered=settings.capture.mode not in OBSERVING,
    )


def learning(
    settings: Settings,
    backends: Backends,
    announce: Announce = nobody_listens,
    *,
    clock: Callable[[], float] = time.time,
    hear: Callable[[str, Embedded], Heard] = heard,
    erase: Erase | None = None,
) -> Learning:
    """``hear`` is for whoever measures what becomes of facts, whoever said them. ``erase``: what erases one memory;
    None where nothing is forgotten because the user asks to."""
    _tell_what_is_uncalibrated(settings, backends)
    memory = settings.memory
    by_rules = local_extractor(settings, backends, announce)
    by_model, model_judge, summariser = _by_model(settings, backends)
    extractor, fallback = choose_extractor(memory.extraction.engine, llm=by_model, rules=by_rules)
    storing = Storing(
        backends.embedder,
        dedup(settings, backends),
        quota=quota(settings, backends, announce),
        screening=screening(
            settings, screen, chars_min=memory.write_screen.fact_chars_min, chars_max=memory.write_screen.fact_chars_max
        ),
        work=backends.worker or IN_THREAD,
        screen_budget_s=memory.extraction.batch_budget_s,
        facts_max=memory.extraction.facts_per_batch_max,
        ttl_s=lifetime_s(settings),
        clock=clock,
    )
    unlearning = None
    if erase is not None:
        waiting = waiting_words(settings, backends)
        unlearning = Unlearning(backends.store, backends.journal, storing, waiting, erase)
    return Learning(
        backends.journal,
        storing,
        extractor,
        fallback=fallback,
        reader=Reader(backends.embedder, strip_block=without_tags, hear=hear),
        model_judge=model_judge,
        unsettled=Unsettled(backends.store, backends.journal),
        summariser=summariser,
        passages=Keeping(
            backends.store,
            backends.journal,
            backends.embedder,
            settings.passages.retention_days * DAY_S or None,
            quota=PassageQuota(backends.store, backends.journal, settings.passages.per_user_max, announce),
            worth=by_rules.worth,
            clock=clock,
        ),
        unlearning=unlearning,
        attempts_max=memory.extraction.attempts_max,
        local_engine=by_rules.name,
    )


def screening(settings: Settings, judge: Callable[..., Screened], **limits: int) -> Callable[..., Screened]:
    """``judge`` with what is configured for secrets and instructions, and without what is put around memories."""
    rules = settings.memory.write_screen
    rulings = {"on_secret": Ruling(rules.secrets), "on_instruction": Ruling(rules.instructions)}
    return partial(judge, **rulings, own_markers=FENCE_MARKERS, **limits)


def _tell_what_is_uncalibrated(settings: Settings, backends: Backends) -> None:
    """Log what learning knows nothing of the configured embedding model for, once at the start."""
    extraction, signature = settings.memory.extraction, backends.embedder.signature
    reads_locally = extraction.at_once or extraction.engine != "llm"
    if reads_locally and not local_extractor(settings, backends, nobody_listens).is_calibrated:
        log.warning("what is worth remembering is told by its form alone: nothing was learnt for %s", signature)
    if not _pair_judge(settings, backends).is_trained:
        log.warning("what repeats or replaces a memory is told by rules alone: nothing was learnt for %s", signature)


def local_extractor(settings: Settings, backends: Backends, announce: Announce) -> RulesExtractor:
    """What learns without a language model: batches where there is none, and every turn at once."""
    extraction = settings.memory.extraction
    return extraction.fill(
        RulesExtractor,
        backends.embedder,
        facts_per_batch=extraction.facts_per_batch_max,
        work=backends.worker or IN_THREAD,
        announce=announce,
    )


def dedup(settings: Settings, backends: Backends) -> Dedup:
    return Dedup(
        Comparing(
            backends.store,
            update_threshold=settings.memory.extraction.update_threshold,
            judge=closed,
            text_work=backends.worker or IN_THREAD,
            judge_budget_s=settings.memory.extraction.turn_budget_s,
            pair_judge=_pair_judge(settings, backends),
        ),
        backends.journal,
    )


def waiting_words(settings: Settings, backends: Backends) -> WaitingWords:
    """What takes out of waiting turns what an erased memory said."""
    work, budget_s = backends.worker or IN_THREAD, settings.memory.extraction.turn_budget_s
    judge = _pair_judge(settings, backends)
    return WaitingWords(backends.journal, backends.embedder, judge, work, budget_s=budget_s)


def _pair_judge(settings: Settings, backends: Backends) -> PairJudge:
    work = backends.worker or IN_THREAD
    return PairJudge(backends.embedder, work, budget_s=settings.memory.extraction.turn_budget_s)


def _by_model(
    settings: Settings, backends: Backends
) -> tuple[Extractor | None, ModelJudge | None, SessionSummariser | None]:
    """What extracts, judges and sums up with a language model; none of it where no model learns."""
    rules, model = settings.memory.extraction, settings.external_model("memory_extraction")
    if model is None or rules.engine == "rules":
        return None, None, None
    client = backends.models[model.model_role]
    upstream = client if rules.model == "upstream" else None  # where the models of the turns' own requests are asked
    asked: dict[str, Any] = {"timeout_s": model.llm_timeout_seconds, "upstream": upstream}
    extractor = rules.fill(LlmExtractor, client, facts_max=rules.facts_per_batch_max, **asked)
    judge = ModelJudge(client, **asked)
    chars_max = min(SUMMARY_CHARS_MAX, settings.memory.write_screen.fact_chars_max)
    summariser = rules.fill(SessionSummariser, client, chars_max=chars_max, **asked)
    return extractor, judge if rules.contradiction_check else None, summariser if rules.episodic_summary else None
