"""What is known of a request before its words are understood: who asks, what is allowed, what earlier filters found."""
