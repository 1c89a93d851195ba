"""What a request pays for memory, measured beside its floors in one run: ``python -m bench``, or ``make bench``.

One Envoy with one route per case, a light upstream and a light client, each in a process of its own. All cases take
turns in short blocks, so that whatever else the machine does hits all of them alike; the figures to quote are ratios
of the same round, never times alone. docs/benchmarks.md says what each figure means.

parts.py      what a run consists of; each part is a module with a function that measures and one that shows
keys.py       the figures that decide, and what each is to reach
plan.py       how much is measured

requests.py   a part: every case through Envoy at 1, 8 and 32 connections
streams.py    a part: SSE, also with a sidecar that hangs
process.py    a part: start, memory and idle of one semmem
saturation.py a part: new questions a second
scale.py      a part, without Envoy: many memories of many users
mem0_part.py  a part, without Envoy: mem0 beside semmem, on the same memories and questions
prompt_cache.py  a part: first tokens of a real engine, sessions with memory and without
learning.py   a part, without Envoy: journal, batches, learning at once
purge.py      not a part: how long a purge of the embedded store takes

cases.py      what is sent, and through which filters
road.py       the processes, started together; routes.py: Envoy's configuration; sidecars.py: semmem's
upstream.py   the model's place: answers at once, streams stamp each token with its time
noop.py       the floor: a Python sidecar that says "go on", or rewrites without reading
bare.py       the floor: a process that only embeds, or only asks Milvus
client.py     HTTP/1.1 over raw asyncio; blocks.py: so many requests over so many connections
recalling.py  semmem's retrieval alone, over collections of a Milvus; own_milvus.py and milvus_server.py: a server
facts.py      invented facts about people, and questions that they answer
talks.py      a user's memories, and conversations that need them
llama_server.py, llama/  llama.cpp with a small model in the model's place, on Node.js
mem0_process.py, mem0_worker.py  mem0 in a process and an environment of its own
kernel.py     what Linux knows of another process; machine.py: of this machine
figures.py    samples -> figures; plot.py: figures -> pictures
"""
