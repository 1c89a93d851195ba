"""config.yaml and ``SEMMEM_`` variables in, frozen settings out, or an error that lists everything to put right.

Only the composition root and the command line read settings; everybody else gets plain named values. The schema is
settings.py and memory_section.py; rules.py ties keys together; docs/configuration.md is made from them.
"""

from semmem.config.loading import changed_keys, digest, effective, examine, load
from semmem.config.problems import ConfigError, Problem
from semmem.config.schema import restart_reasons
from semmem.config.settings import Settings
from semmem.config.surroundings import remarks

__all__ = [
    "ConfigError",
    "Problem",
    "Settings",
    "changed_keys",
    "digest",
    "effective",
    "examine",
    "load",
    "remarks",
    "restart_reasons",
]
