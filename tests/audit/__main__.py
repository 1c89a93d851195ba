"""``python -m tests.audit``: exit status 1 when a package, a file or a licence is not as it is listed."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from demo.stack import HOME
from tests.audit import licences, packages

SHOWN_MAX = 20
NOT_ASKED = (
    "known vulnerabilities: no service is asked here; where there is a network:"
    " pip-audit --disable-pip --require-hashes -r deploy/serving.lock"
)


def main() -> int:
    names = packages.of_image(HOME)
    read, changed = packages.in_files(names)
    found = [
        *_said("pinned by digest, as tested", packages.in_locks(HOME)),
        *_said("this environment is constraints.txt", packages.in_environment(HOME, packages.installed())),
        *_said("files as they were packed", changed),
        *_said("licences that go with Apache-2.0", licences.in_licences(names)),
        *_said("docs/licences.md is their list", _page(names)),
    ]
    print(NOT_ASKED)
    print(f"audit: {len(names)} packages, {read} files, {len(found)} complaints")
    return 1 if found else 0


def _page(names: list[str]) -> list[str]:
    is_right = (HOME / licences.PAGE).read_text() == licences.page(names)
    return [] if is_right else [f"{licences.PAGE} is not what `python -m tests.audit.licences` prints"]


def _said(what: str, found: Iterable[str]) -> list[str]:
    complaints = list(found)
    print(f"{'no ' if complaints else 'yes'}  {what}")
    for each in complaints[:SHOWN_MAX]:
        print(f"       {each}")
    if len(complaints) > SHOWN_MAX:
        print(f"       and {len(complaints) - SHOWN_MAX} more")
    return complaints


if __name__ == "__main__":
    sys.exit(main())
