"""How the request phase of an exchange can end, in one word each."""

from enum import StrEnum


class Outcome(StrEnum):
    """How the request phase ended."""

    INJECTED = "injected"  # memories are in the prompt
    COLD_DENSE = "cold_dense"  # injected, but ranked by the store alone: the user's memories were not loaded in time
    DEGRADED = "degraded"  # the embedder failed: what shares words with the question, or the newest, is in the prompt
    EMBEDDER_BUSY = "embedder_busy"  # not embedded in time, or refused for what waits: found by words, if anything was
    NO_HITS = "no_hits"  # searched, nothing relevant
    GREETING = "greeting"  # nothing but courtesy
    GENERAL_FACT = "general_fact"  # a question no memory can answer
    TOOL_TURN = "tool_turn"  # a tool answers
    REPEATED = "repeated"  # all that fits stands in the prompt: where an earlier request of the session was given it
    ALREADY_INJECTED = "already_injected"  # a gateway before this one, or a retry, has done it
    NO_QUESTION = "no_question"  # no user message to search for
    WRITE_ONLY = "write_only"  # reading was opted out of, storing was not
    OPTED_OUT = "opted_out"  # config, header or body said no
    READING_OFF = "reading_off"  # reading is switched off for this user, storing is not
    SWITCHED_OFF = "switched_off"  # a switch of an administrator's left nothing to do
    BLOCKED = "blocked"  # an earlier filter refuses this request
    PII = "pii"  # an earlier filter found personal data in it
    ANONYMOUS = "anonymous"  # nobody is known to be asking
    TIMEOUT = "timeout"  # the phase's deadline passed
    STORE_DOWN = "store_down"
    STORE_TIMEOUT = "store_timeout"
    EMBEDDER_DOWN = "embedder_down"  # and nothing recent to fall back on
    MALFORMED = "malformed"  # not a request of this API
    OVERSIZE = "oversize"  # larger, or of more messages or values, than semmem reads
    COMPRESSED = "compressed"  # a content-encoding semmem does not read
    OTHER_PATH = "other_path"  # not an API semmem knows


NAME_CHARS_MAX = 256
"""Of a request's id and of its model's name so much is kept."""
