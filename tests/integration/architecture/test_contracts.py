"""Every kind of violation of the architecture is refused: planted in a scratch copy, as an import that somebody in a
hurry would write."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
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
    "the exchange knows Envoy's door": ("semmem/exchange/exchange.py", "semmem.envoy.wire"),
    "the exchange knows a feature": ("semmem/exchange/exchange.py", "semmem.usage.meter"),
    "one feature knows another": ("semmem/usage/meter.py", "semmem.conversations.tap"),
    "the exchange knows telemetry's metrics": ("semmem/exchange/exchange.py", "semmem.telemetry.metrics"),
    "background knows telemetry": ("semmem/background/tasks.py", "semmem.telemetry.metrics"),
    "Envoy's door knows wiring": ("semmem/envoy/service.py", "semmem.wiring.app"),
    "wiring knows the command line": ("semmem/wiring/app.py", "semmem.cli"),
    "wiring knows a command": ("semmem/wiring/app.py", "semmem.commands.table"),
    "management knows a command": ("semmem/management/api.py", "semmem.commands.asking"),
    "a backend knows a command": ("semmem/backends/in_process.py", "semmem.commands.command"),
    "YAML in a command": ("semmem/commands/operating.py", "yaml"),
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
    "TLS reads the configuration": ("semmem/envoy/server.py", "semmem.config.settings"),
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
    "gRPC in the exchange": ("semmem/exchange/exchange.py", "grpc"),
    "protobuf in turns": ("semmem/turns/observation.py", "google.protobuf"),
    "our own messages in the exchange": ("semmem/exchange/exchange.py", "semmem._proto.semmem_ext_proc_pb2"),
    "gRPC in management": ("semmem/management/server.py", "grpc"),
    "SQL in management": ("semmem/management/memories.py", "sqlalchemy"),
    "SQLite in Milvus' family": ("semmem/backends/milvus/rows.py", "sqlite3"),
    "Milvus in the journal's family": ("semmem/backends/sql/tables.py", "pymilvus"),
    "Redis in the journal's family": ("semmem/backends/sql/housekeeping.py", "redis"),
    "Redis in wiring": ("semmem/wiring/replicas.py", "redis.asyncio"),
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
    "a command knows the demo": ("semmem/commands/serving.py", "demo.play"),
    "wiring knows the benchmark": ("semmem/wiring/app.py", "bench.blocks"),
    "retrieval knows the measurements": ("semmem/retrieval/rank.py", "quality.recall"),
    # a module without a room
    "a module at the top": ("semmem/helpers.py", "semmem.memory"),
    "a package at the top": ("semmem/common/__init__.py", "semmem.memory"),
    "a backend without a family": ("semmem/backends/kafka.py", "semmem.memory"),
    # a circle
    "a circle of rooms": ("semmem/ports/names.py", "semmem.lifecycle.hiding_store"),
    "a circle in a room": ("semmem/dialects/sse.py", "semmem.dialects.chat"),
    "a circle in a family": ("semmem/backends/sql/tables.py", "semmem.backends.sql.rows"),
}
"""What is planted: an import of the second in the first, which is made where it does not exist."""


ALONE = [kind for kind in VIOLATIONS if kind.startswith(("a module", "a package", "a backend without", "a circle in"))]
"""Of these import-linter does not tell the import, but the module or the circle: they are planted one at a time."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code, and the contracts."""
    copy = tmp_path_factory.mktemp("copy")
    for package in ("semmem", "demo", "bench", "quality"):
        shutil.copytree(HOME / package, copy / package, ignore=shutil.ignore_patterns("__pycache__", "*.jsonl"))
    shutil.copy(HOME / "pyproject.toml", copy)
    assert refusal(copy) == "", "the code itself breaks a contract: run lint-imports"
    return copy


def refusal(copy: Path, *planted: tuple[str, str]) -> str:
    """What import-linter says with these imports in the copy, "" when it accepts. They are taken out again."""
    files = {copy / place for place, _ in planted}
    before = {file: file.read_text("utf-8") for file in files if file.exists()}
    for place, imported in planted:
        (copy / place).parent.mkdir(exist_ok=True)
        with (copy / place).open("a", encoding="utf-8") as code:
            code.write(f"\nimport {imported}\n")
    try:
        return lint(copy)
    finally:
        for file in files:
            _put_back(file, before.get(file))


def _put_back(file: Path, text: str | None) -> None:
    if text is not None:
        file.write_text(text, "utf-8")
        return
    file.unlink()
    if not any(file.parent.iterdir()):
        file.parent.rmdir()


def lint(copy: Path) -> str:
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


def module_of(place: str) -> str:
    return place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def has_moved(kind: str) -> bool:
    made = not (HOME / VIOLATIONS[kind][0]).exists()
    return made != kind.startswith(("a module", "a package", "a backend without"))


@pytest.fixture(scope="module")
def refused_together(copy: Path) -> str:
    """What is said of all that are told by their import. One does not hide another: each forbidden import is told."""
    return refusal(copy, *(planted for kind, planted in VIOLATIONS.items() if kind not in ALONE))


@pytest.mark.parametrize("kind", [kind for kind in VIOLATIONS if kind not in ALONE])
def test_a_planted_violation_is_refused(kind: str, refused_together: str) -> None:
    """As a chain of this one import: as a link of a longer one it would be told because of what another import does."""
    place, imported = VIOLATIONS[kind]
    assert not has_moved(kind), f"{place} has moved"

    ours = imported.partition(".")[0] in ("semmem", "demo", "bench", "quality")
    link = re.escape(f"{module_of(place)} -> {imported if ours else imported.partition('.')[0]}")
    assert re.search(rf"^- +{link} \(l\.\d+\)\n(?! +\S)", refused_together, re.MULTILINE), refused_together[-4000:]


@pytest.mark.parametrize("kind", ALONE)
def test_a_module_without_a_room_and_a_circle_in_one_are_refused(kind: str, copy: Path) -> None:
    place, imported = VIOLATIONS[kind]
    assert not has_moved(kind), f"{place} has moved"

    said = refusal(copy, (place, imported))

    assert module_of(place).rpartition(".")[2] in said, said


def test_an_import_that_is_allowed_passes(copy: Path) -> None:
    assert refusal(copy, ("semmem/retrieval/rank.py", "semmem.ports.errors")) == ""
