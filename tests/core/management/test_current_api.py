"""The API that answers now: a call is answered to its end by the application that it began with."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from semmem.background import Tasks
from semmem.wiring.serving import CurrentApi


class Named:
    """An application that says its name, when it may."""

    def __init__(self, name: str) -> None:
        self.name, self.begun, self.may_go_on = name, asyncio.Event(), asyncio.Event()

    async def __call__(self, _scope: Any, _receive: Any, send: Any) -> None:
        self.begun.set()
        await self.may_go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": self.name.encode()})


async def test_calls_under_way_end_with_the_former_one_and_new_ones_go_to_the_next() -> None:
    former, following, tasks = Named("former"), Named("following"), Tasks()
    api = CurrentApi(former)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url="http://semmem") as client:
        under_way = tasks.spawn("a call", client.get("/"))
        await former.begun.wait()
        api.application = following
        following.may_go_on.set()
        assert (await client.get("/")).text == "following"
        former.may_go_on.set()
        assert (await under_way).text == "former"
