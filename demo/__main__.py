"""``python -m demo``: play two conversations through a real Envoy, with everything it needs."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from demo import play, ports


def main() -> int:
    """The demo; its exit status."""
    parser = argparse.ArgumentParser(prog="demo", description=__doc__.split(": ", 1)[1])
    parser.add_argument("--stay", action="store_true", help="stay up afterwards, until Ctrl-C")
    parser.add_argument("--upstream", default=None, help="URL of a real model server instead of the stand-in")
    parser.add_argument("--data-dir", type=Path, default=Path(".demo"), help="everything the demo writes is below it")
    parser.add_argument(
        "--port", type=int, default=0, help="Envoy's, and the next two for semmem's API and metrics; 0: any"
    )
    parser.add_argument("--envoy", type=Path, default=Path(".venv-envoy/bin/envoy"), help="the Envoy binary")
    arguments = parser.parse_args()
    if not 0 <= arguments.port <= ports.HIGHEST:
        parser.error(f"--port is 1 to {ports.HIGHEST}, or 0 for any free ones")
    return play.main(
        stay_up=arguments.stay,
        upstream=arguments.upstream,
        environ=os.environ,
        data_dir=arguments.data_dir,
        first_port=arguments.port,
        envoy_binary=arguments.envoy,
    )


if __name__ == "__main__":
    sys.exit(main())
