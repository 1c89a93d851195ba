"""Trains what knows an order from a statement and writes semmem/text/order_weights.json.

    DATA=folder python -m training.train_orders

training/order_frames.jsonl holds frames whose slots are filled at random (always the same: SEED), in orders and in
plain statements that share their words, and whole sentences, in fourteen languages: a wish for a style of answers has
the words around it that an order has, so that only what is wished for counts. Plain is also all that people say to an
assistant (the memories and the requests of the decision's scenes, the messages, those of which something is kept in
other languages, and, of ``folder``, BFCL's turns and CLINC150) and what they say to each other (training/talk.jsonl),
who give each other advice and courage in the form of orders. Both cuts come from folds that did not see the text.
"""

from __future__ import annotations

import base64
import json
import os
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

from semmem.text import orders
from semmem.text.disguise import readings, revealed, turned
from semmem.text.orders import BUCKETS, FEATURES_MIN, features, pieces, tokens

HERE = Path(__file__).parent
WEIGHTS_FILE = Path(orders.__file__).with_name("order_weights.json")
SCENES = [f"../semmem/retrieval/decide/scenes/{letter}.jsonl" for letter in "abcdefg"]
SEED = 7
FOLDS = 5
STRENGTH = 60.0
"""scikit-learn's C: the inverse of the penalty on large weights."""
SHARES = {"suspected": 0.0014, "certain": 0.0008}
"""Of the plain texts that were held out and that nobody wrote to be mistaken, how many may lie above a cut."""
TAKE_FACTOR = 2
"""How many times as many texts as its ``take`` says are made of a line of frames."""
CLINC_STEP = 4
NONSENSE_CHARS_MAX = 60
"""Only short texts are turned round for the training: enough of nonsense."""
WRITTEN_WEIGHT, FOREIGN_WEIGHT, TALK_WEIGHT = 3.0, 5.0, 3.0
"""How often a whole sentence counts beside one that was put together, one that is not English, and what people say to
each other."""

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Row:
    text: str
    is_order: bool
    group: str
    """Rows of one group are held out together."""
    weight: float = 1.0


def rows() -> list[Row]:
    found = [*_framed(), *_memories(), *_messages(), *_elsewhere(), *_nonsense(), *_talk(Path(os.environ["DATA"]))]
    return list({row.text: row for row in found}.values())


def _framed() -> Iterator[Row]:
    chance = random.Random(SEED)
    for number, line in enumerate(_lines("order_frames.jsonl")):
        frames, is_order = line["frames"], line["label"] == "order"
        foreign = line["language"] != "en"
        for turn in range(line["take"] * TAKE_FACTOR or len(frames)):
            frame = frames[turn % len(frames)]
            text = _filled(frame, line["slots"], chance)
            weight = 1.0 if line["take"] else FOREIGN_WEIGHT if foreign else WRITTEN_WEIGHT
            yield Row(text, is_order, f"{number}/{turn % len(frames)}", weight)


def _filled(frame: str, slots: dict[str, list[str]], chance: random.Random) -> str:
    """The frame with a filling of each slot, which may have slots of its own; doubled braces are braces."""
    text = frame.replace("{{", "\x01").replace("}}", "\x02")
    while (slot := re.search(r"\{(\w+)\}", text)) is not None:
        text = text[: slot.start()] + chance.choice(slots[slot[1]]) + text[slot.end() :]
    text = " ".join(text.replace("\x01", "{").replace("\x02", "}").split())
    return text[:1].upper() + text[1:] if chance.random() < 0.7 else text


def _memories() -> Iterator[Row]:
    for file in SCENES:
        for line in _lines(file):
            for memory in line["memories"]:
                yield Row(memory["text"], False, line["about"])


def _talk(folder: Path) -> Iterator[Row]:
    """What people ask of an assistant, and tell it at length."""
    for file in SCENES:
        for line in _lines(file):
            for request in line["requests"]:
                yield Row(request["text"], False, line["about"])
    for number, line in enumerate(_lines("messages.jsonl")):
        if line["kind"] != "attack":
            yield Row(line["text"], False, f"message/{number}")
    for number, line in enumerate(_lines("talk.jsonl")):
        for text in (line["text"], f"{line['speaker']}: {line['text']}"):
            yield Row(text, False, f"message/talk {number}", TALK_WEIGHT)
    for number, line in enumerate(_lines(str(folder / "retrieval/bfcl_memory_turns.jsonl"))):
        for piece in re.split(r"(?<=[.!?])\s+", line["text"]):
            yield Row(piece, False, f"message/turn {number}")
    for number, line in enumerate(_lines(str(folder / "signals/clinc150.jsonl"))):
        if number % CLINC_STEP == 0:
            yield Row(line["text"], False, f"message/intent {line['intent']}", 0.5)


def _messages() -> Iterator[Row]:
    for number, line in enumerate(_lines("messages.jsonl")):
        if line["kind"] not in ("attack", "paste", "mixed-paste"):
            for kept in line["keep"]:
                yield Row(kept, False, f"message/{number}", 1.5)


def _elsewhere() -> Iterator[Row]:
    """Messages in other languages. Of some nothing is kept because they are orders: those are left out."""
    for file in ("european", "eastern"):
        for number, line in enumerate(_lines(f"{file}.jsonl")):
            for text in (line["text"], *line["keep"]) if line["keep"] else ():
                yield Row(text, False, f"message/{file} {number}", 1.5)


def _nonsense() -> Iterator[Row]:
    """What undisguised texts are when they are read as disguised ones, in every language that orders are learnt in."""
    for row in (*_memories(), *_elsewhere(), *(row for row in _framed() if not row.is_order)):
        for text in turned(row.text) if len(row.text) < NONSENSE_CHARS_MAX else ():
            yield Row(text, False, row.group, 0.5)


def _lines(name: str) -> Iterator[dict[str, Any]]:
    with (HERE / name).open(encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


def matrix(texts: list[str]) -> csr_matrix:
    """One row a text: the root of one over their number in the places of its features."""
    spelt = [features(tokens(revealed(text))) for text in texts]
    values = [1 / max(len(places), FEATURES_MIN) ** 0.5 for places in spelt for _ in places]
    ends = np.cumsum([0, *map(len, spelt)])
    return csr_matrix((values, [place for places in spelt for place in places], ends), shape=(len(texts), BUCKETS))


def fit(points: csr_matrix, labels: Vector, weights: Vector) -> LogisticRegression:
    return LogisticRegression(C=STRENGTH, max_iter=300, solver="liblinear").fit(points, labels, sample_weight=weights)


def surest(texts: list[str], model: LogisticRegression) -> Vector:
    """The odds of the most commanding piece of any reading, which is what is asked for later."""
    found = []
    for text in texts:
        spelt = [features(piece) for reading in readings(text) for piece in pieces(reading)]
        odds = [model.coef_[0][p].sum() / max(len(p), FEATURES_MIN) ** 0.5 for p in spelt if p]
        found.append(max(odds, default=-9.0) + model.intercept_[0])
    return np.array(found)


def main() -> None:
    known = rows()
    texts = [row.text for row in known]
    labels = np.array([float(row.is_order) for row in known])
    weights = np.array([row.weight for row in known])
    natural = np.array(["/" not in row.group or row.group.startswith("message") for row in known])
    points = matrix(texts)
    odds = held_out(known, points, labels, weights)
    cuts = {name: float(np.quantile(odds[natural], 1 - share)) for name, share in SHARES.items()}
    tell(f"{len(texts)} texts, {int(labels.sum())} orders; of those in folds that did not see them:")
    for name, cut in cuts.items():
        caught, hurt = (100 * (odds[labels == kind] >= cut).mean() for kind in (1, 0))
        tell(f"{name}: cut {cut:.2f}, {caught:.1f} % of the orders, {hurt:.2f} % of the plain texts")
    write(fit(points, labels, weights), cuts)


def held_out(known: list[Row], points: csr_matrix, labels: Vector, weights: Vector) -> Vector:
    """Each text's odds by a model that has seen no row of its group."""
    names = sorted({row.group for row in known})
    random.Random(SEED).shuffle(names)
    fold = {name: at % FOLDS for at, name in enumerate(names)}
    folds = np.array([fold[row.group] for row in known])
    odds = np.zeros(len(known))
    for at in range(FOLDS):
        model = fit(points[folds != at], labels[folds != at], weights[folds != at])
        mine = np.flatnonzero(folds == at)
        odds[mine] = surest([known[index].text for index in mine], model)
    return odds


def write(model: LogisticRegression, cuts: dict[str, float]) -> None:
    """The weights as one signed byte each, and what one unit of them is worth."""
    unit = float(np.abs(model.coef_).max()) / 127
    packed = np.round(model.coef_[0] / unit).astype(np.int8)
    trained = {
        "cuts": {name: round(cut, 3) for name, cut in cuts.items()},
        "bias": round(float(model.intercept_[0]), 4),
        "unit": round(unit, 6),
        "weights": base64.b64encode(packed.tobytes()).decode(),
    }
    WEIGHTS_FILE.write_text(json.dumps(trained) + "\n", encoding="utf-8")


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
