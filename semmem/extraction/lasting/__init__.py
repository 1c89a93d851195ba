"""Which of a user's clauses say something lasting about them: clauses, what is seen of each, and a small classifier."""
