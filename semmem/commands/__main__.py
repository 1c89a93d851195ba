"""``python -m semmem.commands`` prints docs/commands.md."""

import sys

from semmem.commands.manual import markdown, page_of
from semmem.commands.table import root_parser

sys.stdout.write(markdown([page_of(parser) for parser in root_parser().everything]))
