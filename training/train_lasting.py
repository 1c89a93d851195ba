"""Trains what tells lasting clauses from others, and writes in semmem/extraction/lasting weights.npz, for the embedding
model that is named by ``MODEL``, and form.npz, for where there are no vectors.

    DATA=folder [VECTORS=cache.npz] [FOLDS=1] python -m training.train_lasting

Beside this file lie messages of our own in which what is to be kept is marked (OWN: a file each), statements, plain
ones with what may stand around them, and messages in which others speak (train_voice.py), of which what the user says
around their words is read. Nothing lasting is in the questions that retrieval is trained on, nor in ``folder``'s
signals/clinc150.jsonl and signals/general_facts_*.jsonl. With ``FOLDS`` there are figures, from folds that did not see
the message. One thread, seeded: the same data give the same numbers. Needs torch.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from semmem.extraction.lasting import classifier
from semmem.extraction.lasting.clauses import clauses, squeezed
from semmem.extraction.lasting.features import Clause, features
from semmem.memory import MemoryType, Standing
from semmem.ports.embedder import learnt_for
from semmem.retrieval.decide import scenes
from training.endings import endings
from training.train_decision import Vectors

HERE = Path(__file__).parent
QUESTIONS_FILE = Path(scenes.__file__).with_name("sentences.jsonl")
TYPES = tuple(kind.value for kind in (MemoryType.SEMANTIC, MemoryType.EPISODIC, MemoryType.PROCEDURAL))
STANDINGS = ("", *(standing.value for standing in Standing))

HIDDEN, EPOCHS, BATCH, RATE, DECAY = 192, 8, 256, 1.5e-3, 2e-2
DROPPED, DROPPED_HIDDEN = 0.2, 0.5
KINDS_WEIGHT = 0.3
"""Of telling type and standing, beside telling what is lasting."""
OVERLAP_MIN = 0.5
"""A clause is lasting when so much of it, or of what is to be kept, is in both."""
EVERY = 25
"""Of CLINC150 and of the quizzes every so-manieth row: more than enough to know them by."""
NEGATIVE_INTENTS_LEFT_OUT = ("change_user_name", "change_language", "user_name", "yes", "no", "maybe")
"""Intents whose messages may well say something about the user."""
ELSEWHERE = ("european", "eastern")
TALKS, TALKS_WEIGHT = "talks", 0.7
"""What people say to an assistant over some days, message by message, with what would be worth knowing later marked:
most of it is of the task at hand, and what lasts slips out in half a clause."""
REMARKS, REMARKS_WEIGHT = "remarks", 2.0
"""Messages of one line in which nothing lasts: games, gossip about the famous, commands, sentences to be translated."""
OWN = ("messages", "statements", "frames", "decided", *ELSEWHERE, TALKS, REMARKS)
ENDINGS, ENDINGS_WEIGHT = "endings", 0.4
"""Messages in which it slips out that something is over, or has another value (endings.py)."""
ASKED, ASKED_WEIGHT, ASKED_HELD_EVERY = "asked", 1.0, 3
"""Messages that ask to remember something, in words of every kind and in twelve languages, and messages with such words
that do not ask it. A third, by a digest of the text, is never learnt from."""
PLAIN, PLAIN_WEIGHT = "plain", 0.5
"""What newcomers try first: a statement of a few words, alone and with what people put in front of it and behind it.
The same statement is lasting in all of these places. ``AROUND``: openers and tails."""
AROUND = "around_plain"
ENDS = tuple(".!?,;…。！？")
REACTIONS, REACTIONS_WEIGHT, REACTIONS_FORM_WEIGHT = "reactions", 2.0, 0.5
"""Messages as short, of the user's too, in which nothing lasts: "I want a shorter one", "I'm lost"."""
WEIGHTS = {
    PLAIN: PLAIN_WEIGHT,
    REACTIONS: REACTIONS_WEIGHT,
    ENDINGS: ENDINGS_WEIGHT,
    TALKS: TALKS_WEIGHT,
    REMARKS: REMARKS_WEIGHT,
    ASKED: ASKED_WEIGHT,
}
VOICES = ("told", "spoken", "around", "leading")
"""What the files of train_voice.py give: statements, whole messages, what is said around others' words, and what leads
to them."""
LEADING_EVERY, LEADING_WEIGHT = 3, 0.025
VOICES_WEIGHT, VOICES_NEGATIVE_WEIGHT = 0.25, 0.1
"""Of what is lasting in the others, and of what is not: most of their clauses, which would outweigh all else."""
NEGATIVE_WEIGHT = 0.5
FRAMES = ("fiction", "roleplay", "translation", "textwork", "paste", "lyrics", "poem", "opener", "quote")
"""Kinds of messages whose words are somebody else's: nothing is to be learnt from them, which is seen before these
models are asked (training/train_voice.py)."""
NAMED = re.compile(
    r"\b(?:(?:[Mm]y|[Oo]ur)(?: [a-z-]+){1,2},?|us(?:e|es|ing)|with|called|named|chose|picked|collect|like|learning|to"
    r"|on|at|in|for) ([A-Z][a-z]\w{2,})"
)
RENAMED_EACH = 4
"""With so many other names a message that names somebody, or something, is learnt as well; of talks none is."""
COPIES = 1 + RENAMED_EACH
SYLLABLES = [a + b + c for a in "bcdfghjklmnprstvwyz" for b in "aeiou" for c in ("", "", "n", "r")]
MUST_LENIENCY = 0.7
"""Added to the log-odds of what the user must or must not: an allergy that is taken for any fact is worse than a fact
that is taken for an allergy."""
FOLDS = 5
SEED = 7

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Row:
    """A clause of one message: what is seen of it, and what it is (``lasting``, type, standing). Messages that differ
    in a name alone have numbers that follow each other (COPIES)."""

    message: int
    group: str
    clause: Clause
    seen: list[float]
    lasting: bool
    kind: str = TYPES[0]
    standing: str = ""
    weight: float = 1.0


def rows(folder: Path) -> list[Row]:
    found: list[Row] = []
    for number, (group, line) in enumerate(_messages(folder)):
        found += _rows(number * COPIES, group, line)
        for copy, other in enumerate(_renamed(line) if group != TALKS else (), 1):
            found += _rows(number * COPIES + copy, "renamed", other)
    return found


def _rows(number: int, group: str, line: dict[str, Any]) -> Iterator[Row]:
    text = squeezed(line["text"])
    marked = [_place(text, squeezed(part)) for part in line["keep"]]
    pieces = clauses(text)
    for clause, seen in zip(pieces, features(pieces), strict=True):
        index = next((i for i, place in enumerate(marked) if _overlaps(clause, place)), None)
        if index is None:
            yield Row(number, group, clause, seen, False, weight=_weight(group, False))
        else:
            standing = line.get("standing", {}).get(str(index), "")
            kind, weight = line["types"][index], _weight(group, True)
            yield Row(number, group, clause, seen, True, kind, standing, weight)


def _renamed(line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The message with other names in the place of the one that somebody of the user's has: what is said is lasting or
    not whatever they are called, and the vector of a word that no model has met points anywhere."""
    if (named := NAMED.search(line["text"])) is None:
        return
    dice = np.random.default_rng(SEED + len(line["text"]))
    for _ in range(RENAMED_EACH):
        name = "".join(dice.choice(SYLLABLES, dice.integers(2, 6))).capitalize()
        text, *keep = (re.sub(rf"\b{named[1]}\b", name, part) for part in (line["text"], *line["keep"]))
        yield {**line, "text": text, "keep": keep}


def _is_anothers(line: dict[str, Any]) -> bool:
    return not line["keep"] and line.get("kind", "").split("-")[-1] in FRAMES


def _weight(group: str, lasting: bool) -> float:
    if group == "renamed":
        return 1 / RENAMED_EACH
    if group == "leading":
        return LEADING_WEIGHT
    if group in VOICES:
        return VOICES_WEIGHT if lasting else VOICES_NEGATIVE_WEIGHT
    if group in WEIGHTS:
        return WEIGHTS[group]
    return 1.0 if group in OWN else NEGATIVE_WEIGHT


def _messages(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in OWN:
        yield from ((name, line) for line in _lines(HERE / f"{name}.jsonl") if not _is_anothers(line))
    for ending in endings(held=False):
        kept = {"keep": [ending.says], "types": [TYPES[0]], "lang": ending.language}
        yield ENDINGS, {"text": ending.message, **kept}
    for line in _lines(HERE / "asked.jsonl"):
        if int(hashlib.sha256(line["text"].encode()).hexdigest(), 16) % ASKED_HELD_EVERY:
            yield ASKED, {**line, "types": [TYPES[0]] * len(line["keep"])}
    yield from ((PLAIN, line) for line in _newcomers())
    yield from ((REACTIONS, {**line, "keep": []}) for line in _lines(HERE / f"{REACTIONS}.jsonl"))
    yield from _voices()
    yield from (("own", {**line, "keep": []}) for line in _lines(QUESTIONS_FILE))
    clinc = (line for line in _lines(folder / "signals" / "clinc150.jsonl"))
    allowed = [line for line in clinc if line["intent"] not in NEGATIVE_INTENTS_LEFT_OUT]
    yield from (("clinc", {**line, "keep": []}) for line in allowed[::EVERY])
    for file in sorted(folder.glob("signals/general_facts_*.jsonl")):
        yield from (("quiz", {**line, "keep": []}) for line in list(_lines(file))[::EVERY])


def _newcomers() -> Iterator[dict[str, Any]]:
    """Each statement alone, behind an opener, before a tail, and between both."""
    dice = np.random.default_rng(SEED)
    around: dict[tuple[str, str], list[str]] = {}
    for line in _lines(HERE / f"{AROUND}.jsonl"):
        around.setdefault((line["lang"], line["kind"]), []).append(line["text"])
    for line in _lines(HERE / f"{PLAIN}.jsonl"):
        said, standing = line["text"], line["standing"]
        kind = TYPES[2] if standing == Standing.STYLE else TYPES[0]
        told = {"keep": [said], "types": [kind], "standing": {"0": standing} if standing else {}, "lang": line["lang"]}
        first, second = dice.choice(around[line["lang"], "opener"], 2)
        third, fourth = dice.choice(around[line["lang"], "tail"], 2)
        gap, comma = ("", "、") if line["lang"] in ("ja", "zh") else (" ", ",")
        ended = said if said.endswith(ENDS) else said + comma
        for parts in ([said], [first, said], [ended, third], [second, ended, fourth]):
            yield {**told, "text": gap.join(parts)}


def _voices() -> Iterator[tuple[str, dict[str, Any]]]:
    for line in _lines(HERE / "voice_statements.jsonl"):
        if line["kind"] != "forget":
            standing = line["kind"] if line["kind"] in STANDINGS else ""
            kept = {"keep": [line["text"]], "types": [TYPES[0]], "standing": {"0": standing} if standing else {}}
            yield "told", {**line, **kept, "kind": ""}
    for line in _lines(HERE / "voice_messages.jsonl"):
        if "own" in line:
            yield "spoken", {**line, "keep": line["own"], "types": [TYPES[0]] * len(line["own"])}
    for line in _lines(HERE / "voice_marked.jsonl"):
        text = line["text"]
        for part in line["foreign"]:
            text = text.replace(part, "\n")
        own = [part for part in line["own"] if part in text]
        if text.strip():
            yield "around", {"text": text, "keep": own, "types": [TYPES[0]] * len(own), "lang": line["lang"]}
    for line in list(_lines(HERE / "voice_ways.jsonl"))[::LEADING_EVERY]:
        text = re.sub(r"\{\w+\}", "", line["template"])
        if text.strip():
            yield "leading", {"text": text, "keep": [], "lang": line["lang"]}


def _place(text: str, part: str) -> tuple[int, int]:
    start = text.find(part)
    if start < 0:
        raise SystemExit(f"not in its message: {part!r}")
    return start, start + len(part)


def _overlaps(clause: Clause, place: tuple[int, int]) -> bool:
    both = min(clause.end, place[1]) - max(clause.start, place[0])
    return both > 0 and both >= OVERLAP_MIN * min(clause.end - clause.start, place[1] - place[0])


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


class Judging(nn.Module):  # type: ignore[misc]
    """What ``classifier.Network`` computes, to be learnt."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(width, HIDDEN), nn.Linear(HIDDEN, 1 + len(TYPES) + len(STANDINGS))
        self.drop, self.drop_hidden = nn.Dropout(DROPPED), nn.Dropout(DROPPED_HIDDEN)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.out(self.drop_hidden(torch.relu(self.hidden(self.drop(points)))))
        return found

    def network(self, signature: str) -> classifier.Network:
        hidden, out = (
            np.concatenate([layer.weight.detach().numpy(), layer.bias.detach().numpy()[:, None]], axis=1)
            for layer in (self.hidden, self.out)
        )
        if signature:
            out[1 + len(TYPES) + STANDINGS.index(Standing.MUST.value), -1] += MUST_LENIENCY
        return classifier.Network(signature, hidden, out)


def fit(found: Sequence[Row], points: Matrix) -> Judging:
    """Type and standing are learnt from lasting clauses of which they are known."""
    torch.manual_seed(SEED)
    judging = Judging(points.shape[1])
    untyped = (ENDINGS, ASKED, *VOICES[1:])
    typed = [row.lasting and row.group not in untyped for row in found]
    given = torch.from_numpy(points)
    lasting, weights, is_typed = (
        torch.tensor(values, dtype=torch.float32) for values in (_lasting(found), [row.weight for row in found], typed)
    )
    kinds = torch.tensor([TYPES.index(row.kind) for row in found])
    standings = torch.tensor([STANDINGS.index(row.standing) for row in found])
    optimiser = torch.optim.AdamW(judging.parameters(), RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, EPOCHS * -(-len(found) // BATCH))
    one_of = partial(nn.functional.cross_entropy, reduction="none")
    is_so = partial(nn.functional.binary_cross_entropy_with_logits, reduction="none")
    for _ in range(EPOCHS):
        judging.train()
        for at in torch.randperm(len(found)).split(BATCH):
            told, kind, standing = judging(given[at]).split([1, len(TYPES), len(STANDINGS)], dim=1)
            loss = (is_so(told[:, 0], lasting[at]) * weights[at]).mean()
            told_of = one_of(kind, kinds[at]) + one_of(standing, standings[at])
            loss = loss + KINDS_WEIGHT * (told_of * is_typed[at]).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    judging.eval()
    return judging


def held_out(found: Sequence[Row], points: Matrix) -> Matrix:
    """Each clause's probability of being lasting, by networks that have not seen its message."""
    fold = _folds(found, SEED)
    probabilities = np.zeros(len(found), dtype=np.float32)
    for number in range(FOLDS):
        rest = fold != number
        judging = fit([row for row, learnt in zip(found, rest, strict=True) if learnt], points[rest])
        scores = judging.network("").scores(points[~rest])[:, 0]
        probabilities[~rest] = 1 / (1 + np.exp(-scores))
    return probabilities


def _folds(found: Sequence[Row], seed: int) -> npt.NDArray[np.int64]:
    message = np.array([row.message // COPIES for row in found])
    return np.asarray(np.random.default_rng(seed).integers(0, FOLDS, message.max() + 1)[message])


def _lasting(found: Sequence[Row]) -> npt.NDArray[np.int64]:
    return np.array([int(row.lasting) for row in found])


def report(found: Sequence[Row], probabilities: Matrix) -> str:
    """Precision and recall of the messages' clauses at several cuts, and how many of the others' are taken."""
    group = np.array([row.group for row in found])
    lasting = _lasting(found).astype(bool)
    lines = [f"{'cut':>5}" + "".join(f"{name:>20}" for name in (*OWN, *VOICES[:-1])) + f"{'others taken':>14}"]
    for cut in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
        taken = probabilities >= cut
        line = f"{cut:>5}"
        for name in (*OWN, *VOICES[:-1]):
            right = (taken & lasting & (group == name)).sum()
            precision = right / max(1, (taken & (group == name)).sum())
            line += f"{100 * precision:>14.1f}{100 * right / max(1, (lasting & (group == name)).sum()):>6.1f}"
        others = ~np.isin(group, (*OWN, ENDINGS, ASKED, PLAIN, REACTIONS, *VOICES[:-1], "renamed"))
        lines.append(f"{line}{100 * (taken & others).sum() / others.sum():>14.2f}")
    return "\n".join(lines) + "\n"


def inputs(found: Sequence[Row], vectors: Matrix | None) -> Matrix:
    """``points`` of every clause, message by message."""
    seen = np.array([row.seen for row in found], dtype=np.float32)
    messages = [list(group) for _, group in groupby(range(len(found)), key=lambda index: found[index].message)]
    points = [classifier.points(seen[group], None if vectors is None else vectors[group]) for group in messages]
    return np.vstack(points)


def main() -> None:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    found = rows(Path(os.environ["DATA"]))
    embed = Vectors(Path(os.environ["VECTORS"]) if os.environ.get("VECTORS") else None)
    made = embed([row.clause.text for row in found])
    weights = learnt_for(classifier.WEIGHTS_FILE, embed.signature)
    by_form = [replace(row, weight=REACTIONS_FORM_WEIGHT) if row.group == REACTIONS else row for row in found]
    for signature, file, given, learnt in (
        (embed.signature, weights, made, found),
        ("", classifier.FORM_FILE, None, by_form),
    ):
        points = inputs(learnt, given)
        if os.environ.get("FOLDS"):
            sys.stdout.write(f"{signature or 'by form alone'}\n{report(learnt, held_out(learnt, points))}")
        fit(learnt, points).network(signature).save(file)


if __name__ == "__main__":
    main()
