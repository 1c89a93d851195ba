"""``python -m tests.stall [--short]``: how late semmem's event loop is while one user sends the worst, and whether
another user's requests keep their memory. Envoy's side of ext_proc is spoken by this process, so that nothing else is
measured. Exit status 1 when a request of the other user went without, or none was asked beside an attack."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import httpx
import yaml

from demo.processes import signals_raise
from semmem._proto import semmem_ext_proc_pb2 as pb
from semmem.envoy.server import SERVICE
from tests.stall.attacks import ATTACKS, chat

TOKEN = "token-for-this-run-only"
FACT = "User's budget for the Hawaii trip is $10,000"
QUESTION = "What's my budget for the Hawaii trip?"
QUIET_S, SETTLE_S = 5.0, 8.0
SHORT_S = 1.5
PAUSE_S = 0.1
AT_ONCE = 3


class Server:
    """The child, and what it says of its event loop."""

    def __init__(self, process: asyncio.subprocess.Process, addresses: dict[str, str]) -> None:
        self._process = process
        self.addresses = addresses

    async def late(self) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        return await _line(self._process)

    async def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


async def _line(process: asyncio.subprocess.Process) -> dict[str, Any]:
    assert process.stdout is not None
    found: dict[str, Any] = json.loads(await process.stdout.readline())
    return found


async def started(folder: Path) -> Server:
    config = folder / "config.yaml"
    any_port = {"address": "127.0.0.1:0"}
    settings = {
        "data_dir": str(folder / "data"),
        "memory": {
            "backend": "in_process",
            "embedding": {"source": "local"},
            "extraction": {"engine": "rules", "session_idle_s": 1.0, "answer_wait_s": 1.0, "poll_interval_s": 0.1},
        },
        "identity": {"trusted_headers": ["x-user-id"]},
        "listeners": {"grpc": any_port, "health": any_port, "api": {**any_port, "admin_token": TOKEN}},
    }
    config.write_text(yaml.safe_dump(settings))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.stall.server", str(config)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    return Server(process, await _line(process))


async def sent(channel: grpc.aio.Channel, user: str, body: bytes) -> str:
    """One request as Envoy would pass it on; its outcome."""
    head = pb.ProcessingRequest(request_headers=pb.HttpHeaders())
    values = {":method": "POST", ":path": "/v1/chat/completions", "x-user-id": user, "x-session-id": user}
    for name, value in values.items():
        head.request_headers.headers.headers.add(key=name, raw_value=value.encode())
    call = channel.stream_stream(
        f"/{SERVICE}/Process",
        request_serializer=pb.ProcessingRequest.SerializeToString,
        response_deserializer=pb.ProcessingResponse.FromString,
    )()
    await call.write(head)
    await call.read()
    await call.write(pb.ProcessingRequest(request_body=pb.HttpBody(body=body, end_of_stream=True)))
    reply = await call.read()
    if reply is grpc.aio.EOF:
        return "closed"
    return str(reply.dynamic_metadata.fields["semmem"].struct_value.fields["outcome"].string_value)


async def bystander(channel: grpc.aio.Channel, outcomes: Counter[str], slowest: list[float]) -> None:
    while True:
        begun = time.monotonic()
        outcomes[await sent(channel, "bob", chat(QUESTION))] += 1
        slowest[0] = max(slowest[0], time.monotonic() - begun)
        await asyncio.sleep(PAUSE_S)


async def attack(channel: grpc.aio.Channel, bodies: Iterator[bytes]) -> Counter[str]:
    async def some() -> Counter[str]:
        return Counter([await sent(channel, "mallory", body) for body in bodies])

    return sum(await asyncio.gather(*(some() for _ in range(AT_ONCE))), Counter())


async def phase(
    server: Server, channels: tuple[grpc.aio.Channel, grpc.aio.Channel], name: str, settle_s: float
) -> Counter[str]:
    """How the bystander's requests ended."""
    outcomes, slowest = Counter[str](), [0.0]
    await server.late()
    begun = time.monotonic()
    asking = asyncio.get_running_loop().create_task(bystander(channels[0], outcomes, slowest))
    bodies = ATTACKS.get(name)
    found = await attack(channels[1], bodies()) if bodies is not None else Counter[str]()
    await asyncio.sleep(settle_s)
    asking.cancel()
    late = " ".join(f"{key} {value:6.1f}" for key, value in (await server.late()).items())
    print(f"{name:28} {time.monotonic() - begun:5.1f} s  late by ms: {late}")
    print(f"{'':28} bystander {dict(outcomes)}, slowest {slowest[0] * 1000:.0f} ms; attacker {dict(found)}", flush=True)
    return outcomes


def verdict(phases: Sequence[Counter[str]]) -> tuple[str, bool]:
    """The last line, of the phases with an attack, and whether everything is as it should be."""
    asked = sum(outcomes.total() for outcomes in phases)
    without = asked - sum(outcomes["injected"] for outcomes in phases)
    said = f"stall: {len(phases)} attacks, {asked} questions of a bystander, {without} without memory"
    return said, bool(phases) and all(outcomes.total() for outcomes in phases) and not without


async def stall(*, short: bool) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        server = await started(Path(folder))
        options = [("grpc.max_send_message_length", 2**26), ("grpc.max_receive_message_length", 2**26)]
        async with (
            httpx.AsyncClient(trust_env=False) as http,
            grpc.aio.insecure_channel(server.addresses["grpc"], options) as quiet,
            grpc.aio.insecure_channel(
                server.addresses["grpc"], [*options, ("grpc.use_local_subchannel_pool", 1)]
            ) as loud,
        ):
            stored = await http.post(
                f"http://{server.addresses['api']}/v1/memory",
                json={"user_id": "bob", "content": FACT},
                headers={"authorization": f"Bearer {TOKEN}"},
            )
            stored.raise_for_status()
            await phase(server, (quiet, loud), "nobody else", SHORT_S if short else QUIET_S)
            settle_s = SHORT_S if short else SETTLE_S
            phases = [await phase(server, (quiet, loud), name, settle_s) for name in ATTACKS]
            metrics = (await http.get(f"http://{server.addresses['health']}/metrics")).text
            told = (
                "semmem_turns_unread_total",
                "semmem_batches_total",
                "llm_memory_extraction_total",
                "semmem_journal_turns",
            )
            print(*(line for line in metrics.splitlines() if line.startswith(told)), sep="\n")
        await server.stop()
    said, is_right = verdict(phases)
    print(said)
    return is_right


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stall", description=__doc__)
    parser.add_argument("--short", action="store_true", help="less time between the attacks")
    short = parser.parse_args().short
    with signals_raise():
        return 0 if asyncio.run(stall(short=short)) else 1


if __name__ == "__main__":
    sys.exit(main())
