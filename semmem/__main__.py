"""``python -m semmem`` is the ``semmem`` command."""

import sys

from semmem.cli import main

sys.exit(main())
