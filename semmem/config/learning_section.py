"""The ``memory.extraction:`` and ``memory.write_screen:`` sections: how facts are learnt, and what may become one."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from semmem.config.values import (
    Fraction,
    ListOf,
    NonEmptyLine,
    Prose,
    Seconds,
    Section,
)


class ExtractionSection(Section):
    """``memory.extraction``: how facts are learnt from finished turns."""

    engine: Literal["auto", "llm", "rules"] = Field(
        default="auto", description="auto: the memory_extraction model when there is one, else rules"
    )
    at_once: bool = Field(
        default=True,
        description="what a turn says can be retrieved when its answer has ended, until a batch confirms, rewrites"
        " or drops it; false: only batches learn",
    )
    at_once_queue_max: int = Field(
        default=1000, ge=1, le=100_000, description="most turns that wait to be learnt from at once; batches learn more"
    )
    at_once_concurrency: int = Field(
        default=8, ge=1, le=64, description="turns learnt from at once at the same time, of different users"
    )
    at_once_wait_s: Seconds = Field(
        default=60.0,
        description="how long a turn waits while its user's memories are changed, or a store or embedder is away",
    )
    at_once_left_s: Seconds = Field(
        default=10.0,
        description="how long after its answer a turn that was not learnt from, since its process ended or a server was"
        " away, is learnt from by whatever replica has time",
    )
    embed_texts_max: int = Field(
        default=2, ge=1, le=64, description="texts of turns and facts embedded at the same time; requests do not wait"
    )
    context_turns: int = Field(
        default=5, ge=0, le=50, description="turns before a batch that are shown for context, never learnt from"
    )
    session_idle_s: Seconds = Field(default=300.0, description="silence after which what waits is learnt from")
    drift_threshold: Fraction = Field(
        default=0.12,
        description="cosine with the waiting messages below which a message begins another topic, so that what was "
        "said before is learnt from at once; 0: topics are not looked at",
    )
    drift_turns_min: int = Field(default=3, ge=1, le=50, description="waiting messages that make up a topic")
    answer_wait_s: Seconds = Field(default=60.0, description="how long a turn may wait for its answer")
    concurrency: int = Field(default=4, ge=1, le=64, description="batches worked on at the same time")
    facts_per_batch_max: int = Field(default=20, ge=1, le=100, description="most facts kept of one batch")
    turn_budget_s: Seconds = Field(
        default=1.0,
        description="processor time that one turn may take the rules to read, or one fact to be compared; a turn that"
        " takes longer is counted and not learnt from",
    )
    batch_budget_s: Seconds = Field(
        default=5.0,
        description="processor time that all turns of a batch may take the rules to read, and all its facts to be"
        " screened",
    )
    attempts_max: int = Field(default=5, ge=1, le=100, description="tries before a batch is given up")
    custom_instructions: Prose = Field(
        default="", description="added to the prompts for facts and summaries (when a model extracts)"
    )
    categories: ListOf[NonEmptyLine] = Field(
        default=(), max_length=50, description="only facts of these kinds (when a model extracts); empty: all"
    )
    model: Literal["configured", "upstream"] = Field(
        default="configured",
        description="configured: the llm_model_name of the memory_extraction model; upstream: the model that the turns'"
        " own requests named, asked at its llm_endpoint, which is then Envoy's listener",
    )
    episodic_summary: bool = Field(
        default=True,
        description="when a session ends, a summary of it becomes a memory (engine llm, auto with a model)",
    )
    contradiction_check: bool = Field(
        default=True,
        description="the model that extracts judges what replaces what, one call per batch; false: the rules do",
    )
    update_threshold: Fraction = Field(
        default=0.9, description="cosine from which a fact updates a memory instead of adding one"
    )
    poll_interval_s: Seconds = Field(default=1.0, description="how often the journal is asked for work")
    lease_s: Seconds = Field(default=120.0, description="how long a batch belongs to one worker")


class WriteScreenSection(Section):
    """``memory.write_screen``: what may become a memory."""

    secrets: Literal["reject", "redact", "quarantine"] = Field(
        default="reject",
        description="facts with keys, tokens, card numbers or passwords; what is kept of them is redacted",
    )
    instructions: Literal["reject", "quarantine"] = Field(
        default="reject",
        description="facts that are plainly orders to a model; quarantine keeps them from searches until released, as"
        " it does with what only may be one",
    )
    fact_chars_min: int = Field(default=3, ge=1, le=100, description="shorter facts are rejected")
    fact_chars_max: int = Field(default=500, ge=10, le=8000, description="longer facts are rejected")
