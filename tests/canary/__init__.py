"""Many users at every door, with a word of its own in everything that is told: nobody meets another's, and what was
erased does not come back.

``python -m tests.canary --operations 100000`` ends with one line of numbers, and exit status 1 when something leaked,
returned or failed.
"""
