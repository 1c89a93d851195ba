"""Coverage-guided fuzzing, in process: ``make fuzz SECONDS=60``.

A target (targets.py) is a function of bytes that raises when a promise is broken. ``python -m tests.fuzz`` lets atheris
search for such bytes; test_corpus.py replays the corpus through the same functions, without atheris.
"""
