"""What happened, counted: the one listener of every event, every metric, and the wrappers that measure. No other room
counts."""
