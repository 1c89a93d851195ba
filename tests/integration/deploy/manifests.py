"""What is shipped for Kubernetes, as the cluster would get it: rendered by kustomize, taken apart for the tests."""

from __future__ import annotations

import atexit
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

HOME = Path(__file__).resolve().parents[3]
DEPLOY = HOME / "deploy"
TOOLS = HOME / ".venv-deploy" / "bin"
ENVOY = HOME / ".venv-envoy" / "bin" / "envoy"
SERVED = ("base", "overlays/single", "overlays/shared")
"""Envoy, wherever it is, reaches semmem through a Service."""
GATEWAYS = ("overlays/envoy-gateway", "overlays/ai-gateway", "overlays/istio")
"""The same as overlays/shared, and how a gateway asks it."""
SIDECAR = "overlays/sidecar"
LAYOUTS = (*SERVED, SIDECAR, *GATEWAYS)
KUBERNETES_GROUPS = ("v1", "apps/v1", "policy/v1", "autoscaling/v2", "networking.k8s.io/v1")
SECRET = "made-up-for-a-test-0123456789"

Json = dict[str, Any]


def run(*argv: str | Path) -> str:
    """Standard output of a command that must succeed; AssertionError with everything it said when it does not."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{argv[0]} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@dataclass(frozen=True, slots=True)
class Layout:
    """One kustomization, rendered."""

    name: str
    text: str
    objects: tuple[Json, ...]

    def all(self, kind: str) -> list[Json]:
        return [each for each in self.objects if each["kind"] == kind]

    def one(self, kind: str) -> Json:
        (found,) = self.all(kind)
        return found

    @property
    def workload(self) -> Json:
        """The only StatefulSet or Deployment."""
        (found,) = self.all("StatefulSet") + self.all("Deployment")
        return found

    @property
    def pod(self) -> Json:
        """The pod template of the only workload."""
        template: Json = self.workload["spec"]["template"]
        return template

    @property
    def of_kubernetes(self) -> list[Json]:
        """What Kubernetes itself has schemas for."""
        return [each for each in self.objects if each["apiVersion"] in KUBERNETES_GROUPS]

    @property
    def of_others(self) -> list[Json]:
        """What a gateway or an operator brings the schemas of."""
        return [each for each in self.objects if each["apiVersion"] not in KUBERNETES_GROUPS]

    def containers(self) -> Iterator[Json]:
        spec = self.pod["spec"]
        yield from spec.get("initContainers", [])
        yield from spec["containers"]

    def container(self, name: str) -> Json:
        return next(each for each in self.containers() if each["name"] == name)

    def file(self, name: str) -> str:
        """The one file of that name in a ConfigMap."""
        (text,) = [each["data"][name] for each in self.all("ConfigMap") if name in each["data"]]
        assert isinstance(text, str)
        return text

    @property
    def config(self) -> Json:
        """semmem's configuration in this layout."""
        loaded: Json = yaml.safe_load(self.file("config.yaml"))
        return loaded

    def environment(self) -> dict[str, str]:
        """What the semmem container's environment adds, with a made-up value for each secret."""
        return {entry["name"]: entry.get("value", SECRET) for entry in self.container("semmem").get("env", [])}


@cache
def layout(name: str) -> Layout:
    return rendered(name, DEPLOY / "k8s" / name)


def rendered(name: str, folder: Path) -> Layout:
    text = run(TOOLS / "kubectl", "kustomize", folder)
    return Layout(name, text, tuple(yaml.safe_load_all(text)))


def with_monitoring(name: str, folder: Path) -> Layout:
    """A layout with components/monitoring, as a reader would combine them in a folder of their own."""
    home = Path(*[".."] * (len(folder.resolve().parts) - 1)) / DEPLOY.resolve().relative_to("/") / "k8s"
    kustomization: dict[str, Any] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [str(home / name)],
        "components": [str(home / "components" / "monitoring")],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return rendered(name, folder)


def named(shipped: Layout, kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in shipped.all(kind)}


def validate_objects(objects: list[Json], version: str) -> None:
    """Objects of Kubernetes against the schemas of a version; AssertionError with every problem."""
    read_by("objects_of_kubernetes", version, objects)


def validate_others(objects: list[Json]) -> None:
    """Objects of gateways and operators against their schemas; AssertionError with every problem."""
    read_by("objects_of_others", objects)


def read_by(reader: str, *given: object) -> Any:
    """What a function of readers.py finds; AssertionError with the reason when it refuses what it is given."""
    readers = _readers()
    assert readers.stdin is not None
    assert readers.stdout is not None
    print(json.dumps([reader, *given]), file=readers.stdin, flush=True)
    answer: Json = json.loads(readers.stdout.readline())
    assert "refused" not in answer, f"{reader} refused: {answer['refused']}"
    return answer["found"]


@cache
def _readers() -> subprocess.Popen[str]:
    argv: list[str | Path] = [TOOLS / "python", "-m", f"{__package__}.readers"]
    process = subprocess.Popen(argv, cwd=HOME, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    return process
