"""`make release` but for its slow half, the wheel in an environment of its own: made twice, and tried."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.artefacts import Broken, Source, build_bill_of_materials, build_chart, build_packages, write_checksums
from deploy.release import try_bill_of_materials, try_chart, try_sdist
from semmem import __version__
from tests.integration.deploy.manifests import HOME, Json

EPOCH = 1_800_000_000
NEEDED = ("semmem", "deploy", "pyproject.toml", "README.md", "LICENSE", ".gitignore", "CHANGELOG.md", "constraints.txt")
BUILDS = (build_packages, build_chart, build_bill_of_materials)


def copied(tree: Path, *, seconds: int, mode: int) -> Source:
    """Files of the repository as some checkout may have them: with other times and other rights."""
    tree.mkdir(parents=True)
    for name in NEEDED:
        here, there = HOME / name, tree / name
        if here.is_dir():
            shutil.copytree(here, there, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(here, there)
    for path in tree.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(mode)
            os.utime(path, (seconds, seconds))
    return Source(tree, "0" * 40, EPOCH)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Source, Path, Path]:
    """The same files twice, and what was made of them."""
    folder = tmp_path_factory.mktemp("release")
    one = copied(folder / "one" / "tree", seconds=1_700_000_000, mode=0o644)
    two = copied(folder / "two" / "tree", seconds=1_750_000_001, mode=0o600)
    for source in (one, two):
        out = source.tree.parent / "out"
        out.mkdir()
        for build in BUILDS:
            build(source, out)
    return one, folder / "one" / "out", folder / "two" / "out"


def test_made_twice_they_are_the_same_bytes(made: tuple[Source, Path, Path]) -> None:
    _, one, two = made
    names = {f"semmem-{__version__}{end}" for end in ("-py3-none-any.whl", ".tar.gz", ".tgz", ".cdx.json")}
    assert {each.name for each in one.iterdir()} == names
    assert [name for name in names if (one / name).read_bytes() != (two / name).read_bytes()] == []


def test_each_does_what_it_is_for(made: tuple[Source, Path, Path], tmp_path: Path) -> None:
    source, out, _ = made
    for attempt in (try_sdist, try_chart, try_bill_of_materials):
        folder = tmp_path / attempt.__name__
        folder.mkdir()
        assert attempt(source, out, folder)


@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        (lambda bill: bill | {"bomFormat": "another"}, "bomFormat|another"),
        (lambda bill: bill | {"components": bill["components"][1:]}, "and the locks differ"),
        (lambda bill: bill | {"components": [*map(without_digests, bill["components"])]}, "without digests"),
    ],
)
def test_a_bill_of_materials_that_is_none_is_refused(
    spoilt: Callable[[Json], Json], why: str, made: tuple[Source, Path, Path], tmp_path: Path
) -> None:
    source, out, _ = made
    name = f"semmem-{__version__}.cdx.json"
    (tmp_path / name).write_text(json.dumps(spoilt(json.loads((out / name).read_text()))))
    with pytest.raises(Broken, match=why):
        try_bill_of_materials(source, tmp_path, tmp_path)


def without_digests(component: Json) -> Json:
    return component | {"externalReferences": [each | {"hashes": []} for each in component["externalReferences"]]}


def test_a_part_that_is_of_something_else_is_refused(made: tuple[Source, Path, Path], tmp_path: Path) -> None:
    source, out, _ = made
    other = Source(tmp_path / "tree", source.revision, source.epoch)
    shutil.copytree(source.tree, other.tree, symlinks=True)
    (other.tree / "semmem" / "__init__.py").write_text(f'__version__ = "{__version__}"\nmore = 1\n')
    chart = other.tree / "deploy" / "chart" / "Chart.yaml"
    chart.write_text(chart.read_text().replace(f'appVersion: "{__version__}"', 'appVersion: "0.0.1"'))
    mixed = tmp_path / "out"
    mixed.mkdir()
    build_packages(other, mixed)
    build_chart(other, mixed)
    shutil.copy(out / f"semmem-{__version__}-py3-none-any.whl", mixed)
    for attempt, why in ((try_sdist, "is not the wheel"), (try_chart, "does not start")):
        folder = tmp_path / attempt.__name__
        folder.mkdir()
        with pytest.raises(Broken, match=why):
            attempt(other, mixed, folder)


def test_checksums_are_of_every_file(made: tuple[Source, Path, Path], tmp_path: Path) -> None:
    out = shutil.copytree(made[1], tmp_path / "out")
    write_checksums(out)
    check = ["sha256sum", "--check", "--quiet", "SHA256SUMS"]
    assert subprocess.run(check, cwd=out, check=False).returncode == 0
    listed = {line.split()[1] for line in (out / "SHA256SUMS").read_text().splitlines()}
    assert listed == {each.name for each in out.iterdir()} - {"SHA256SUMS"}
    (out / f"semmem-{__version__}.tgz").write_bytes(b"another")
    assert subprocess.run(check, cwd=out, capture_output=True, check=False).returncode == 1


def test_the_source_distribution_holds_what_the_wheel_is_made_of(made: tuple[Source, Path, Path]) -> None:
    _, out, _ = made
    with tarfile.open(out / f"semmem-{__version__}.tar.gz") as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    assert names >= {"pyproject.toml", "semmem/__init__.py", "README.md", "LICENSE", "CHANGELOG.md", "PKG-INFO"}
    assert not [name for name in names if "__pycache__" in name or name.startswith((".venv", ".git/"))]
