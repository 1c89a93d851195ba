"""What users say. A fact names its canary, and each is one that the rules learn and take for no other one."""

from __future__ import annotations

FACTS = (
    ("My sister {} lives in Oslo.", "Where does my sister live?"),
    ("I have a friend called {}.", "What is my friend called?"),
    ("My colleague {} plays the violin.", "Which colleague of mine plays the violin?"),
    ("I like {} tea.", "Which tea do I like?"),
    ("I love listening to {}.", "What do I love listening to?"),
    ("My friend {} is a dentist.", "Which friend of mine is a dentist?"),
    ("I own a boat called {}.", "What is my boat called?"),
    ("We decided to use {} for the billing service.", "What did we decide to use for the billing service?"),
    ("I am allergic to {}.", "What am I allergic to?"),
    ("I am learning {}.", "What am I learning?"),
    ("My neighbour {} has three cats.", "Which neighbour of mine has three cats?"),
    ("I collect {} stamps.", "Which stamps do I collect?"),
    ("I use {} for note taking.", "What do I use for note taking?"),
    ("My aunt {} grew up in Norway.", "Where did my aunt grow up?"),
)
"""What is said, and a question for it. There are few questions, so that most of their vectors are known already."""
MOVES = ("I live in {}.", "Where do I live?")
"""A fact that contradicts the one before it: that one is kept, dated, and shown no longer."""

STORED = (
    ("User's cousin {} keeps bees", "Which cousin of mine keeps bees?"),
    ("User reads everything by {}", "Whose books do I read?"),
    ("User's bicycle was made by {}", "Who made my bicycle?"),
    ("User plays chess with {} every week", "Whom do I play chess with?"),
)
"""What the API is told to store."""

QUESTIONS = tuple(question for _, question in (*FACTS, MOVES, *STORED))
GREETINGS = ("Hello!", "Good morning!", "Thank you.", "Hi there!")
WHO = "Who or what is {}?"
NOTED = "Got it, thank you for telling me."
