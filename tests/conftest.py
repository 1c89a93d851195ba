"""What holds for every level: how many examples hypothesis tries, and how tests are spread over xdist's workers."""

from __future__ import annotations

import pytest

from tests.support.examples import use_profile

use_profile()


SHARED = ("home", "lite")
"""Fixtures of the whole run that are dear: the house of the e2e tests, and a Milvus Lite."""


@pytest.hookimpl(tryfirst=True)  # xdist looks at the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, so that nobody waits for it at the end; and what shares something dear, on one worker."""
    for item in items:
        if isinstance(item, pytest.Function) and (group := _group(item)):
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=_seconds, reverse=True)


def _group(item: pytest.Function) -> str | None:
    """The file, when it makes something for all its tests; otherwise what many files share; or nothing."""
    if item.get_closest_marker("xdist_group"):
        return None
    fixtures = item._fixtureinfo.name2fixturedefs
    if any(fixtures[name][-1].scope == "module" for name in item.fixturenames if name in fixtures):
        return item.path.stem
    return next((name for name in SHARED if name in item.fixturenames), None)


def _seconds(item: pytest.Item) -> float:
    mark = item.get_closest_marker("long")
    return float(mark.args[0]) if mark else 0.0
