"""What the README has its reader write."""

from __future__ import annotations

import re
from pathlib import Path

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
SECRET = "0f" * 32


def written_configuration() -> str:
    """semmem.yaml as the README's recipe makes it, with SECRET for each secret."""
    [written] = re.findall(r"cat > semmem\.yaml <<END\n(.*?)^END$", README, re.MULTILINE | re.DOTALL)
    return str(written).replace("$(openssl rand -hex 32)", SECRET)
