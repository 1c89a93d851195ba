"""One file per third party. Each maps its library's errors onto ours and keeps its blocking calls off the event loop.

No thresholds, no prompts, no policy: those belong to the phases."""
