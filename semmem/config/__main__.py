"""``python -m semmem.config`` prints the reference of every key; with ``names``, that of other systems' names."""

from __future__ import annotations

import sys

from semmem.config.names_page import names_page
from semmem.config.reference import configuration_table

sys.stdout.write(names_page() if sys.argv[1:] == ["names"] else configuration_table())
