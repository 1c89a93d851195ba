"""What semmem is worth on the public agent-memory benchmarks: their conversations are told through a real Envoy, their
questions asked, and what was put into each prompt is held against the evidence that the benchmark names.

Data sets are files of the reader's: nothing of them is in this repository. Datasets -> talking (HTTP) -> figures; the
house starts semmem, Envoy and a model server that says what it received.
"""
