"""What a release consists of, made from a commit's files: wheel, sdist, chart, bill of materials, notes, image.

Made twice of one commit they are the same bytes, but for the image: the commit's time stands for every time, and
deploy/tools.txt names the tools' versions.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from deploy.version import SOURCE, versions_in

HOME = Path(__file__).resolve().parents[1]
TOOLS = HOME / ".venv-deploy" / "bin"


class Broken(Exception):
    """Something of the release does not do what it is for; the message is for whoever makes it."""


@dataclass(frozen=True, slots=True)
class Source:
    """A commit's files in a folder of their own; ``epoch`` is its time, in seconds since 1970."""

    tree: Path
    revision: str
    epoch: int

    @property
    def version(self) -> str:
        (version,) = versions_in(self.tree / SOURCE)
        return version


def run(*argv: str | Path, cwd: Path = HOME, environ: Mapping[str, str] | None = None, given: str = "") -> str:
    """Standard output. Raises Broken, with what else was printed, when the command fails."""
    done = subprocess.run(
        argv, cwd=cwd, env=os.environ | dict(environ or {}), input=given, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Broken(
            f"{Path(argv[0]).name} {argv[1]} ended with {done.returncode}:\n{done.stdout}{done.stderr}"[-6000:]
        )
    return done.stdout


def exported(folder: Path) -> Source:
    """The commit that is checked out, without what is changed or not committed."""
    archive = folder / "commit.tar"
    run("git", "archive", "--output", archive, "HEAD")
    with tarfile.open(archive) as files:
        files.extractall(folder / "tree", filter="data")
    revision, epoch = run("git", "log", "-1", "--format=%H %ct").split()
    return Source(folder / "tree", revision, int(epoch))


def build_packages(source: Source, out: Path) -> None:
    """Wheel and source distribution."""
    told = {"SOURCE_DATE_EPOCH": str(source.epoch)}
    build = "-m hatchling build -t sdist -t wheel -d".split()
    run(TOOLS / "python", *build, out, cwd=source.tree, environ=told)


def build_chart(source: Source, out: Path) -> None:
    """helm takes the times of the files."""
    for path in (source.tree / "deploy").rglob("*"):
        os.utime(path, (source.epoch, source.epoch))
    run(TOOLS / "helm", "package", source.tree / "deploy" / "chart", "--destination", out)


def build_bill_of_materials(source: Source, out: Path) -> None:
    """What the image installs, with digests, as CycloneDX."""
    file = out / f"semmem-{source.version}.cdx.json"
    build = "requirements --pyproject pyproject.toml --mc-type application --spec-version 1.6 -".split()
    quick = ("--output-reproducible", "--no-validate")  # it is validated when it is tried
    run(TOOLS / "cyclonedx-py", *build, *quick, "-o", file, cwd=source.tree, given=locks(source))
    bill = json.loads(file.read_text())
    bill["metadata"]["component"]["version"] = source.version  # pyproject.toml names none
    file.write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n")


def locks(source: Source) -> str:
    return "".join((source.tree / "deploy" / f"{name}.lock").read_text() for name in ("serving", "weights"))


def build_notes(source: Source, out: Path) -> None:
    """The version's part of CHANGELOG.md; links to files of the repository become their names."""
    changes = (source.tree / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(source.version)},.*?(?=^## |\Z)", changes, re.MULTILINE | re.DOTALL)
    if found is None:
        raise Broken(f"CHANGELOG.md has no part for {source.version}")
    text = re.sub(r"\[([^\]]+)\]\((?![a-z]+:)([^)]+)\)", lambda link: f"{link[1]} ({link[2]})", found[0])
    (out / f"semmem-{source.version}-notes.md").write_text(text.replace("## ", "# semmem ", 1).strip() + "\n")


def build_image(source: Source, out: Path) -> None:
    """As an archive that podman and docker load. Variables that pip reads go along, and BASE_IMAGE."""
    names = ("BASE_IMAGE", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")
    arguments = {name: os.environ[name] for name in names if name in os.environ}
    arguments |= {"REVISION": source.revision, "CREATED": datetime.fromtimestamp(source.epoch, UTC).isoformat()}
    given = [part for name, value in arguments.items() for part in ("--build-arg", f"{name}={value}")]
    image = f"semmem:{source.version}"
    build = ("build", "--quiet", "--timestamp", str(source.epoch), "--format", "docker", *given)
    run("podman", *build, "--file", source.tree / "deploy" / "Dockerfile", "--tag", image, source.tree)
    run("podman", "save", "--format", "docker-archive", "--output", out / f"semmem-{source.version}-image.tar", image)


def write_checksums(out: Path) -> None:
    files = sorted(each for each in out.iterdir() if each.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in files]
    (out / "SHA256SUMS").write_text("".join(lines))
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=out)
