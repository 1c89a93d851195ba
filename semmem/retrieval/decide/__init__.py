"""Whether to search at all, from the words of a question and from its vector."""
