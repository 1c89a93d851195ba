"""What Qdrant's indexes and quantisation cost, on Qdrant's own engine in this process (the package ``qdrant-edge-py``).

It has no server and another interface, so semmem's store cannot stand on it; collection and searches are the same as
semmem/backends/qdrant/collection.py asks of a server. The package needs an environment of its own:

    python -m quality.quantisation FOLDER --save material.npz
    python -m venv EDGE; EDGE/bin/pip install qdrant-edge-py==0.9.0 numpy
    EDGE/bin/python -P quality/quantisation_qdrant.py material.npz
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import time
from typing import Any

import numpy as np

LIMIT = 5
LINKS = 16
INDEXED_FROM_KB = 1
"""The engine leaves segments below this size as they are; a server's default is 10,000."""
BATCH = 500


def main(path: str) -> None:
    edge: Any = importlib.import_module("qdrant_edge")
    with np.load(path, allow_pickle=False) as kept:
        material = {name: kept[name] for name in kept.files}
    int8 = edge.ScalarQuantizationConfig(edge.ScalarType.Int8, quantile=0.99, always_ram=True)
    binary = edge.BinaryQuantizationConfig(always_ram=True)

    def rescored(oversampling: float | None) -> Any:
        rescoring = edge.QuantizationSearchParams(rescore=oversampling is not None, oversampling=oversampling)
        return edge.SearchParams(quantization=rescoring)

    print("index and quantisation      recall@5  short  cosine off by")
    for name, payload_m, quantisation, params in (
        ("FLAT", 0, None, edge.SearchParams(exact=True)),
        ("HNSW", LINKS, None, edge.SearchParams()),
        ("FLAT int8, rescored x3", 0, int8, rescored(3.0)),
        ("FLAT int8, not rescored", 0, int8, rescored(None)),
        ("FLAT binary, rescored x3", 0, binary, rescored(3.0)),
        ("FLAT binary, rescored x10", 0, binary, rescored(10.0)),
        ("FLAT binary, not rescored", 0, binary, rescored(None)),
        ("HNSW int8, rescored x3", LINKS, int8, rescored(3.0)),
    ):
        with tempfile.TemporaryDirectory() as folder:
            shard = _filled(edge, folder, material, payload_m, quantisation)
            recall, short, error = _asked(edge, shard, material, params)
            shard.close()
        print(f"{name:27} {100 * recall:8.2f} {short:6} {error:14.5f}", flush=True)


def _filled(edge: Any, folder: str, material: dict[str, Any], payload_m: int, quantisation: Any) -> Any:
    vectors, users = material["vectors"], material["users"].tolist()
    config = edge.EdgeConfig(
        vectors={"embedding": edge.EdgeVectorParams(size=vectors.shape[1], distance=edge.Distance.Cosine)},
        hnsw_config=edge.HnswIndexConfig(
            m=0, ef_construct=100, full_scan_threshold=10 if payload_m else 10_000, payload_m=payload_m
        ),
        quantization_config=quantisation,
        optimizers=edge.EdgeOptimizersConfig(indexing_threshold=INDEXED_FROM_KB),
    )
    shard = edge.EdgeShard.create(folder, config)
    shard.update(edge.UpdateOperation.create_field_index("user_id", edge.KeywordIndexParams(is_tenant=True)))
    points = [
        edge.Point(number, {"embedding": vector.tolist()}, {"user_id": user})
        for number, (user, vector) in enumerate(zip(users, vectors, strict=True))
    ]
    for start in range(0, len(points), BATCH):
        shard.update(edge.UpdateOperation.upsert_points(points[start : start + BATCH]))
    deadline = time.monotonic() + 300
    while shard.optimize() and time.monotonic() < deadline:
        pass
    return shard


def _asked(edge: Any, shard: Any, material: dict[str, Any], params: Any) -> tuple[float, int, float]:
    """Share of the exact nearest that were found, answers with fewer than there are, mean error of a cosine."""
    recalls, errors, short = [], [], 0
    for user, question in zip(material["question_users"].tolist(), material["questions"], strict=True):
        own = np.flatnonzero(material["users"] == user)
        cosines = material["vectors"][own] @ question
        exact = {int(own[at]): float(cosines[at]) for at in np.argsort(-cosines, kind="stable")[:LIMIT]}
        of_user = edge.FieldCondition(key="user_id", match=edge.MatchValue(user))
        request = edge.QueryRequest(
            limit=LIMIT,
            query=edge.Query.Nearest(question.tolist(), using="embedding"),
            filter=edge.Filter(must=[of_user]),
            params=params,
        )
        found = {point.id: point.score for point in shard.query(request)}
        recalls.append(len(found.keys() & exact.keys()) / len(exact))
        errors += [abs(found[number] - exact[number]) for number in found.keys() & exact.keys()]
        short += len(found) < len(exact)
    return float(np.mean(recalls)), short, float(np.mean(errors))


if __name__ == "__main__":
    main(sys.argv[1])
