"""Licences of what the image installs, from the packages' metadata: whether Apache-2.0 goes with them, and the list
docs/licences.md (``python -m tests.audit.licences`` prints it)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from packaging.metadata import RawMetadata, parse_email

from demo.stack import HOME
from tests.audit.packages import of_image

PAGE = Path("docs/licences.md")
PERMISSIVE = frozenset(
    "0BSD Apache-2.0 BSD-2-Clause BSD-3-Clause CC0-1.0 ISC MIT MIT-0 PSF-2.0 Zlib".split()
)  # what the Apache Software Foundation calls category A, as far as it occurs here
WEAK = {
    "MPL-2.0": "files of its own under its own terms (category B); used unchanged",
    "LGPL-3.0-only": "a library of its own that anybody may exchange; used unchanged",
}
"""Copyleft that ends at the library, and why that is no obstacle."""
MEANT = {
    "MIT License": "MIT",
    "MIT, BSD": "MIT AND BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "ISC License (ISCL)": "ISC",
    "Python Software Foundation License": "PSF-2.0",
}
"""What older metadata says in place of an SPDX identifier."""
UNKNOWN = "unknown"
_CLASSIFIER = "License :: OSI Approved :: "
_TOKEN = re.compile(r"\(|\)|[^\s()]+")


def licence(package: str) -> str:
    """An SPDX expression, by what the package says of itself; ``unknown`` for what says nothing that is known."""
    text = distribution(package).read_text("METADATA") or ""
    return of_metadata(parse_email(text)[0])


def of_metadata(told: RawMetadata) -> str:
    if expression := told.get("license_expression"):
        return expression
    approved = [each.removeprefix(_CLASSIFIER) for each in told.get("classifiers", []) if each.startswith(_CLASSIFIER)]
    meant = [MEANT.get(each, UNKNOWN) for each in approved]
    field = told.get("license", "").strip().split("\n")[0]
    return " AND ".join(dict.fromkeys(meant)) or MEANT.get(
        field, field if field in PERMISSIVE | WEAK.keys() else UNKNOWN
    )


def goes_with_ours(expression: str) -> bool:
    """Whether all that must be kept of an SPDX expression can be."""
    tokens = _TOKEN.findall(expression)
    return bool(tokens) and _any(tokens) and not tokens


def _any(tokens: list[str]) -> bool:
    found = _all(tokens)
    while tokens[:1] == ["OR"]:
        del tokens[0]
        found = _all(tokens) or found
    return found


def _all(tokens: list[str]) -> bool:
    found = _one(tokens)
    while tokens[:1] == ["AND"]:
        del tokens[0]
        found = _one(tokens) and found
    return found


def _one(tokens: list[str]) -> bool:
    if not tokens:
        return False
    token = tokens.pop(0)
    if token != "(":
        return token in PERMISSIVE or token in WEAK
    found = _any(tokens)
    return bool(tokens) and tokens.pop(0) == ")" and found


def in_licences(packages: Iterable[str]) -> Iterator[str]:
    """A sentence for each that does not go with Apache-2.0."""
    for package in packages:
        if not goes_with_ours(expression := licence(package)):
            yield f"{package}: its licence is {expression}, which is on no list"


def page(packages: Iterable[str]) -> str:
    """docs/licences.md."""
    named = sorted((licence(name), f"{name} {distribution(name).version}") for name in packages)
    rows = [
        f"- **{expression}**: {', '.join(package for _, package in group)}."
        for expression, group in groupby(named, key=itemgetter(0))
    ]
    notes = [f"- {name}: {why}." for name, why in WEAK.items()]
    return "\n".join(
        [
            "# Licences of what the image installs",
            "",
            "By each package's own metadata, written by `python -m tests.audit.licences > docs/licences.md` and",
            "compared by a test. semmem is under Apache-2.0, and all of these go with it. What it has of Debian has",
            "its licences in /usr/share/doc.",
            "",
            *rows,
            "",
            "Not permissive, and no obstacle:",
            "",
            *notes,
            "",
        ]
    )


if __name__ == "__main__":
    print(page(of_image(HOME)), end="")
