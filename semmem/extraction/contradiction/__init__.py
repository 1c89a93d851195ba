"""Do two statements about a user say the same, exclude each other, or stand side by side? Without a language model.

Embeddings alone cannot tell: "is allergic" and "is not allergic" are 0.98 apart from 1, "lives in Boston" and "moved
to Seattle" 0.61. So the words are compared as they stand (reading.py, quantities.py); what they leave open a small
judge decides (pair_model.py) from words and vectors together, and only within guards (verdict.py)."""
