"""podman with settings of its own, in a folder of its own: what it needs where cgroups are mixed and limits are low."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.stack import HOME

CA_FILE = Path("/etc/ssl/certs/ca-certificates.crt")
BASE, IMAGE = "localhost/semmem-base:bookworm", "localhost/semmem:test"
SUITE, MIRROR = "bookworm", "http://deb.debian.org/debian"
BUILD_S = 3600
_CONTAINERS = """\
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
_STORAGE = """\
[storage]
driver = "overlay"
runroot = "{folder}/run"
graphroot = "{folder}/graph"
"""


@dataclass(frozen=True, slots=True)
class Podman:
    """``folder`` holds its images, and may be kept for another run."""

    folder: Path

    def prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "containers.conf").write_text(_CONTAINERS)
        (self.folder / "storage.conf").write_text(_STORAGE.format(folder=self.folder))

    def __call__(self, *argv: str | Path, timeout_s: float = 120.0) -> str:
        """Standard output; CalledProcessError, with standard error in it, when podman fails."""
        settings = {
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
        }
        done = subprocess.run(
            ["podman", *argv], env=os.environ | settings, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        if done.returncode:
            raise RuntimeError(
                f"podman {argv[0]} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        return done.stdout

    def inspect(self, name: str) -> Any:
        return json.loads(self("inspect", name))[0]

    def make_base(self) -> None:
        """A Debian out of its mirror, under a name of ours: no registry of images is asked."""
        if BASE in self("images", "--format", "{{.Repository}}:{{.Tag}}"):
            return
        tar = self.folder / "base.tar"
        argv = ["mmdebstrap", "--variant=minbase", "--quiet", SUITE, str(tar), MIRROR]
        subprocess.run(argv, check=True, timeout=BUILD_S)
        self("import", "--quiet", tar, BASE, timeout_s=600)
        tar.unlink()

    def build(self, revision: str) -> None:
        """The image from deploy/Dockerfile, with the machine's own way to packages."""
        links = os.environ.get("PIP_FIND_LINKS", "")
        mounts = ["--volume", f"{CA_FILE}:/opt/ca.crt:ro"] + (["--volume", f"{links}:{links}:ro"] if links else [])
        arguments = {"BASE_IMAGE": BASE, "PIP_CERT": "/opt/ca.crt", "PIP_FIND_LINKS": links, "REVISION": revision}
        given = [part for name, value in arguments.items() for part in ("--build-arg", f"{name}={value}")]
        self(
            *("build", "--quiet", "--format", "docker", "--pull=never", "--network=host", *mounts, *given),
            *("--file", HOME / "deploy" / "Dockerfile", "--tag", IMAGE, HOME),
            timeout_s=BUILD_S,
        )
