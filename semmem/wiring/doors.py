"""Settings -> parts, as assembly.py: the API's door, what it takes, and the listeners that speak HTTP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from fastapi import APIRouter, FastAPI

from semmem.config.listeners_section import HttpListenerSection
from semmem.config.settings import Settings
from semmem.extraction.screen import Ruling, screen_text
from semmem.management.api import May, create_api
from semmem.management.door import DoorRules
from semmem.management.fields import MetadataLimits
from semmem.management.memories import Memories
from semmem.management.purging import Purging
from semmem.management.server import HttpListener
from semmem.management.write_screen import WriteScreen
from semmem.ports.events import Announce
from semmem.retrieval.context import FENCE_MARKERS
from semmem.wiring import parts as assembly


def api(
    settings: Settings,
    memories: Memories,
    announce: Announce,
    *,
    more: Sequence[Callable[[May], APIRouter]],
    purging: Purging | None = None,
) -> FastAPI:
    return create_api(
        memories,
        assembly.access(settings),
        announce=announce,
        door=door(settings),
        metadata=metadata_limits(settings),
        screening=write_screen(settings, announce),
        more=more,
        purging=purging,
    )


def door(settings: Settings) -> DoorRules:
    rules = settings.listeners.api
    return DoorRules(
        allowed_hosts=(rules.host, *rules.allowed_hosts),
        allowed_origins=rules.allowed_origins,
        body_bytes_max=rules.body_bytes_max,
        body_values_max=rules.body_values_max,
        body_timeout_s=rules.body_timeout_s,
    )


def metadata_limits(settings: Settings) -> MetadataLimits:
    rules = settings.listeners.api
    return MetadataLimits(
        depth_max=rules.metadata_depth_max, keys_max=rules.metadata_keys_max, bytes_max=rules.metadata_bytes_max
    )


def write_screen(settings: Settings, announce: Announce) -> WriteScreen:
    """What the API is told is as long as the API says; otherwise as what is learnt."""
    rules = settings.memory.write_screen
    screening = partial(
        screen_text,
        on_secret=Ruling(rules.secrets),
        on_instruction=Ruling(rules.instructions),
        own_markers=FENCE_MARKERS,
    )
    return WriteScreen(screening, announce=announce)


def http_listener(application: object, where: HttpListenerSection) -> HttpListener:
    return HttpListener(
        application, where.address, connections_max=where.connections_max, head_timeout_s=where.head_timeout_s
    )
