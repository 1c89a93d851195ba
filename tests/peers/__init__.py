"""What the tests of two other systems tell, ask and expect, replayed through a real Envoy and the management API.

steps.py       the steps, read from a folder that is not part of this repository
known.py       the differences that docs/peers.md lists, and what they are worth
world.py       houses of Envoy, semmem and a scripted model, one for each configuration
talk.py        steps that say something: what reached the model, what was learnt
blocks.py      steps about the place and form of what is added to a prompt
calls.py       steps that are calls of the API
upkeep.py      steps about searches, and about memories that are put there
play.py        which of these plays which step
"""
