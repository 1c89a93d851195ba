"""Two replicas behind one Envoy, with every server they share: one replica is killed, servers go away and come back,
and nothing is lost, doubled or remembered after erasure.

``python -m tests.fleet`` ends with one line of numbers, and exit status 1 unless all of them are 0.
"""
