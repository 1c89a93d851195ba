"""LangGraph's ``BaseStore`` on semmem's management API."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langgraph.store.base import BaseStore, Item, Op, PutOp, Result, SearchItem, TTLConfig

from semmem_langgraph.client import Client
from semmem_langgraph.errors import NotServed
from semmem_langgraph.items import WHOLE
from semmem_langgraph.namespaces import Layout, Namespace
from semmem_langgraph.operations import Operations


class SemmemStore(BaseStore):
    """Items that semmem keeps, finds by meaning and words, shows in prompts, corrects, exports and erases as memories.

    ``url``: of the management API. ``token``: best one that ``semmem token create`` bound to the user or, for many
    users, an administrator's. ``layout``: which labels of a namespace name user, project and session. ``fields``: where
    in a value the text is that it is found by (``index`` of ``put`` beats it). ``kind``: ``semantic``, ``episodic`` or
    ``procedural``. ``learnt_label``: the last label of the namespace in which what semmem has learnt appears; None: it
    does not. ``cut_text``: cut what is too long to be searched by, rather than refuse it; the value stays whole.
    ``relevant_only``: ``search`` gives what semmem would show for the query, perhaps nothing, rather than the nearest.
    ``timeout_s``: of one call. ``at_once``: calls under way at once, per event loop. ``headers``: of every call.

    Raises Refused, NotServed and Unavailable, and InvalidNamespaceError of LangGraph's. It keeps nothing itself: what
    is erased in semmem is gone here.
    """

    supports_ttl = True

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        layout: Layout | None = None,
        fields: Sequence[str] = (WHOLE,),
        kind: str = "semantic",
        learnt_label: str | None = "semmem",
        cut_text: bool = False,
        relevant_only: bool = False,
        default_ttl_min: float | None = None,
        timeout_s: float = 30.0,
        at_once: int = 8,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.ttl_config = TTLConfig(refresh_on_read=False, omit_expired=True, default_ttl=default_ttl_min)
        self._operations = Operations(layout or Layout(), fields, kind, learnt_label, cut_text, relevant_only)
        self._client = Client(url, token, timeout_s=timeout_s, at_once=at_once, headers=headers or {})

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """One after another: reads first, as they were before the batch, then writes; of two writes to one item the
        last. What was written before one fails stays written."""
        todo = _Batch(ops)
        made = [self._operations.steps(op) for op in todo.ops]
        return todo.results({at: self._client.run(made[at]) for at in todo.order})

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As ``batch``, but reads at once, and then writes at once. The first error is raised when all have ended."""
        todo = _Batch(ops)
        made = [self._operations.steps(op) for op in todo.ops]
        results: dict[int, Result] = {}
        for part in (todo.reads, todo.writes):
            ended = await asyncio.gather(*(self._client.arun(made[at]) for at in part), return_exceptions=True)
            for at, result in zip(part, ended, strict=True):
                if isinstance(result, BaseException):
                    raise result
                results[at] = result
        return todo.results(results)

    def get(self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """As BaseStore has it; nothing lives longer because it was read."""
        _no_refresh(refresh_ttl)
        return super().get(namespace, key)

    async def aget(self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """As ``get``."""
        _no_refresh(refresh_ttl)
        return await super().aget(namespace, key)

    def search(
        self, namespace_prefix: Namespace, /, *, refresh_ttl: bool | None = None, **asked: Any
    ) -> list[SearchItem]:
        """As BaseStore has it (``query``, ``filter``, ``limit``, ``offset``); as for ``get``."""
        _no_refresh(refresh_ttl)
        return super().search(namespace_prefix, **asked)

    async def asearch(
        self, namespace_prefix: Namespace, /, *, refresh_ttl: bool | None = None, **asked: Any
    ) -> list[SearchItem]:
        """As ``search``."""
        _no_refresh(refresh_ttl)
        return await super().asearch(namespace_prefix, **asked)

    def close(self) -> None:
        """The blocking calls' connections."""
        self._client.close()

    async def aclose(self) -> None:
        """The connections of the running event loop."""
        await self._client.aclose()

    def __enter__(self) -> SemmemStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> SemmemStore:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Batch:
    """Operations by their place, and the order in which they are done."""

    def __init__(self, ops: Iterable[Op]) -> None:
        self.ops = list(ops)
        last = {(op.namespace, op.key): at for at, op in enumerate(self.ops) if isinstance(op, PutOp)}
        self.writes = sorted(last.values())
        self.reads = [at for at, op in enumerate(self.ops) if not isinstance(op, PutOp)]

    @property
    def order(self) -> list[int]:
        return [*self.reads, *self.writes]

    def results(self, found: Mapping[int, Result]) -> list[Result]:
        return [found.get(at) for at in range(len(self.ops))]


def _no_refresh(asked: bool | None) -> None:
    """A write for every read, and a version in the history for each, is what it would cost."""
    if asked:
        raise NotServed("refresh_ttl", "True would prolong what is read; in semmem only a put sets when an item ends")
