"""TLS and mutual TLS for Envoy's door, with certificates that are read again when their files change."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class TlsFiles:
    """PEM files: semmem's certificate chain and key; with ``client_ca`` only clients that it signed are let in."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    _seen: tuple[tuple[int, int], ...] = field(init=False, default=())

    def read(self) -> Any:
        stamps = self._stamps()
        configuration = grpc.ssl_server_certificate_configuration(
            [(self.key.read_bytes(), self.certificate.read_bytes())],
            root_certificates=self.client_ca.read_bytes() if self.client_ca else None,
        )
        self._seen = stamps
        return configuration

    def if_changed(self) -> Any | None:
        """Called by gRPC, on a thread of its own, before each handshake."""
        try:
            if self._stamps() == self._seen:
                return None
            configuration = self.read()
        except OSError as error:
            log.error("certificate files cannot be read, the old ones stay: %s", error)
            return None
        log.info("certificates were read again")
        return configuration

    def _stamps(self) -> tuple[tuple[int, int], ...]:
        """Modification time and inode of each file: a renewed secret is another file, whatever its time says."""
        stats = [path.stat() for path in (self.certificate, self.key, self.client_ca) if path]
        return tuple((stat.st_mtime_ns, stat.st_ino) for stat in stats)


def server_credentials(files: TlsFiles) -> Any:
    """Credentials for a gRPC server. Raises OSError naming the file that cannot be read. The files are looked at before
    every handshake; when they changed and can be read, the new certificate is used from then on, and connections that
    exist stay as they are. Files that cannot be read change nothing."""
    return grpc.dynamic_ssl_server_credentials(
        files.read(), files.if_changed, require_client_authentication=files.client_ca is not None
    )
