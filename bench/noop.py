"""The floor of any Python sidecar: an ext_proc server on grpc.aio that reads each message and says "go on".

It has semmem's event loop, wire format and server options and nothing else of it: request headers and body are
answered with empty messages, a response is read to its end and forgotten. With ``--grow N`` the body is answered with
itself and N bytes more, and its length, as a sidecar must that puts something into prompts; nothing is parsed. With
``--embed CONFIG`` it embeds a new question first, by the embedder that semmem's wiring builds from that configuration:
what a forward pass and a rewriting cost one after the other, which is more than each alone, since the pass leaves
nothing of what they need in the processor's caches.
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import uvloop
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from bench.cases import distinct_question
from semmem._proto import semmem_ext_proc_pb2 as pb

SERVICE = "envoy.service.ext_proc.v3.ExternalProcessor"
OPTIONS = [("grpc.http2.min_ping_interval_without_data_ms", 5000), ("grpc.http2.max_ping_strikes", 0)]
_HEADERS = pb.ProcessingResponse(request_headers=pb.HeadersResponse())
_BODY = pb.ProcessingResponse(request_body=pb.BodyResponse())

Answer = Callable[[Any], Any]
"""From the message with the request's body to what is said to it."""
Before = Callable[[], Awaitable[object]]
"""What is awaited between the two."""
EMBEDDING_MAX_S = 30.0


async def at_once() -> None:
    """Nothing."""


def processing(answer: Answer, before: Before = at_once) -> Callable[[Any, Any], Awaitable[None]]:
    """One stream: two answers and away (mutate), or listen until the response has ended (observe)."""

    async def process(_requests: Any, stream: Any) -> None:
        first = await stream.read()
        if first is grpc.aio.EOF:
            return
        if first.observability_mode:
            await _listen(stream)
            return
        await stream.write(_HEADERS)
        if not first.request_headers.end_of_stream and (body := await stream.read()) is not grpc.aio.EOF:
            await before()
            await stream.write(answer(body))

    return process


async def _listen(stream: Any) -> None:
    while (message := await stream.read()) is not grpc.aio.EOF:
        if message.response_body.end_of_stream:
            return


def go_on(_message: Any) -> Any:
    return _BODY


def growing(more_bytes: int) -> Answer:
    """Blanks behind the JSON, which leave it what it is."""
    more = b" " * more_bytes

    def rewrite(message: Any) -> Any:
        reply = pb.ProcessingResponse(request_body=pb.BodyResponse())
        common = reply.request_body.response
        common.body_mutation.body = body = message.request_body.body + more
        length = common.header_mutation.set_headers.add()
        length.header.key = "content-length"
        length.header.raw_value = str(len(body)).encode()
        return reply

    return rewrite


async def embedding(config: Path) -> Before:
    """Embeds a question that nobody has asked before. Loads the model; raises what a configuration without one does."""
    # not at the top: the other no-ops shall hold nothing of semmem but its wire format
    from semmem.config import load
    from semmem.wiring.models import local_embedder

    embedder = local_embedder(load(config, os.environ).memory.embedding)
    await embedder.open()
    numbers = itertools.count()
    return lambda: embedder.embed(distinct_question(next(numbers)), within_s=EMBEDDING_MAX_S)


async def _serve(answer: Answer, config: Path | None) -> None:
    before = at_once if config is None else await embedding(config)
    server = grpc.aio.server(options=OPTIONS)
    method = grpc.stream_stream_rpc_method_handler(
        processing(answer, before),
        request_deserializer=pb.ProcessingRequest.FromString,
        response_serializer=pb.ProcessingResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Process": method}),))
    healthy = health.aio.HealthServicer()
    await healthy.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"noop ready {port}", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--grow", type=int, default=0, metavar="BYTES")
    parser.add_argument("--embed", type=Path, metavar="CONFIG")
    options = parser.parse_args()
    uvloop.run(_serve(growing(options.grow) if options.grow else go_on, options.embed))
