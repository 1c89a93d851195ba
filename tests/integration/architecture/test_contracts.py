"""Every kind of violation of the architecture is refused: planted one at a time in a scratch copy, as an import that
somebody in a hurry would write."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[3]

VIOLATIONS = {
    # what is built around it
    "semmem knows an adapter": ("semmem/commands/memories.py", "semmem_langgraph"),
    # a room above
    "memory knows ports": ("semmem/memory.py", "semmem.ports.errors"),
    "ports know text": ("semmem/ports/store.py", "semmem.text.words"),
    "text knows a dialect": ("semmem/text/words.py", "semmem.dialects.sse"),
    "text knows retrieval": ("semmem/text/grounding.py", "semmem.retrieval.rank"),
    "a dialect knows the request": ("semmem/dialects/chat.py", "semmem.request.identity"),
    "a dialect knows retrieval": ("semmem/dialects/messages.py", "semmem.retrieval.context"),
    "request knows turns": ("semmem/request/identity.py", "semmem.turns.sessions"),
    "lifecycle knows extraction": ("semmem/lifecycle/erasure.py", "semmem.extraction.pipeline"),
    "retrieval knows the exchange": ("semmem/retrieval/recall.py", "semmem.exchange"),
    "extraction knows upkeep": ("semmem/extraction/pipeline.py", "semmem.upkeep.consolidation"),
    "telemetry knows wiring": ("semmem/telemetry/metrics.py", "semmem.wiring.app"),
    "backup knows management": ("semmem/backup/importing.py", "semmem.management.api"),
    "backup opens the journal itself": ("semmem/backup/restoring.py", "semmem.backends.sql.journal"),
    "backup knows upkeep": ("semmem/backup/snapshot.py", "semmem.upkeep.maintenance"),
    "lifecycle knows backup": ("semmem/lifecycle/write_gate.py", "semmem.backup.folder"),
    "SQL in backup": ("semmem/backup/folder.py", "sqlite3"),
    "the exchange knows Envoy's door": ("semmem/exchange.py", "semmem.envoy.wire"),
    "the exchange knows telemetry's metrics": ("semmem/exchange.py", "semmem.telemetry.metrics"),
    "background knows telemetry": ("semmem/background/tasks.py", "semmem.telemetry.metrics"),
    "Envoy's door knows wiring": ("semmem/envoy/service.py", "semmem.wiring.app"),
    "wiring knows the command line": ("semmem/wiring/app.py", "semmem.cli"),
    "wiring knows a command": ("semmem/wiring/app.py", "semmem.commands.table"),
    "management knows a command": ("semmem/management/api.py", "semmem.commands.asking"),
    "a backend knows a command": ("semmem/backends/in_process.py", "semmem.commands.failure"),
    "YAML in a command": ("semmem/commands/models.py", "yaml"),
    # a room beside
    "retrieval knows extraction": ("semmem/retrieval/rank.py", "semmem.extraction.screen"),
    "extraction knows retrieval": ("semmem/extraction/dedup.py", "semmem.retrieval.rank"),
    "turns know retrieval": ("semmem/turns/recorder.py", "semmem.retrieval.context"),
    "the two doors know each other": ("semmem/management/api.py", "semmem.envoy.service"),
    "management knows the exchange": ("semmem/management/memories.py", "semmem.exchange"),
    "one dialect knows another": ("semmem/dialects/responses.py", "semmem.dialects.chat"),
    # backends
    "one family of backends knows another": ("semmem/backends/sql/journal.py", "semmem.backends.milvus.store"),
    "a backend of one file knows a family": ("semmem/backends/in_process.py", "semmem.backends.milvus.rows"),
    "one store knows another": ("semmem/backends/qdrant/store.py", "semmem.backends.milvus.rows"),
    "Qdrant outside its family": ("semmem/wiring/backends.py", "qdrant_client"),
    "a backend screens": ("semmem/backends/milvus/rows.py", "semmem.text.screening"),
    "a backend reads times": ("semmem/backends/sql/tables.py", "semmem.text.times"),
    "a backend extracts": ("semmem/backends/models/openai.py", "semmem.extraction.llm"),
    "a backend counts": ("semmem/backends/embedding/cached.py", "semmem.telemetry.metrics"),
    "a backend reads the configuration": ("semmem/backends/milvus/store.py", "semmem.config.settings"),
    "management opens the journal itself": ("semmem/management/memories.py", "semmem.backends.sql.journal"),
    "retrieval opens a store itself": ("semmem/retrieval/search.py", "semmem.backends.in_process"),
    "Envoy's door opens a model itself": ("semmem/envoy/service.py", "semmem.backends.models.openai"),
    "telemetry knows a backend": ("semmem/telemetry/access_statistics.py", "semmem.backends.sql.journal"),
    "metrics know a backend": ("semmem/telemetry/metrics.py", "semmem.backends.milvus.store"),
    # the configuration
    "telemetry reads the configuration": ("semmem/telemetry/access_statistics.py", "semmem.config.settings"),
    "metrics read the configuration": ("semmem/telemetry/metrics.py", "semmem.config.settings"),
    "TLS reads the configuration": ("semmem/envoy/tls.py", "semmem.config.settings"),
    "management reads the configuration": ("semmem/management/api.py", "semmem.config.settings"),
    "the configuration knows retrieval": ("semmem/config/rules.py", "semmem.retrieval.search"),
    "the configuration knows the demo": ("semmem/config/settings.py", "demo.stack"),
    "the configuration knows a backend": ("semmem/config/surroundings.py", "semmem.backends.milvus.lite"),
    # metrics
    "Envoy's door counts by itself": ("semmem/envoy/server.py", "semmem.telemetry.metrics"),
    "management counts by itself": ("semmem/management/memories.py", "semmem.telemetry.metrics"),
    "Prometheus in management": ("semmem/management/memories.py", "prometheus_client"),
    # libraries in the wrong room
    "threads in retrieval": ("semmem/retrieval/rank.py", "threading"),
    "sockets in retrieval": ("semmem/retrieval/recall.py", "socket"),
    "TLS in retrieval": ("semmem/retrieval/search.py", "ssl"),
    "processes in extraction": ("semmem/extraction/pipeline.py", "subprocess"),
    "logging in lifecycle": ("semmem/lifecycle/erasure.py", "logging"),
    "HTTP in extraction": ("semmem/extraction/llm.py", "httpx"),
    "gRPC in the exchange": ("semmem/exchange.py", "grpc"),
    "protobuf in turns": ("semmem/turns/observation.py", "google.protobuf"),
    "our own messages in the exchange": ("semmem/exchange.py", "semmem._proto.semmem_ext_proc_pb2"),
    "gRPC in management": ("semmem/management/health.py", "grpc"),
    "SQL in management": ("semmem/management/memories.py", "sqlalchemy"),
    "SQLite in Milvus' family": ("semmem/backends/milvus/rows.py", "sqlite3"),
    "Milvus in the journal's family": ("semmem/backends/sql/tables.py", "pymilvus"),
    "Redis in the journal's family": ("semmem/backends/sql/replicas.py", "redis"),
    "Redis in wiring": ("semmem/wiring/news.py", "redis.asyncio"),
    "Redis in lifecycle": ("semmem/lifecycle/change_news.py", "redis"),
    "scikit-learn on the way of a request": ("semmem/retrieval/decide/decision.py", "sklearn.linear_model"),
    "a request learns": ("semmem/retrieval/recall.py", "semmem.retrieval.decide.fitting"),
    "the running semmem knows what is learnt from": ("semmem/wiring/request.py", "semmem.retrieval.decide.scenes"),
    "torch in wiring": ("semmem/wiring/app.py", "torch"),
    "YAML in wiring": ("semmem/wiring/app.py", "yaml"),
    "FastAPI in Envoy's door": ("semmem/envoy/service.py", "fastapi"),
    "pydantic in memory": ("semmem/memory.py", "pydantic"),
    # what is built around semmem
    "the command line knows the demo": ("semmem/cli.py", "demo.play"),
    "a command knows the demo": ("semmem/commands/showing.py", "demo.play"),
    "wiring knows the benchmark": ("semmem/wiring/app.py", "bench.blocks"),
    "retrieval knows the measurements": ("semmem/retrieval/rank.py", "quality.recall"),
    # a module without a room
    "a module at the top": ("semmem/helpers.py", "semmem.memory"),
    "a package at the top": ("semmem/common/__init__.py", "semmem.memory"),
    "a backend without a family": ("semmem/backends/kafka.py", "semmem.memory"),
    # a circle
    "a circle of rooms": ("semmem/ports/names.py", "semmem.lifecycle.marks"),
    "a circle in a room": ("semmem/dialects/sse.py", "semmem.dialects.chat"),
    "a circle in a family": ("semmem/backends/sql/tables.py", "semmem.backends.sql.rows"),
}
"""What is planted: an import of the second in the first, which is made where it does not exist."""


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """Plants one import in the copy, and takes it out again: what import-linter says, "" when it accepts."""
    copy = tmp_path_factory.mktemp("copy")
    for package in ("semmem", "demo", "bench", "quality"):
        shutil.copytree(HOME / package, copy / package, ignore=shutil.ignore_patterns("__pycache__", "*.jsonl"))
    shutil.copy(HOME / "pyproject.toml", copy)

    def lint() -> str:
        done = subprocess.run(
            [str(Path(sys.executable).with_name("lint-imports"))],
            cwd=copy,
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": "", "PYTHONPATH": str(copy)},
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.stdout if done.returncode else ""

    def plant(place: str, imported: str) -> str:
        file = copy / place
        before = file.read_text("utf-8") if file.exists() else None
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{before or ''}\nimport {imported}\n", "utf-8")
        try:
            return lint()
        finally:
            if before is not None:
                file.write_text(before, "utf-8")
            else:
                file.unlink()
                if not any(file.parent.iterdir()):
                    file.parent.rmdir()

    assert lint() == "", "the code itself breaks a contract: run lint-imports"
    return plant


@pytest.mark.parametrize("kind", VIOLATIONS)
def test_a_planted_violation_is_refused(kind: str, refused: Callable[[str, str], str]) -> None:
    place, imported = VIOLATIONS[kind]
    made = not (HOME / place).exists()
    assert made == (kind.startswith(("a module", "a package", "a backend without"))), f"{place} has moved"

    said = refused(place, imported)

    importer = place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    assert importer.rpartition(".")[2] in said, said


def test_an_import_that_is_allowed_passes(refused: Callable[[str, str], str]) -> None:
    assert refused("semmem/retrieval/rank.py", "semmem.ports.errors") == ""
