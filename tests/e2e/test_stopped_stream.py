"""semmem is stopped (SIGSTOP) while a very long answer streams: its client does not wait for it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.faults.forms import SSE
from tests.faults.house import house
from tests.faults.loops import loop_thread
from tests.faults.upstream import Script, upstream

pytestmark = pytest.mark.timeout(300)

LONG = Script(tokens=300, token_ms=5, pad=200_000)
"""60 MB: more than Envoy's default window, less than the one in deploy/envoy.yaml."""
GAP_S_MAX = 8.0
"""Slack for a busy machine; with Envoy's default window the answer stood still until the keepalive's timeout."""


@pytest.mark.long(12)
def test_an_answer_of_sixty_megabytes_does_not_wait_for_a_stopped_semmem(tmp_path: Path) -> None:
    with loop_thread() as loop, upstream(loop) as model, house(loop, model, tmp_path) as home:

        def stop(trial: str) -> None:
            home.half_answered(trial)
            os.kill(home.sidecar.pid, signal.SIGSTOP)

        try:
            seen = home.ask(SSE, script=LONG, meanwhile=stop)
        finally:
            os.kill(home.sidecar.pid, signal.SIGCONT)
    assert (seen.status, seen.error) == (200, "")
    assert len(seen.body) > 60_000_000
    assert seen.gap_s < GAP_S_MAX
