"""Learning, in the background: extract typed facts from turns, screen them, deduplicate them, store them.

Only what the user authored is a source of facts. Pure steps; the awaits are on ports."""
