"""What is known of a request before its words are understood: its head, who asks, what is allowed, what earlier
filters found (``asker`` reads all of it at once); and what goes with it from step to step (``question``)."""
