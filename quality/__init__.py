"""Are the memories right? semmem's own gate, search, rules, screens and dedup, measured on a folder of labelled data.

``python -m quality FOLDER``, or ``make quality DATA=FOLDER``. Nothing of semmem is copied or imitated here: the parts
are wired by ``semmem.wiring`` from the default settings, without a language model. docs/quality.md says what each
figure means.

folder.py            which file is which set, by the pattern of its name; the fifth that is put aside
wiring.py            semmem's parts, with a store and a journal that vanish afterwards
telling.py           users who tell something, in sessions, and what is learnt of it
library.py           stores of memories whose gold ids are known
vectors.py           the real embedder, many texts at a time
preferences.py       what somebody prefers: injected, told, said in passing
leakage.py           what is shown although it does not belong
stories.py           what people tell over weeks, and ask for later
updates.py           values that change inside ordinary requests
gate.py              who is shown nothing
recall.py            what is found and injected
learning.py          what is stored, replaced and refused
vague.py             follow-ups that mean nothing alone
past.py              questions for former conversations
sessions.py          long sessions, compressed
hot_cold.py          memories in process against memories in Milvus
peers.py             what other systems' own tests tell, ask and expect
extraction_score.py  facts against labels
scores.py            recall, hits and shares
report.py            targets, table
leave_out.py         the same of a copy that was trained without one set
quantisation.py      what an index of Milvus costs against the exact answers; quantisation_qdrant.py: of Qdrant's engine
"""
