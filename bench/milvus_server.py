"""A real Milvus on this machine, for benchmarks: the standalone server in the PyPI package ``milvus``.

The package needs an environment of its own (``make .venv-milvus/.ready``), whose Python runs this file:

    .venv-milvus/bin/python -P bench/milvus_server.py FOLDER --port 19530

It says ``milvus ready URI`` when it serves, 5 to 15 seconds later, and ends with SIGTERM. Without ``--port`` it takes a
free one; several may run beside each other, as etcd inside each has two ports of its own on 127.0.0.1.
``--authorization`` makes it ask for a token (``root:Milvus`` at first), ``--tls FOLDER`` speak TLS with the
``server.pem`` and ``server.key`` in there, and with a ``ca.pem`` ask clients for a certificate of that authority.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import socket
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

START_S = 120.0
POLL_S = 0.1
ETCD = """\
name: default
data-dir: {folder}/data/etcd.data
listen-client-urls: http://127.0.0.1:{client}
advertise-client-urls: http://127.0.0.1:{client}
listen-peer-urls: http://127.0.0.1:{peer}
initial-advertise-peer-urls: http://127.0.0.1:{peer}
initial-cluster: default=http://127.0.0.1:{peer}
log-outputs: [{folder}/logs/etcd.log]
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for its data, some 250 MB and more")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--authorization", action="store_true")
    parser.add_argument("--tls", type=Path)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    port, client, peer = _free_ports(3)
    os.environ["ETCD_CONFIG_PATH"] = str(_etcd(folder, client, peer))
    options = {"proxy_port": arguments.port or port, "etcd_port": client}
    settings = {"authorization_enabled": arguments.authorization, **_tls(arguments.tls)}
    server = _server(settings, data_dir=str(folder), **options)
    server.start()
    process = server.server_proc
    # It does not end by SIGTERM within 20 seconds, and its data are nobody's.
    signal.signal(signal.SIGTERM, lambda *_: process.kill())
    signal.signal(signal.SIGINT, lambda *_: process.kill())
    if not _is_healthy(process, server.webservice_port):
        process.kill()
        print(f"milvus did not start, see {arguments.folder}/logs", file=sys.stderr)
        return 1
    print(f"milvus ready http://127.0.0.1:{server.listen_port}", flush=True)
    process.wait()
    return 0


def _free_ports(number: int) -> list[int]:
    found = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [each.getsockname()[1] for each in found]
    for each in found:
        each.close()
    return ports


def _etcd(folder: Path, client: int, peer: int) -> Path:
    """The file that tells the etcd inside where to listen."""
    for name in ("configs", "logs", "data"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    file = folder / "configs" / "etcd.yaml"
    file.write_text(ETCD.format(folder=folder, client=client, peer=peer))
    return file


def _tls(certificates: Path | None) -> dict[str, Any]:
    if certificates is None:
        return {}
    files = {name: str(certificates.resolve() / name) for name in ("server.pem", "server.key", "ca.pem")}
    paths = {"server_pem_path": files["server.pem"], "server_key_path": files["server.key"]}
    return {**paths, "ca_pem_path": files["ca.pem"], "tls_mode": 2 if Path(files["ca.pem"]).exists() else 1}


def _server(settings: dict[str, Any], **options: Any) -> Any:
    milvus = importlib.import_module("milvus")

    class Config(milvus.MilvusServerConfig):  # type: ignore[name-defined, misc]
        def try_bind_port(self, port: int) -> socket.socket | None:
            """The package's own cannot bind a port again within a minute."""
            found = socket.socket()
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                found.bind(("127.0.0.1", port))
                found.listen()
            except OSError:
                found.close()
                return None
            return found

    config = Config(**options)
    for name, value in settings.items():
        config.configurable_items[name][1] = value
    return milvus.MilvusServer(config, wait_for_started=False)


def _is_healthy(process: Any, port: int) -> bool:
    """The package's own waiting goes on for three minutes when the server has crashed."""
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1) as answer:
                if b"OK" in answer.read():
                    return True
        except OSError:
            pass
        time.sleep(POLL_S)
    return False


if __name__ == "__main__":
    sys.exit(main())
