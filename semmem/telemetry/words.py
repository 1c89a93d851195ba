"""The values of labels that are known before anything happens: from the start each is there with 0, so that ``rate``
sees the first failure. What only an operator, a client or a rule of the screen knows (routes, reasons of it) is not."""

from collections.abc import Iterable, Mapping

from semmem.background import at_once as learner
from semmem.extraction import model_items, model_judge, work
from semmem.extraction.candidate import PAIR_FOUND, PAIR_REPLACED, Action
from semmem.lifecycle import erasure, quota
from semmem.memory import (
    ASKED_TO_FORGET,
    CONTRADICTED,
    MERGED,
    MODEL_DROPPED,
    PASSAGES,
    REFUSED,
    REPEATED,
    REWRITTEN,
    SUMMARISED,
    UNDONE,
    UNFOUNDED,
    UPDATED,
    MemoryType,
    TurnEnding,
)
from semmem.request.outcome import Outcome
from semmem.request.permission import Switched
from semmem.retrieval import showing
from semmem.retrieval.ledger import ledger, truth
from semmem.upkeep import maintenance

_ROLES = ("mutate", "observe")
_LEARNT = ("stored", "nothing", "rejected", "unchanged")
_BATCHES = (*_LEARNT, "extraction_failed", "gave_up", "postponed", "empty")
_REMOVED = (
    *(ASKED_TO_FORGET, CONTRADICTED, MERGED, MODEL_DROPPED, REFUSED, REWRITTEN, SUMMARISED, UNDONE, UNFOUNDED, UPDATED),
    *(maintenance.EXPIRED, maintenance.RETENTION, maintenance.NEVER_USED),
    *(quota.QUOTA, quota.PASSAGE_QUOTA, erasure.ERASED),
)
WORDS: Mapping[str, Iterable[str]] = {
    "semmem_requests": tuple(Outcome),
    "semmem_requests_switched": tuple(filter(None, Switched)),
    "semmem_prompt_prefixes": (
        *(showing.KEPT, showing.EDITED, showing.COMPACTED, ledger.LATE, ledger.ERASED, ledger.UNWRITTEN),
        *(truth.EXPIRED, truth.QUARANTINED, UNDONE, ASKED_TO_FORGET, UNFOUNDED),
    ),
    "semmem_query_rewrites": ("written", "cached", "failed", "late", "unusable"),
    "semmem_reranks": ("reranked", "failed", "late"),
    "semmem_long_requests": ("off", "unfit", "late", "no_state", "changed", "compressed"),
    "semmem_compressed_tokens": ("before", "after"),
    "semmem_session_states": ("rules", "model", "empty", "refused", "failed", "dropped"),
    "llm_memory_turns": tuple(TurnEnding),
    "semmem_history_messages": (
        *("recovered", "unproven", "declined", "erased"),
        *("other_speaker", "over_limit", "unread"),
    ),
    "semmem_journal_commit_seconds": ("ok", "error"),
    "semmem_batches": ("size", "idle", "end", "drift"),
    "semmem_batch_turns": _BATCHES,
    "llm_memory_extraction": _BATCHES,
    "semmem_at_once_turns": (*_LEARNT, "late", REFUSED, learner.OVERFLOW, learner.LEFT, learner.FAILED),
    "semmem_at_once_facts": (*Action, "rejected"),
    "semmem_turns_unread": (work.TOO_SLOW, work.BATCH_TOO_SLOW, work.WORKER_DIED),
    "llm_memory_extraction_facts": tuple(kind for kind in MemoryType if kind not in PASSAGES),
    "semmem_fact_actions": tuple(Action),
    "semmem_memories_removed": _REMOVED,
    "llm_memory_erasures": (erasure.DONE, erasure.PENDING, erasure.FINISHED),
    "semmem_erased_halves": ("queue", "journal"),
    "semmem_facts_dropped": (REPEATED,),
    "semmem_model_drops_ignored": (model_items.NO_REASON, model_items.UNKNOWN_NUMBER, model_items.TOO_MANY),
    "semmem_unsettled_pairs": (PAIR_FOUND, PAIR_REPLACED, model_judge.KEPT, CONTRADICTED, REPEATED),
    "semmem_change_news": ("told", "told_everything", "heard", "heard_everything", "untold", "foreign"),
    "semmem_change_news_outages": ("begun", "ended"),
    "semmem_config_reloads": ("applied", "refused", "unchanged"),
    "semmem_extproc_streams_shed": _ROLES,
    "semmem_extproc_errors": _ROLES,
    "semmem_feedback": ("helpful", "unhelpful"),
    "semmem_api_limited": ("caller", "address"),
    "semmem_api_audited": ("written", "failed"),
}
"""By the metric's name; each has this one label."""
