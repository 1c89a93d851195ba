"""Minutes of mixed load on a real Envoy, with faults: every client is answered, and nothing grows.

``python -m tests.soak --seconds 600`` ends with one line of numbers, and exit status 1 when a client was not answered
as it should have been, memory or open files grew, or a turn was held for ever.
"""
