"""Are the memories right? semmem's own gate, search, rules, screens and dedup, measured on a folder of labelled data.

``python -m quality FOLDER``, or ``make quality DATA=FOLDER``. Nothing of semmem is copied or imitated here: the parts
are wired by ``semmem.wiring`` from the default settings, without a language model. docs/quality.md says what each
figure means.

folder.py            which file is which set, by the pattern of its name
wiring.py            semmem's parts, with a store and a journal that vanish afterwards
vectors.py           the real embedder, many texts at a time
gate.py              who is searched for
recall.py            what is found and injected
learning.py          what is stored, replaced and refused
extraction_score.py  facts against labels
scores.py            recall, hits and shares
report.py            targets, table
"""
