"""What happened, counted: every metric, and the wrappers that measure. No other room counts."""
