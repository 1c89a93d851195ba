"""The Studio's files, as they come with the package: read once, served from memory, under a policy that lets a page
load nothing from elsewhere. They hold nothing of anybody; what they show they ask of the API, with the caller's token.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

STUDIO_PATH = "/studio"
INDEX = "index.html"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class File:
    """``etag``: of the body, so that a browser that has it asks only whether it is still the same."""

    body: bytes
    media_type: str
    etag: str


def files() -> Mapping[str, File]:
    """By name. Raises KeyError for a file whose kind has no media type."""
    found = {}
    for each in resources.files("semmem.management").joinpath("studio").iterdir():
        suffix = each.name[each.name.rfind(".") :]
        body = each.read_bytes()
        found[each.name] = File(body, MEDIA_TYPES[suffix], f'"{hashlib.sha256(body).hexdigest()[:32]}"')
    return found


async def to_studio(_request: Request) -> Response:
    """Whoever opens the API's bare address in a browser."""
    return RedirectResponse(f"{STUDIO_PATH}/", 307, HEADERS)


def create_site() -> Starlette:
    """An application to mount at STUDIO_PATH."""
    known = files()

    async def page(request: Request) -> Response:
        file = known.get(request.path_params.get("name") or INDEX)
        if file is None:
            return PlainTextResponse("the Studio has no such page\n", 404, HEADERS)
        headers = HEADERS | {"etag": file.etag}
        if file.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(file.body, headers=headers, media_type=file.media_type)

    return Starlette(routes=[Route("/", page), Route("/{name}", page)])
