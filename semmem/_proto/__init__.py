"""Generated from proto/ by `make proto`; a test regenerates it and compares. Do not edit."""
