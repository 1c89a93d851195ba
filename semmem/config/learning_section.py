"""The ``memory.extraction:`` and ``memory.write_screen:`` sections: how facts are learnt, and what may become one."""

from __future__ import annotations

from typing import ClassVar, Literal

from semmem.config.values import ERASING, Fraction, ListOf, NonEmptyLine, Prose, Seconds, Section, key


class ExtractionSection(Section):
    """``memory.extraction``: how facts are learnt from finished turns."""

    restart: ClassVar = {
        "at_once at_once_queue_max at_once_concurrency at_once_wait_s at_once_left_s embed_texts_max concurrency"
        " poll_interval_s": "turns that wait already are kept by it",
        "turn_budget_s": ERASING,
    }

    engine: Literal["auto", "llm", "rules"] = key(
        "auto", "auto: the memory_extraction model when there is one, else rules"
    )
    at_once: bool = key(
        True,
        "what a turn says can be retrieved when its answer has ended, until a batch confirms, rewrites"
        " or drops it; false: only batches learn",
    )
    at_once_queue_max: int = key(
        1000, "most turns that wait to be learnt from at once; batches learn more", ge=1, le=100_000
    )
    at_once_concurrency: int = key(8, "turns learnt from at once at the same time, of different users", ge=1, le=64)
    at_once_wait_s: Seconds = key(
        60.0, "how long a turn waits while its user's memories are changed, or a store or embedder is away"
    )
    at_once_left_s: Seconds = key(
        10.0,
        "how long after its answer a turn that was not learnt from, since its process ended or a server was"
        " away, is learnt from by whatever replica has time",
    )
    embed_texts_max: int = key(
        2, "texts of turns and facts embedded at the same time; requests do not wait", ge=1, le=64
    )
    context_turns: int = key(5, "turns before a batch that are shown for context, never learnt from", ge=0, le=50)
    session_idle_s: Seconds = key(300.0, "silence after which what waits is learnt from")
    drift_threshold: Fraction = key(
        0.12,
        "cosine with the waiting messages below which a message begins another topic, so that what was "
        "said before is learnt from at once; 0: topics are not looked at",
    )
    drift_turns_min: int = key(3, "waiting messages that make up a topic", ge=1, le=50)
    answer_wait_s: Seconds = key(60.0, "how long a turn may wait for its answer")
    concurrency: int = key(4, "batches worked on at the same time", ge=1, le=64)
    facts_per_batch_max: int = key(20, "most facts kept of one batch", ge=1, le=100)
    turn_budget_s: Seconds = key(
        1.0,
        "processor time that one turn may take the rules to read, or one fact to be compared; a turn that"
        " takes longer is counted and not learnt from",
    )
    batch_budget_s: Seconds = key(
        5.0, "processor time that all turns of a batch may take the rules to read, and all its facts to be screened"
    )
    attempts_max: int = key(5, "tries before a batch is given up", ge=1, le=100)
    custom_instructions: Prose = key("", "added to the prompts for facts and summaries (when a model extracts)")
    categories: ListOf[NonEmptyLine] = key(
        (), "only facts of these kinds (when a model extracts); empty: all", max_length=50
    )
    model: Literal["configured", "upstream"] = key(
        "configured",
        "configured: the llm_model_name of the memory_extraction model; upstream: the model that the turns'"
        " own requests named, asked at its llm_endpoint, which is then Envoy's listener",
    )
    episodic_summary: bool = key(
        True, "when a session ends, a summary of it becomes a memory (engine llm, auto with a model)"
    )
    contradiction_check: bool = key(
        True, "the model that extracts judges what replaces what, one call per batch; false: the rules do"
    )
    update_threshold: Fraction = key(0.9, "cosine from which a fact updates a memory instead of adding one")
    poll_interval_s: Seconds = key(1.0, "how often the journal is asked for work")
    lease_s: Seconds = key(120.0, "how long a batch belongs to one worker")


class WriteScreenSection(Section):
    """``memory.write_screen``: what may become a memory."""

    secrets: Literal["reject", "redact", "quarantine"] = key(
        "reject", "facts with keys, tokens, card numbers or passwords; what is kept of them is redacted"
    )
    instructions: Literal["reject", "quarantine"] = key(
        "reject",
        "facts that are plainly orders to a model; quarantine keeps them from searches until released, as"
        " it does with what only may be one",
    )
    fact_chars_min: int = key(3, "shorter facts are rejected", ge=1, le=100)
    fact_chars_max: int = key(500, "longer facts are rejected", ge=10, le=8000)
