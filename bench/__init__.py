"""What a request pays for memory, measured beside its floor in one run: ``python -m bench``, or ``make bench``.

One Envoy with one route per case, a light upstream and a light client, each in a process of its own. All cases take
turns in short blocks, so that whatever else the machine does hits all of them alike; the figures to quote are ratios
to the floor of the same run, never times alone. docs/benchmarks.md says what each figure means.

cases.py      what is sent, through which filters, and what it is compared with
road.py       the processes, the Envoy configuration, the seeded memories, the CPU clocks
upstream.py   the model's place: answers at once, streams stamp each token with its time
noop.py       the floor: a Python sidecar that says "go on" and nothing else
client.py     HTTP/1.1 over raw asyncio
run.py        rounds of blocks
report.py     samples -> figures -> ratios -> table
"""
