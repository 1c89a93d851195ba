"""mem0 in a process and an environment of its own: JSON lines in, JSON lines out.

Run by the Python of ``.venv-mem0``, as a file: nothing of semmem is imported, and nothing of mem0 anywhere else.

    {"do": "open", "store": "milvus" | "qdrant", "uri", "folder", "collection", "model", "dimension"}
    {"do": "add", "facts": [[number, user, content], ...]}       stored as they are: no language model is asked
    {"do": "settle"}                                             flush what was added, which mem0 never does
    {"do": "search", "question", "user", "limit"}                -> numbers, seconds, embed_seconds, cpu_seconds
    {"do": "close"}                                              drop the collection, and end

Every answer is ``{"ok": true, ...}`` or ``{"ok": false, "error": ...}``. Telemetry is off, models come from a folder.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

CALL_TIMEOUT_S = 60.0
PACKAGES = ("mem0ai", "torch", "sentence-transformers", "pymilvus", "qdrant-client")
ENVIRON = {
    "MEM0_TELEMETRY": "False",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""One compute thread, as semmem's embedder has for each text."""
Asked = dict[str, Any]


class Worker:
    """One mem0 over one store."""

    def __init__(self) -> None:
        self._memory: Any = None
        self._asked: Asked = {}
        self._embedding_s = 0.0

    def do(self, asked: Asked) -> Asked:
        """Raises whatever mem0 and its store raise."""
        return {
            "open": self._open,
            "add": self._add,
            "settle": self._settle,
            "search": self._search,
            "close": self._close,
        }[asked["do"]](asked)

    def _open(self, asked: Asked) -> Asked:
        os.makedirs(asked["folder"], exist_ok=True)
        os.environ.update(ENVIRON | {"MEM0_DIR": asked["folder"]})
        began = time.perf_counter()
        importlib.import_module("torch").set_num_threads(1)
        self._asked = asked
        bm25 = asked["store"] == "milvus" and not self._make_collection(asked)
        self._memory = importlib.import_module("mem0").Memory.from_config(_config(asked))
        self._time_embedding()
        return {
            "seconds": time.perf_counter() - began,
            "bm25": bm25,
            "versions": _versions(),
        }

    def _make_collection(self, asked: Asked) -> bool:
        """A server before 2.5 refuses the collection that mem0 would make (a sparse vector made by a function), but not
        the one that mem0 made before it had keyword search, which it still serves. Whether that was made."""
        pymilvus = importlib.import_module("pymilvus")
        client = self._client()
        release = str(client.get_server_version(timeout=CALL_TIMEOUT_S)).lstrip("v").split(".")
        if not (release[0] == "2" and release[1] < "5"):
            return False
        fields = pymilvus.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        fields.add_field("id", pymilvus.DataType.VARCHAR, is_primary=True, max_length=512)
        fields.add_field("vectors", pymilvus.DataType.FLOAT_VECTOR, dim=asked["dimension"])
        fields.add_field("metadata", pymilvus.DataType.JSON)
        index = client.prepare_index_params()
        index.add_index("vectors", index_type="AUTOINDEX", metric_type="COSINE", index_name="vector_index")
        name = asked["collection"]
        client.create_collection(name, schema=fields, index_params=index, timeout=CALL_TIMEOUT_S)
        return True

    def _time_embedding(self) -> None:
        """Of the query, within a search; by wrapping mem0's own embedder."""
        model = self._memory.embedding_model
        embed = model.embed

        def timed(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return embed(*arguments, **named)
            finally:
                self._embedding_s += time.perf_counter() - began

        model.embed = timed

    def _add(self, asked: Asked) -> Asked:
        began = time.perf_counter()
        for number, user, content in asked["facts"]:
            self._memory.add(content, user_id=user, infer=False, metadata={"number": number})
        return {"seconds": time.perf_counter() - began}

    def _settle(self, _asked: Asked) -> Asked:
        if self._asked["store"] == "milvus":
            client = self._client()
            client.flush(self._asked["collection"], timeout=CALL_TIMEOUT_S)
            client.load_collection(self._asked["collection"], timeout=CALL_TIMEOUT_S)
        return {}

    def _search(self, asked: Asked) -> Asked:
        self._embedding_s = 0.0
        cpu, began = time.process_time(), time.perf_counter()
        found = self._memory.search(asked["question"], filters={"user_id": asked["user"]}, top_k=asked["limit"])
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        return {
            "numbers": [one["metadata"]["number"] for one in found["results"]],
            "seconds": seconds,
            "embed_seconds": self._embedding_s,
            "cpu_seconds": cpu,
        }

    def _close(self, _asked: Asked) -> Asked:
        if self._asked.get("store") == "milvus":
            self._client().drop_collection(self._asked["collection"], timeout=CALL_TIMEOUT_S)
        return {"rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}

    def _client(self) -> Any:
        return importlib.import_module("pymilvus").MilvusClient(uri=self._asked["uri"], timeout=CALL_TIMEOUT_S)


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _config(asked: Asked) -> Asked:
    """mem0's: its defaults, but for cosine as the metric on Milvus, which serves it better than its default (L2)."""
    if asked["store"] == "milvus":
        store = {"url": asked["uri"], "token": "", "db_name": "", "metric_type": "COSINE"}
    else:
        store = {"path": f"{asked['folder']}/qdrant", "on_disk": False}
    store |= {"collection_name": asked["collection"], "embedding_model_dims": asked["dimension"]}
    nobody = {"model": "none", "api_key": "none", "openai_base_url": "http://127.0.0.1:9/v1"}
    return {
        "vector_store": {"provider": asked["store"], "config": store},
        "embedder": {
            "provider": "huggingface",
            "config": {
                "model": asked["model"],
                "embedding_dims": asked["dimension"],
                "model_kwargs": {"device": "cpu"},
            },
        },
        "llm": {"provider": "openai", "config": nobody},
        "history_db_path": f"{asked['folder']}/history.db",
    }


def main() -> None:
    """Until ``close`` or the end of what is asked."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    worker = Worker()
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = {"ok": True, **worker.do(asked)}
        except Exception as error:  # whatever it is: whoever asks has to know
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"[:500]}
        answers.write(json.dumps(answer) + "\n")
        if asked["do"] == "close":
            return


if __name__ == "__main__":
    main()
