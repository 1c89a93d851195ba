"""How much is asked, of which models, and what it costs: figures of answered requests, kept only where that is wanted.

``meter`` makes a row of each answered request, ``report`` adds up what is kept, and says what tokens cost. A row
holds no content and no name of a user: users and sessions are digests under a key that lies in the journal. Rows are
written in batches by ``background.UsageWriter``.
"""
