"""What is run before a release: every long suite, short (`make smoke`) or whole (`make prove`), and the page of it."""
