"""What a configuration needs of the machine: folders that can be written, and a model that is there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from semmem.config import load, remarks, surroundings
from semmem.config.problems import Problem
from tests.support.configuration import check, only, write


def found(directory: Path, text: str, environ: dict[str, str] | None = None) -> list[Problem]:
    return check(write(directory, text), {"HOME": str(directory), **(environ or {})}, here=True)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("data_dir: /proc/nope", "data_dir"),
        ("data_dir: /dev/null/nope", "data_dir"),
        ("data_dir: {tmp}/file", "data_dir"),
        ("data_dir: {tmp}/d\nmemory: {{milvus: {{data_dir: /proc/nope}}}}", "memory.milvus.data_dir"),
        (
            "data_dir: {tmp}/d\nmemory: {{backend: qdrant, qdrant: {{data_dir: /proc/nope}}}}",
            "memory.qdrant.data_dir",
        ),
        ("data_dir: {tmp}/d\njournal: {{path: /proc/nope/journal.db}}", "journal.path"),
        ("data_dir: {tmp}/d\nlisteners: {{grpc: {{unix_socket: /proc/nope/s.sock}}}}", "listeners.grpc.unix_socket"),
    ],
)
def test_a_folder_that_cannot_be_made_is_named_with_a_reason_and_a_remedy(tmp_path: Path, text: str, path: str) -> None:
    (tmp_path / "file").write_text("")
    problem = only(found(tmp_path, text.format(tmp=tmp_path)))
    assert problem.path == path
    assert problem.value
    assert "cannot be made" in problem.reason or "is no folder" in problem.reason
    assert "may make and write" in problem.remedy


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("", ""),
        ("stdout", ""),
        ("audit.jsonl", ""),
        ("{tmp}/audit.jsonl", ""),
        ("/dev/null", ""),
        ("logs/audit.jsonl", "is in no folder"),
        ("{tmp}/config.yaml/audit.jsonl", "is in no folder"),
        ("/proc/audit.jsonl", "is in a folder that cannot be written"),
        ("{tmp}/folder", "cannot be written"),
    ],
)
def test_an_audit_log_that_could_not_be_written_is_named_before_the_first_line(
    tmp_path: Path, to: str, reason: str
) -> None:
    (tmp_path / "folder").mkdir()
    text = f"data_dir: {tmp_path}/d\nlisteners: {{api: {{audit: {{to: '{to.format(tmp=tmp_path)}'}}}}}}"
    problems = found(tmp_path, text)
    assert [problem.path for problem in problems] == ["listeners.api.audit.to"] * bool(reason)
    assert all(problem.reason.startswith(reason) for problem in problems)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml", "folder"]


def test_a_folder_that_can_be_made_is_not_made(tmp_path: Path) -> None:
    assert found(tmp_path, f"data_dir: {tmp_path}/a/b/c") == []
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


def test_a_folder_in_use_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    assert found(tmp_path, f"data_dir: {tmp_path}/data") == []
    assert list((tmp_path / "data").iterdir()) == []


def test_without_an_embedded_store_its_folder_does_not_matter(tmp_path: Path) -> None:
    elsewhere = "{address: 'milvus:19530', data_dir: /proc/nope}"
    assert found(tmp_path, f"data_dir: {tmp_path}/d\nmemory: {{milvus: {elsewhere}}}") == []


@pytest.mark.parametrize(
    ("rules", "missing"),
    [
        ("index: HNSW", True),
        ("index: IVF_SQ8", True),
        ("index: FLAT", False),
        ("index: HNSW, address: 'm:19530'", False),
    ],
)
def test_an_index_that_the_embedded_store_has_not_without_its_package_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rules: str, missing: bool
) -> None:
    text = f"data_dir: {tmp_path}/d\nmemory: {{milvus: {{{rules}}}}}"
    assert found(tmp_path, text) == []
    monkeypatch.setitem(sys.modules, "faiss", None)
    problems = found(tmp_path, text)
    assert [problem.path for problem in problems] == ["memory.milvus.index"] * missing


@pytest.mark.parametrize("model", ["/no/such/folder", "./nope", "nobody/made-this", "made-up-name"])
def test_a_local_model_that_is_missing_is_refused(tmp_path: Path, model: str) -> None:
    text = f"data_dir: {tmp_path}/d\nmemory: {{embedding: {{source: local, model: '{model}'}}}}"
    problem = only(found(tmp_path, text))
    assert (problem.path, problem.value) == ("memory.embedding.model", repr(model))
    assert problem.reason == "is not on this machine in fp32, nor are its weights"
    assert "source auto" in problem.remedy
    assert found(tmp_path, text.replace("local", "auto")) == []


def test_a_model_is_a_folder_a_package_or_in_the_cache(tmp_path: Path) -> None:
    text = f"data_dir: {tmp_path}/d\nmemory: {{embedding: {{source: local, model: '%s'}}}}"
    (tmp_path / "model").mkdir()
    assert found(tmp_path, text % (tmp_path / "model")) == []
    assert found(tmp_path, text % "sentence-transformers/all-MiniLM-L6-v2") == []
    snapshot = tmp_path / "hub" / "models--acme--small" / "snapshots" / "1a2b"
    snapshot.mkdir(parents=True)
    cache = {"HF_HUB_CACHE": str(tmp_path / "hub")}
    assert len(found(tmp_path, text % "acme/small", cache)) == 1
    (snapshot / "modules.json").write_text("[]")
    assert found(tmp_path, text % "acme/small", cache) == []
    assert len(found(tmp_path, text % "acme/small")) == 1


@pytest.mark.parametrize("rules", ["backend: onnx", "precision: int8"])
def test_a_model_that_cannot_be_written_and_was_not_is_refused(tmp_path: Path, rules: str) -> None:
    text = f"data_dir: {tmp_path}/d\nmemory: {{embedding: {{{rules}, model: nobody/m, onnx_dir: '{tmp_path}/models'}}}}"
    problem = only(found(tmp_path, text))
    assert (problem.path, problem.value) == ("memory.embedding.model", "'nobody/m'")
    assert "semmem model export" in problem.remedy
    assert found(tmp_path, text.replace("nobody/m,", "all-MiniLM-L6-v2,")) == []
    folder = tmp_path / "models" / f"nobody--m.0123.{'int8' if 'int8' in rules else 'fp32'}"
    folder.mkdir(parents=True)
    (folder / "about.json").write_text("{}")
    assert found(tmp_path, text) == []


def test_pytorch_has_to_be_here_where_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"data_dir: {tmp_path}/d\nmemory: {{embedding: {{backend: torch}}}}"
    assert found(tmp_path, text) == []
    monkeypatch.setattr(surroundings, "TORCH_LIBRARY", "no_such_library")
    problem = only(found(tmp_path, text))
    assert problem.path == "memory.embedding.backend"
    assert "pip install 'semmem[torch]'" in problem.remedy


def test_the_model_can_be_written_where_nothing_else_serves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"data_dir: {tmp_path}/d\nmemory: {{embedding: {{onnx_dir: /proc/nope}}}}"
    assert found(tmp_path, text) == []
    monkeypatch.setattr(surroundings, "TORCH_LIBRARY", "no_such_library")
    problem = only(found(tmp_path, text))
    assert problem.path == "memory.embedding.onnx_dir"
    assert "cannot be made" in problem.reason


def test_a_local_model_may_be_an_exported_one(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "acme--small.0123.fp32"
    folder.mkdir(parents=True)
    rules = f"source: local, model: acme/small, onnx_dir: '{tmp_path}/models'"
    text = f"data_dir: {tmp_path}/d\nmemory: {{embedding: {{{rules}}}}}"
    assert len(found(tmp_path, text)) == 1
    (folder / "about.json").write_text("{}")
    assert found(tmp_path, text) == []
    assert len(found(tmp_path, text.replace("source: local", "source: local, backend: torch"))) == 1


def test_a_file_is_loaded_whatever_the_machine_lacks(tmp_path: Path) -> None:
    file = write(tmp_path, "data_dir: /proc/nope")
    assert load(file, {}).data_dir == "/proc/nope"
    assert check(file, {}) == []


@pytest.mark.parametrize("source", ["remote", "static", "none"])
def test_a_model_that_is_not_used_need_not_be_there(tmp_path: Path, source: str) -> None:
    rules = f"source: {source}, precision: int8, static_dir: x, remote: {{url: 'http://x', model: m}}"
    assert found(tmp_path, f"data_dir: {tmp_path}/d\nmemory: {{embedding: {{{rules}, onnx_dir: '{tmp_path}'}}}}") == []


def remarked(folder: Path, rules: str, *, here: bool = True) -> list[str]:
    """What is said of these rules of ``memory.embedding``, where no model was exported."""
    settings = load(write(folder, f"memory: {{embedding: {{onnx_dir: '{folder}/models', {rules}}}}}"), {})
    return list(remarks(settings, {}, here=here))


def test_what_is_worse_without_a_model_is_remarked_on(tmp_path: Path) -> None:
    (told,) = remarked(tmp_path, "source: none")
    assert told.startswith("memory.embedding.source is none: memories are found by the words")
    assert remarked(tmp_path, "source: none", here=False) == [told]
    (told,) = remarked(tmp_path, "model: nobody/made-this")
    assert told.startswith("warning: the embedding model nobody/made-this is not installed: as with")
    assert told.endswith("Install it (semmem model export), or write source: none")


def test_nothing_is_remarked_on_where_there_is_a_model_or_nobody_can_tell(tmp_path: Path) -> None:
    assert remarked(tmp_path, "model: all-MiniLM-L6-v2") == []
    assert remarked(tmp_path, "model: nobody/made-this", here=False) == []
    assert remarked(tmp_path, "model: nobody/made-this, static_dir: x") == []
    assert remarked(tmp_path, "model: nobody/made-this, remote: {url: 'http://x', model: m}") == []
    folder = tmp_path / "models" / "nobody--made-this.0123.fp32"
    folder.mkdir(parents=True)
    (folder / "about.json").write_text("{}")
    assert remarked(tmp_path, "model: nobody/made-this") == []
    assert len(remarked(tmp_path, "model: nobody/made-this, backend: torch")) == 1


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ("memory: {hot_cache: {warm_users: 10}}", False),
        ("memory: {hot_cache: {warm_users: 10, staleness_s: 5}}", True),
        ("memory: {hot_cache: {warm_users: 10, staleness_s: 600}}", False),
        ("memory: {hot_cache: {staleness_s: 5}}", False),
    ],
)
def test_loading_users_who_are_read_again_when_they_come_is_remarked_on(tmp_path: Path, rules: str, told: bool) -> None:
    settings = load(write(tmp_path, rules), {})
    said = [line for line in remarks(settings, {}, here=False) if "warm_users" in line]
    assert bool(said) is told
    several = settings.model_copy(update={"deployment": settings.deployment.model_copy(update={"replicas": 2})})
    said = [line for line in remarks(several, {}, here=False) if "warm_users" in line]
    assert bool(said) is told


def test_users_loaded_by_replicas_that_hardly_trust_what_they_are_told_are_remarked_on(tmp_path: Path) -> None:
    settings = load(write(tmp_path, "memory: {hot_cache: {warm_users: 10, told_staleness_s: 20}}"), {})
    several = settings.model_copy(update={"deployment": settings.deployment.model_copy(update={"replicas": 2})})
    told = [[line for line in remarks(each, {}, here=False) if "20.0 s" in line] for each in (settings, several)]
    assert [len(lines) for lines in told] == [0, 1]
