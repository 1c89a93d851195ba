"""The house itself: what may know what, and what a linter refuses."""
