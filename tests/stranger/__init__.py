"""README's road from nothing to the first memory, run as it stands: ``python -m tests.stranger``."""
