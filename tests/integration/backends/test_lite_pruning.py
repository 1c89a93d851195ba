"""Milvus Lite's engine asked for one user's rows: it looks at fewer, and answers the same as it does unmended."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from milvus_lite.search.filter.ast import And, CmpOp, FieldRef, Or, StringLit

from demo.stack import HOME
from semmem.backends.milvus.lite_pruning import user_of
from semmem.backends.milvus.rows import quote

STORY = """
import json, os, random, sys
import milvus_lite.search.bitmap as bitmap
from milvus_lite.db import MilvusLite
from milvus_lite.engine.collection import Collection
from milvus_lite.schema.types import CollectionSchema, DataType, FieldSchema
from semmem.backends.milvus import lite_engine, lite_files, lite_pruning
from semmem.backends.milvus.rows import quote

folder, draw = sys.argv[1], random.Random(int(sys.argv[2]))
query, search = Collection.query, Collection.search  # as they come
lite_engine.install(lambda: os._exit(74))
lite_pruning.install()
USERS = ["ada", "bob", 'a"d\\\\a', "a\\nb", "ADA", "nobody", ""]
schema = CollectionSchema(fields=[
    FieldSchema("id", DataType.VARCHAR, is_primary=True, max_length=64),
    FieldSchema("user_id", DataType.VARCHAR, max_length=64, is_partition_key=True),
    FieldSchema("number", DataType.INT64),
    FieldSchema("vector", DataType.FLOAT_VECTOR, dim=3),
])
db = MilvusLite(folder)
collection = db.create_collection("memories", schema)
looked_at, valid = [], bitmap.build_valid_mask
bitmap.build_valid_mask = lambda pks, *rest, **named: looked_at.append(len(pks)) or valid(pks, *rest, **named)
fields, differing, pruned, known = ["id", "user_id", "number"], [], [], {}

def in_order(rows):  # files may be merged between two reads
    return sorted(rows, key=lambda row: row["id"])

def near(found):  # of other files, so many rows at a time, a cosine's last digit is another one
    return [(hit["id"], hit["entity"], round(hit["distance"], 5)) for hit in found[0]]

def insert():
    rows = []
    for _ in range(draw.randint(1, 12)):
        user, number = draw.choice(USERS[:5]), draw.randint(0, 30)
        vector = [draw.random() + 0.1 for _ in range(3)]
        named = {"user_id": user, "number": draw.randint(0, 9), "vector": vector}
        rows.append({"id": f"{USERS.index(user)}:{number}", **named})
    collection.insert(list({row["id"]: row for row in rows}.values()))

def delete():
    collection.delete([f"{draw.randint(0, 4)}:{draw.randint(0, 30)}" for _ in range(draw.randint(1, 9))])

def compare():
    vector = [draw.random() for _ in range(3)]
    for user in USERS:
        mine = f"user_id == {quote(user)}"
        narrowed = [f"{mine} and number < 5", f"({mine} and (number == 1 or number == 2))", f"number < 5 and {mine}"]
        others = [*narrowed, f"{mine} or number == 3", f"not ({mine})"]
        for expr in (mine, *draw.sample(others, 2)):  # each comes a hundred times in the whole story
            looked_at[:] = [0]
            some = draw.choice([fields, ["id"], ["vector", "user_id"], [], None, ["*"]])
            wanted = query(collection, expr, output_fields=some)
            looked_at.append(0)
            found = collection.query(expr, output_fields=some, limit=1000)
            if in_order(found) != in_order(wanted):
                differing.append([expr, wanted, found])
            if expr == mine and found:
                pruned.append(looked_at[-1] < looked_at[1])
            nearest = [search(collection, [vector], top_k=5, expr=expr, output_fields=fields)]
            nearest.append(collection.search([vector], top_k=5, expr=expr, output_fields=fields))
            if near(nearest[0]) != near(nearest[1]):
                differing.append([expr, *nearest])
    if len(collection.query(None)) != len(query(collection, None)) or lite_pruning._reading.user is not None:
        differing.append("everybody")

for step in range(60):
    kept_up = [collection.flush, collection._wait_for_bg, lambda: lite_files.purge(collection)]
    draw.choice([insert, insert, insert, delete, *kept_up])()
    if step % 3 == 0:
        compare()
db.close()
collection = MilvusLite(folder).get_collection("memories")
collection.load()
compare()
print(json.dumps([differing[:3], sum(pruned), len(pruned)]), flush=True)
os._exit(0)
"""


def told(folder: Path, seed: int) -> Any:
    argv = [sys.executable, "-c", STORY, str(folder), str(seed)]
    ran = subprocess.run(argv, cwd=HOME, capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.parametrize("seed", range(3))
def test_whatever_was_written_and_removed_a_users_rows_are_the_same_and_fewer_are_looked_at(
    tmp_path: Path, seed: int
) -> None:
    differing, pruned, asked = told(tmp_path, seed)
    assert differing == []
    assert pruned > 0.9 * asked > 9


def is_(user: str, field: str = "user_id") -> CmpOp:
    return CmpOp("==", FieldRef(field, 0), StringLit(user, 0), 0)


def test_only_a_filter_that_nobody_elses_rows_pass_names_a_user() -> None:
    other = is_("x", "project")
    assert user_of(is_("ada"), "user_id") == user_of(And((other, is_("ada")), 0), "user_id") == "ada"
    for filter in (other, Or((is_("ada"), other), 0), And((other, Or((is_("ada"), other), 0)), 0)):
        assert user_of(filter, "user_id") is None
    assert quote('a"b') == '"a\\"b"'
