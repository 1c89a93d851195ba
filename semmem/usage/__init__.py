"""How much is asked, of which models, and what it costs: figures of answered requests, kept only where that is wanted.

``meter`` makes a row of each answered request, ``prices`` says what tokens cost, ``report`` adds up what is kept. A row
holds no content and no name of a user: users and sessions are digests under a key that lies in the journal. Rows are
written in batches by ``background.UsageWriter``.
"""
