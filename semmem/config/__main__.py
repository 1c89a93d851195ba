"""``python -m semmem.config`` prints the reference of every key."""

from __future__ import annotations

import sys

from semmem.config.reference import configuration_table

sys.stdout.write(configuration_table())
