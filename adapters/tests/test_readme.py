"""The README's lines for the `openai` client, run as they are written: only address and key are the test's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from conftest import World

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_openai_client_is_answered_from_memory(world: World, alice: str) -> None:
    world.remember(alice, "User's sister Emma lives in Oslo")
    [lines] = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    address = "http://127.0.0.1:10000"
    assert address in lines
    done = subprocess.run(
        [sys.executable, "-c", lines.replace(address, world.envoy)],
        env={**os.environ, "OPENAI_API_KEY": f"demo-{alice}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Oslo" in done.stdout
