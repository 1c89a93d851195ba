"""How each request went, kept for some days for whoever asks why: names and figures, nothing that was said.

``feature`` takes part in the exchange and makes two halves of each request: what went on to the model, and how its
answer ended. They are written in batches by ``background.RequestLogWriter`` into the journal's database, so that every
replica tells of the requests of all.
"""
