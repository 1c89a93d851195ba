"""The table of faults: what is tried, in which forms, and what of it in the short form."""

from __future__ import annotations

from collections.abc import Callable

from tests.faults import answer_faults, body_faults, client_faults, clock_faults, sidecar_faults, store_faults, streams
from tests.faults.forms import EVERY_FORM, JSON, KINDS, PATHS, SSE, Form
from tests.faults.house import House, Trial
from tests.faults.model_faults import Extraction
from tests.faults.proxy import Proxy
from tests.support.scripted_llm import Reply

Run = Callable[[House, Form], Trial]

EMBEDDED: dict[str, Run] = {
    "semmem just died": sidecar_faults.just_died,
    "semmem down": sidecar_faults.down,
    "semmem stopped": sidecar_faults.stopped_before,
    "semmem stopped in mid-request": sidecar_faults.stopped_in_mid_request,
    "semmem stopped in mid-stream": sidecar_faults.stopped_in_mid_stream,
    "semmem stopped in mid-stream, 4 MB": sidecar_faults.stopped_in_mid_stream_of_megabytes,
    "semmem killed in mid-request": sidecar_faults.killed_in_mid_request,
    "semmem killed in mid-stream": sidecar_faults.killed_in_mid_stream,
    "semmem restarted under load": sidecar_faults.restarted_under_load,
    "SIGTERM under load": sidecar_faults.sigterm_under_load,
    "Milvus Lite killed": store_faults.store_killed,
    "Milvus Lite stopped": store_faults.store_stopped,
    "store of another dimension": store_faults.store_of_another_dimension,
    "embedder raises": store_faults.embedder_raises,
    "embedder slow": store_faults.embedder_slow,
    "embedder breaks": store_faults.embedder_breaks,
    "embedder and store down": store_faults.embedder_and_store_down,
    "journal locked": store_faults.journal_locked,
    **body_faults.ODD_BODIES,
    "body beyond gRPC's limit, chunked": body_faults.beyond_grpc,
    "body announced too short": body_faults.announced_too_short,
    "body with line ends for headers": body_faults.hostile_members,
    "client gone before the answer": client_faults.gone_before,
    "client gone during the search": client_faults.gone_in_search,
    "client gone in its own body": client_faults.gone_in_its_body,
    "client gone during the answer": client_faults.gone_during,
    "clients of one session at once": client_faults.at_once,
    "header flood": client_faults.header_flood,
    "header flood beyond Envoy's limit": client_faults.header_flood_beyond,
    "header names nothing, it is too long": client_faults.long_names,
    "header expects 100-continue": client_faults.expects_100,
    "header with control characters": client_faults.control_characters,
    "header contradicts itself": client_faults.contradicting_controls,
    "header with two framings": client_faults.two_framings,
    "websocket": client_faults.websocket,
    "websocket refused": client_faults.websocket_refused,
    **answer_faults.MODEL_FAULTS,
    "clock jumps a day ahead": clock_faults.jumps(clock_faults.DAY_S),
    "clock jumps a day back": clock_faults.jumps(-clock_faults.DAY_S),
}

EVERY_API = {
    "semmem stopped",
    "semmem stopped in mid-stream",
    "semmem killed in mid-stream",
    "Milvus Lite killed",
    "Milvus Lite stopped",
    "embedder raises",
    "embedder breaks",
    "body beyond gRPC's limit, chunked",
    "body announced too short",
    "body with line ends for headers",
    "client gone before the answer",
    "client gone during the search",
    "client gone in its own body",
    "client gone during the answer",
    "clients of one session at once",
    *body_faults.ODD_BODIES,
    *answer_faults.MODEL_FAULTS,
}
"""Faults that each API's own code meets; the others are tried with chat completions."""
ONE_FORM = {"websocket": (JSON,), "2,000 streams at once": (SSE,)}


def forms_of(fault: str) -> tuple[Form, ...]:
    return ONE_FORM.get(fault, EVERY_FORM if fault in EVERY_API else KINDS)


CROWDED: dict[str, Run] = {"more requests than semmem takes": sidecar_faults.crowded}
STREAMS = 2000
OBSERVED_MAX = 1024
"""limits.observe_streams_max as shipped."""
STREAMING: dict[str, Run] = {"2,000 streams at once": streams.many_streams(OBSERVED_MAX, streams=STREAMS)}
FULL: dict[str, Run] = {"journal full": store_faults.journal_full}
FULL_JOURNAL_ROOM_BYTES = 200 * 1024
"""What the journal of that house has beyond its empty tables: some turns, and no more."""


def remote_faults(way: Proxy) -> dict[str, Run]:
    behind = store_faults.store_behind
    return {
        "store slow": behind(way, "slow", "store_timeout"),
        "store hangs": behind(way, "hang", "store_timeout"),
        "store cuts connections": behind(way, "reset", "store_down", "store_timeout"),
        "store refuses connections": behind(way, "refuse", "store_down", "store_timeout"),
        "store down at start": store_faults.store_down_at_start(way),
    }


def extraction_faults(model: Extraction, way: Proxy) -> dict[str, Run]:
    return {
        "extraction LLM down": model.unreachable(way),
        "extraction LLM slow": model.fails(Reply(hang=True), "postponed", "ModelUnavailable"),
        "extraction LLM talks garbage": model.fails("As a large language model", "extraction_failed", "ok"),
        "extraction LLM answers no JSON": model.fails(Reply(raw=b"<html>"), "extraction_failed", "ModelRefused"),
        "extraction LLM answers 429": model.fails(Reply(status=429), "postponed", "ModelUnavailable"),
        "extraction LLM answers 500": model.fails(Reply(status=500), "postponed", "ModelUnavailable"),
        "extraction LLM answers 401": model.fails(Reply(status=401), "extraction_failed", "ModelRefused"),
    }


SHORT_CROWD = "100 streams at once"
SHORT_OBSERVED_MAX = 40
SHORT: dict[str, tuple[Form, ...]] = {
    "semmem stopped": KINDS,
    "semmem stopped in mid-stream": tuple(Form(api, sse=True) for api in PATHS),
    "semmem killed in mid-stream": KINDS,
    "Milvus Lite killed": KINDS,
    "Milvus Lite stopped": KINDS,
    "embedder raises": KINDS,
    "journal locked": KINDS,
    "body with a key twice": KINDS,
    "body over the cap": KINDS,
    "body a gzip bomb": (SSE,),
    "body with line ends for headers": (Form("responses"),),
    "clients of one session at once": (SSE,),
    "header flood": (SSE,),
    "header with control characters": (JSON,),
    "header with two framings": (JSON,),
    "websocket": (JSON,),
    "model answers 429": KINDS,
    "model answers 204": (JSON,),
    "model redirects, 302": (JSON,),
    "model resets in mid-stream": EVERY_FORM,
    "model sends trailers": (SSE,),
    "model announces too little": (Form("messages"),),
    "model answers a gzip bomb": KINDS,
    "clock jumps a day back": (SSE,),
    SHORT_CROWD: (SSE,),
}
"""The faults of the short form: all on one house, one or two of each kind."""
