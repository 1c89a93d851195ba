"""``python -m semmem.config`` prints the reference of every key; with ``names``, that of other systems' names."""

from __future__ import annotations

import sys

from semmem.config.schema import configuration_table, names_page

sys.stdout.write(names_page() if sys.argv[1:] == ["names"] else configuration_table())
