"""TLS on Envoy's door: who is let in, and new certificates without a restart."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
import trustme
from grpc_health.v1 import health_pb2, health_pb2_grpc

from semmem.envoy.server import ExtProcServer, TlsFiles
from semmem.envoy.service import DoorLimits, ExternalProcessor
from tests.core.exchange.world import World


class Pki:
    """A certificate authority and the files that semmem reads."""

    def __init__(self, folder: Path) -> None:
        self.ca = trustme.CA()
        self.folder = folder
        self.issue()
        (folder / "ca.crt").write_bytes(self.ca.cert_pem.bytes())

    def issue(self) -> None:
        """A certificate for semmem, put in place as a renewal would put it."""
        issued = self.ca.issue_cert("semmem")
        for name, blob in (
            ("tls.crt", b"".join(pem.bytes() for pem in issued.cert_chain_pems)),
            ("tls.key", issued.private_key_pem.bytes()),
        ):
            (self.folder / f"{name}.new").write_bytes(blob)
            os.replace(self.folder / f"{name}.new", self.folder / name)

    def files(self, *, mutual: bool) -> TlsFiles:
        return TlsFiles(self.folder / "tls.crt", self.folder / "tls.key", self.folder / "ca.crt" if mutual else None)


async def shown_by(address: str) -> str:
    """The certificate that a new connection is shown."""
    host, _, port = address.rpartition(":")
    return await asyncio.to_thread(ssl.get_server_certificate, (host, int(port)))


@asynccontextmanager
async def serving(files: TlsFiles) -> AsyncIterator[str]:
    processor = ExternalProcessor(World().exchange, DoorLimits())
    server = ExtProcServer(processor, address="127.0.0.1:0", message_bytes_max=2**20, tls=files)
    address = await server.start()
    await server.set_serving(True)
    yield address
    await server.stop(0.1)


async def answers(address: str, credentials: grpc.ChannelCredentials | None) -> bool:
    options = [("grpc.ssl_target_name_override", "semmem")]
    channel = (
        grpc.aio.secure_channel(address, credentials, options=options)
        if credentials
        else grpc.aio.insecure_channel(address)
    )
    async with channel:
        try:
            answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=60)
        except grpc.aio.AioRpcError:
            return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


async def test_a_client_that_believes_the_authority_gets_in_and_plain_text_does_not(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    async with serving(pki.files(mutual=False)) as address:
        assert await answers(address, grpc.ssl_channel_credentials(pki.ca.cert_pem.bytes()))
        assert not await answers(address, grpc.ssl_channel_credentials(trustme.CA().cert_pem.bytes()))
        assert not await answers(address, None)


async def test_with_a_client_authority_only_its_clients_get_in(tmp_path: Path) -> None:
    pki = Pki(tmp_path)

    def client(ca: trustme.CA) -> grpc.ChannelCredentials:
        own = ca.issue_cert("envoy")
        chain = b"".join(pem.bytes() for pem in own.cert_chain_pems)
        return grpc.ssl_channel_credentials(pki.ca.cert_pem.bytes(), own.private_key_pem.bytes(), chain)

    async with serving(pki.files(mutual=True)) as address:
        assert await answers(address, client(pki.ca))
        assert not await answers(address, client(trustme.CA()))
        assert not await answers(address, grpc.ssl_channel_credentials(pki.ca.cert_pem.bytes()))


async def test_a_renewed_certificate_is_shown_without_a_restart_and_a_broken_one_changes_nothing(
    tmp_path: Path,
) -> None:
    pki = Pki(tmp_path)
    async with serving(pki.files(mutual=False)) as address:
        first = await shown_by(address)
        assert await shown_by(address) == first
        pki.issue()
        second = await shown_by(address)
        assert second != first
        (tmp_path / "tls.key").unlink()
        assert await shown_by(address) == second


def test_a_file_that_is_missing_at_the_start_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"missing\.crt"):
        TlsFiles(tmp_path / "missing.crt", tmp_path / "missing.key").credentials()
