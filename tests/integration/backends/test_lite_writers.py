"""Milvus Lite's engine with two writers: one whose caller has left already, and the next."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from demo.stack import HOME

PLAY = """
import json, os, sys, threading
from milvus_lite.db import MilvusLite
from milvus_lite.schema.types import CollectionSchema, DataType, FieldSchema
from milvus_lite.storage.memtable import MemTable
from semmem.backends.milvus import lite_engine

folder, mended, part = sys.argv[1], sys.argv[2] == "mended", sys.argv[3]
if mended:
    lite_engine.install(lambda: os._exit(74))
db = MilvusLite(folder)
if part == "after":
    rows = db.get_collection("memories").query("id != ''", output_fields=["id"])
    print(json.dumps(sorted(row["id"] for row in rows)))
    os._exit(0)
schema = CollectionSchema(fields=[
    FieldSchema("id", DataType.VARCHAR, is_primary=True, max_length=64),
    FieldSchema("vector", DataType.FLOAT_VECTOR, dim=2),
])
collection = db.create_collection("memories", schema)
collection.insert([{"id": "first", "vector": [1.0, 0.0]}])
logged, go_on, apply = threading.Event(), threading.Event(), MemTable.apply_insert

def slowly(self, batch):
    if batch.column("id")[0].as_py() == "second":
        logged.set()
        go_on.wait(50.0)
    apply(self, batch)

MemTable.apply_insert = slowly
row = {"id": "second", "vector": [0.0, 1.0]}
left_alone = threading.Thread(target=lambda: collection.insert([row]))
left_alone.start()
logged.wait(10.0)
next_one = threading.Thread(target=collection.flush)
next_one.start()
next_one.join(1.0 if mended else 40.0)  # without a mend it goes on to its end
go_on.set()
left_alone.join()
next_one.join()
print(json.dumps(sorted(row["id"] for row in collection.query("id != ''", output_fields=["id"]))), flush=True)
os._exit(9)  # as a kill: nothing is closed
"""


def played(folder: Path, engine: str, part: str) -> Any:
    argv = [sys.executable, "-c", PLAY, str(folder), engine, part]
    told = subprocess.run(argv, cwd=HOME, capture_output=True, text=True, timeout=60, check=False)
    assert told.stdout, told.stderr
    return json.loads(told.stdout.splitlines()[-1])


@pytest.mark.parametrize(("engine", "kept"), [("mended", ["first", "second"]), ("as it comes", ["first"])])
def test_a_row_that_was_written_beside_a_flush_stays_also_after_a_kill(
    tmp_path: Path, engine: str, kept: list[str]
) -> None:
    """The engine as it comes is played too: a version of it that needs no mending is to be noticed."""
    assert [played(tmp_path, engine, part) for part in ("before", "after")] == [kept, kept]


DROP = """
import os, sys, threading
from milvus_lite.db import MilvusLite
from milvus_lite.schema.types import CollectionSchema, DataType, FieldSchema
import milvus_lite.engine.flush as engine
from semmem.backends.milvus import lite_engine

lite_engine.install(lambda: os._exit(74))
db = MilvusLite(sys.argv[1])
schema = CollectionSchema(fields=[
    FieldSchema("id", DataType.VARCHAR, is_primary=True, max_length=64),
    FieldSchema("vector", DataType.FLOAT_VECTOR, dim=2),
])
collection = db.create_collection("memories", schema)
begun, go_on, save = threading.Event(), threading.Event(), engine.write_data_file

def slowly(*args, **named):
    begun.set()
    go_on.wait(10.0)
    return save(*args, **named)

collection.insert([{"id": "first", "vector": [1.0, 0.0]}])
engine.write_data_file = slowly
flushing = threading.Thread(target=collection.flush)
flushing.start()
begun.wait(10.0)
dropping = threading.Thread(target=db.drop_collection, args=("memories",))
dropping.start()
dropping.join(0.5)
go_on.set()
flushing.join()
dropping.join()
collection.flush()
print(os.path.exists(collection._data_dir), flush=True)
"""


def test_nothing_is_left_of_a_collection_that_is_dropped_beside_a_flush_and_the_process_goes_on(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", DROP, str(tmp_path)], cwd=HOME, capture_output=True, text=True, timeout=60, check=False
    )
    assert (told.returncode, told.stdout) == (0, "False\n"), told.stderr
