"""Faults on a real Envoy: every failure leaves the client with the answer it would have had without semmem.

``python -m tests.faults`` runs every fault with JSON and with SSE; ``python -m tests.faults.crashes N`` kills semmem
N times. Both end with one line of numbers and exit status 1 when anything differs or is lost.
"""
