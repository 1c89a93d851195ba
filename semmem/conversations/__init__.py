"""What is kept of conversations, only where that is wanted: who said what, which model answered, which tools it called.

``tap`` makes halves of requests and of their answers, which ``background.ConversationWriter`` writes in batches, away
from both.
"""
