"""What texts are made of: words, times, secrets. Pure functions of a text, the same for whoever reads."""
