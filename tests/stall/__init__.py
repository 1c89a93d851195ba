"""What one user can make up to hold up everybody, and how much it does: ``python -m tests.stall``."""
