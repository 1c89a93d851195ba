"""What each of LangGraph's operations asks of semmem's API, step by step and without doing any of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import quote

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from semmem_langgraph import filters, items, namespaces
from semmem_langgraph.calls import Call, Json, Steps, ask, failure
from semmem_langgraph.errors import NotServed, Refused
from semmem_langgraph.items import Kept
from semmem_langgraph.namespaces import Layout, Namespace, Scope

PAGE = 200
"""Memories that are asked for at once: at most some 4 MB of answer."""
HITS_MAX = 50
"""What one search of semmem's gives at most."""
ERASED_LATER = "ERASURE_PENDING"

K = TypeVar("K")


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Operations:
    """``learnt_label``: the last label of the namespace in which memories appear that nobody put here; None: they do
    not. ``fields`` and ``cut_text`` as for ``items.body_of``. ``relevant_only``: a search gives what semmem itself
    would show for the query, and nothing to fill up with. ``kind``: semmem's type of what is put."""

    layout: Layout
    fields: Sequence[str] = (items.WHOLE,)
    kind: str = "semantic"
    learnt_label: str | None = "semmem"
    cut_text: bool = False
    relevant_only: bool = False
    clock: Callable[[], datetime] = _now

    def steps(self, op: Op) -> Steps[Result]:
        """Raises InvalidNamespaceError, Refused, NotServed; the steps raise Unavailable too."""
        namespaces.checked(op)
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, PutOp):
            return self._put(op) if op.value is not None else self._delete(op)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._list_namespaces(op)
        raise NotServed("op", f"{type(op).__name__} is none of get, put, search and list_namespaces")

    # --- one item ----------------------------------------------------------------------------------------------------

    def _get(self, op: GetOp) -> Steps[Item | None]:
        found = yield from self._find(op.namespace, op.key)
        return None if found is None else found.item()

    def _find(self, namespace: Namespace, key: str) -> Steps[Kept | None]:
        scope = self.layout.whole(namespace, "namespace")
        if self._is_of_learnt(namespace):
            return (yield from self._one(scope, namespace, key))
        named = items.api_key(namespace, key)

        def wanted(memory: Json) -> Kept | None:
            one = items.kept(memory, now=self.clock()) if memory["key"] == named else None
            return one if one is not None and (one.namespace, one.key) == (namespace, key) else None

        found = yield from self._collect(Scope(scope.user), "key", wanted, enough=1, among=named)
        return found[0] if found else None

    def _one(self, scope: Scope, namespace: Namespace, memory_id: str) -> Steps[Kept | None]:
        """A memory that semmem has learnt."""
        items.encoded(memory_id, "key")
        answer = yield Call("GET", _path(memory_id), scope.owner())
        if answer.status == 404 or answer.code == "INVALID_ID":
            return None
        if answer.status != 200:
            raise failure(answer, "key")
        one = self._read(answer.body, namespace)
        return one if one is not None and one.namespace == namespace else None

    def _put(self, op: PutOp) -> Steps[None]:
        if op.namespace and op.namespace[0] == "langgraph":
            raise InvalidNamespaceError('namespace: its first label is "langgraph", which LangGraph keeps for itself')
        scope = self.layout.whole(op.namespace, "namespace")
        if self._is_of_learnt(op.namespace):
            raise Refused("namespace", "is where semmem's own memories appear; put items into another one")
        body = items.body_of(op, self.fields, cut=self.cut_text, now=self.clock())
        yield from ask(Call("POST", "/v1/memory", body=body | scope.named() | {"type": self.kind}), "value")

    def _delete(self, op: PutOp) -> Steps[None]:
        found = yield from self._find(op.namespace, op.key)
        if found is None:
            return
        scope = self.layout.whole(op.namespace, "namespace")
        answer = yield Call("DELETE", _path(found.id), scope.owner())
        later = answer.code == ERASED_LATER and answer.body.get("outlives_restart") is True  # hidden from now on
        if answer.status not in (200, 404) and not later:
            raise failure(answer, "key")

    # --- many --------------------------------------------------------------------------------------------------------

    def _search(self, op: SearchOp) -> Steps[list[SearchItem]]:
        if op.limit < 0 or op.offset < 0:
            raise Refused("limit" if op.limit < 0 else "offset", "is negative")
        filters.checked(op.filter)
        scope = self.layout.scope(op.namespace_prefix, "namespace_prefix")
        end = op.offset + op.limit

        def wanted(memory: Json) -> Kept | None:
            one = self._read(memory, op.namespace_prefix)
            return one if one is not None and one.is_active and filters.takes(one.value, op.filter) else None

        hits: list[SearchItem] = []
        if op.query:
            hits = yield from self._nearest(scope, op.query, wanted)
            if self.relevant_only or len(hits) >= end:
                return hits[op.offset : end]
        known = {(hit.namespace, hit.key) for hit in hits}

        def others(memory: Json) -> Kept | None:
            one = wanted(memory)
            return one if one is not None and (one.namespace, one.key) not in known else None

        rest = yield from self._collect(scope, "namespace_prefix", others, enough=end - len(hits))
        return [*hits, *(one.hit() for one in rest)][op.offset : end]

    def _nearest(self, scope: Scope, query: str, wanted: Callable[[Json], Kept | None]) -> Steps[list[SearchItem]]:
        """Of the HITS_MAX that answer the query best, those that are wanted, best first."""
        items.encoded(query, "query")
        body: Json = {"query": query, "limit": HITS_MAX, **scope.named()}
        told = yield from ask(
            Call("POST", f"/v1/memory/{'preview' if self.relevant_only else 'search'}", body=body), "query"
        )
        found = [(wanted(memory), float(memory["score"])) for memory in told["memories"] if memory.get("kept", True)]
        return [one.hit(score) for one, score in found if one is not None]

    def _list_namespaces(self, op: ListNamespacesOp) -> Steps[list[Namespace]]:
        if op.limit < 0 or op.offset < 0 or (op.max_depth is not None and op.max_depth < 1):
            raise Refused("list_namespaces", "limit and offset are at least 0, max_depth at least 1")
        begin = namespaces.prefix_of(op)
        scope = self.layout.scope(begin, "prefix")

        def wanted(memory: Json) -> Namespace | None:
            one = self._read(memory, begin)
            return one.namespace if one is not None and one.is_active else None

        found = yield from self._collect(scope, "prefix", wanted)
        return namespaces.listed(set(found), op)

    def _read(self, memory: Json, begin: Namespace) -> Kept | None:
        """A memory as an item of a namespace that begins so; None where it is none."""
        one = items.kept(memory, now=self.clock())
        if one is None and self.learnt_label is not None and items.OURS not in memory["metadata"]:
            namespace = self.layout.of_others(memory, begin, self.learnt_label)
            one = items.learnt(memory, namespace, now=self.clock())
        return one if one is not None and one.namespace[: len(begin)] == begin else None

    def _is_of_learnt(self, namespace: Namespace) -> bool:
        return len(namespace) == len(self.layout.parts) + 1 and namespace[-1] == self.learnt_label

    def _collect(
        self,
        scope: Scope,
        place: str,
        wanted: Callable[[Json], K | None],
        *,
        enough: int | None = None,
        among: str | None = None,
    ) -> Steps[list[K]]:
        """What is wanted of a scope's memories, newest first, page by page until there is ``enough``. ``among``: only
        memories whose key or content holds this text."""
        found: list[K] = []
        params: Mapping[str, str] = {"limit": str(PAGE), **scope.named(), **({"q": among} if among else {})}
        cursor: Any = None
        while enough is None or len(found) < enough:
            page = yield from ask(
                Call("GET", "/v1/memory", {**params, **({"cursor": cursor} if cursor else {})}), place
            )
            found += [one for memory in page["memories"] if (one := wanted(memory)) is not None]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        return found if enough is None else found[:enough]


def _path(memory_id: str) -> str:
    """Dots are escaped as well: clients take "." and ".." for steps, and DELETE of what is above is everything."""
    return "/v1/memory/" + (quote(memory_id, safe="").replace(".", "%2E") or "%20")
