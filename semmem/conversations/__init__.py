"""What is kept of conversations, only where that is wanted: who said what, which model answered, which tools it called.

``tap`` makes halves of requests and of their answers, ``transcript`` writes a conversation out for a person or a
program. Halves are written in batches by ``background.ConversationWriter``, away from requests and answers.
"""
