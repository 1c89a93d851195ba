"""The gRPC listener that Envoy talks to; its TLS, mutual where wanted, with certificates that are read again when their
files change."""

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from semmem.envoy.service import ExternalProcessor

SERVICE = "envoy.service.ext_proc.v3.ExternalProcessor"

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class TlsFiles:
    """PEM files: semmem's certificate chain and key; with ``client_ca`` only clients that it signed are let in. They
    are looked at before every handshake; when they changed and can be read, the new certificate is used from then on,
    and connections that exist stay as they are. Files that cannot be read change nothing."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    _seen: tuple[tuple[int, int], ...] = field(init=False, default=())

    def credentials(self) -> Any:
        """For a gRPC server. Raises OSError naming the file that cannot be read."""
        return grpc.dynamic_ssl_server_credentials(
            self._read(), self._if_changed, require_client_authentication=self.client_ca is not None
        )

    def _read(self) -> Any:
        stamps = self._stamps()
        configuration = grpc.ssl_server_certificate_configuration(
            [(self.key.read_bytes(), self.certificate.read_bytes())],
            root_certificates=self.client_ca.read_bytes() if self.client_ca else None,
        )
        self._seen = stamps
        return configuration

    def _if_changed(self) -> Any | None:
        """Called by gRPC, on a thread of its own, before each handshake."""
        try:
            if self._stamps() == self._seen:
                return None
            configuration = self._read()
        except OSError as error:
            log.error("certificate files cannot be read, the old ones stay: %s", error)
            return None
        log.info("certificates were read again")
        return configuration

    def _stamps(self) -> tuple[tuple[int, int], ...]:
        """Modification time and inode of each file: a renewed secret is another file, whatever its time says."""
        stats = [path.stat() for path in (self.certificate, self.key, self.client_ca) if path]
        return tuple((stat.st_mtime_ns, stat.st_ino) for stat in stats)


class ExtProcServer:
    """The gRPC listener: a TCP address or ``unix:PATH``; health by service name; drains on stop. Without ``tls`` it
    speaks plain text: for loopback, a unix socket, or a network that is trusted. Raises OSError naming a file that
    cannot be read."""

    def __init__(
        self, processor: ExternalProcessor, *, address: str, message_bytes_max: int, tls: TlsFiles | None = None
    ) -> None:
        self._processor = processor
        self._credentials = None if tls is None else tls.credentials()
        self._server = grpc.aio.server(
            options=[  # the default message limit of 4 MiB would make every longer chat pass without memory
                ("grpc.max_receive_message_length", message_bytes_max),
                ("grpc.max_send_message_length", message_bytes_max),
                ("grpc.http2.min_ping_interval_without_data_ms", 5000),  # else Envoy's keepalive is answered by GOAWAY
                ("grpc.http2.max_ping_strikes", 0),
                ("grpc.so_reuseport", 0),  # a second semmem on the same port is a mistake, and should say so
            ]
        )
        process = grpc.stream_unary_rpc_method_handler(self._serve)  # bytes on both sides; see the service
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Process": process}),))
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self._address = address

    def use(self, processor: ExternalProcessor) -> None:
        """Streams that begin from now on are this one's; those that began end with the one they have."""
        self._processor = processor

    async def _serve(self, requests: Any, stream: Any) -> bytes:
        return await self._processor.serve(requests, stream)

    async def start(self) -> str:
        """Bind and serve, not yet healthy; the address with the port that was chosen. Raises OSError naming it."""
        try:
            if self._credentials is None:
                port = self._server.add_insecure_port(self._address)
            else:
                port = self._server.add_secure_port(self._address, self._credentials)
        except RuntimeError:
            raise OSError(f"cannot listen for gRPC on {self._address}: is it in use?") from None
        await self.set_serving(False)
        await self._server.start()
        return self._address if self._address.startswith("unix:") else f"{self._address.rpartition(':')[0]}:{port}"

    async def set_serving(self, serving: bool) -> None:
        status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        for service in ("", SERVICE):
            await self._health.set(service, status)

    async def stop(self, grace_s: float) -> None:
        """Refuse new streams, let running ones end for ``grace_s`` seconds, then cancel them."""
        await self.set_serving(False)
        await self._server.stop(grace_s)
