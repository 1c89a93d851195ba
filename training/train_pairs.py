"""Trains the judge of pairs of statements and writes semmem/extraction/contradiction/pair_weights.npz.

    [DATA=folder] [VECTORS=cache.npz] python -m training.train_pairs

Learns from ``pairs_own.jsonl``, ``pairs_beside.jsonl``, ``pairs_said.jsonl``, ``pairs_changed.jsonl`` and
``endings.jsonl`` beside this file, from what one person said over days (``talks.jsonl``), from things said of made-up
names (``pairs_named.jsonl``), and from the pairs that the tests keep. A row is a pair with its label, or a family: ways
to ``say`` something with a value in it, of which ``one`` or ``many`` may hold at a time, ways to say that it
``changes`` or ``ends``, and what ``happens`` beside it and leaves it true. Of what was said, changed, ended and lived a
part is held aside; of it, and of ``folder``/pairs*.jsonl, where there is one, it reports how they are judged
(docs/decisions/0011-losing-is-worse-than-doubling.md).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from semmem.extraction.contradiction.pair_model import FEATURE_MAX, WEIGHTS_FILE, PairModel, dense, parts, row
from semmem.extraction.contradiction.verdict import Judged, closed, decided
from semmem.extraction.phrasing import phrased
from semmem.ports.embedder import learnt_for
from semmem.text.quoting import quoted, unquoted
from training.endings import Ending, endings
from training.train_decision import embedder

SIGNATURE = embedder().signature
HERE = Path(__file__).parent
OWN_FILE = HERE / "pairs_own.jsonl"
BESIDE_FILE = HERE / "pairs_beside.jsonl"
CHANGED_FILE = HERE / "pairs_changed.jsonl"
"""Changes told in other words than what they change, and what is said beside them; ``held`` are another writer's."""
SAID_FILE = HERE / "pairs_said.jsonl"
NAMED_FILE, NAMED_EACH, NAMED_WEIGHT = HERE / "pairs_named.jsonl", 12, 0.3
TALKS_FILE = HERE / "talks.jsonl"
SAID_HELD = 0.2
"""Of each language the last ones, since the same things happen in all four in about the same order."""
TESTS = HERE.parent / "tests"
LABELS = ("same", "contradiction", "different")
SEED = 1
DIRECTIONS = {"all-MiniLM-L6-v2": 24, "multilingual-e5-small": 48}
"""Principal directions of each kind of dense feature, by embedding model."""
UNITS, NETWORKS, EPOCHS, BATCH = 256, 4, 40, 256
RATE, DECAY, DROPOUT, INPUT_DROPOUT, SMOOTHING = 3e-3, 3e-2, 0.5, 0.1, 0.02
FAMILY_WEIGHT, CROSS_WEIGHT, RENAMED_WEIGHT = 0.15, 0.15, 0.4
SAID_WEIGHT = 0.5
LIVED_WEIGHT, LIVED_HELD_EVERY = 0.5, 5
NEAREST, ALIKE = 6, 0.7
"""What is more alike may well say the same or something else of the same."""
CHANGED_WEIGHT = 1.0
ENDING_WEIGHT, ENDING_WITHIN_WEIGHT = 2.0, 1.0
"""Of what ends a fact, alone and within its message; what leaves it true counts once."""
QUOTED_MAX = 198
KEPT_WEIGHT = 2.0
"""Of the pairs that tests keep, both of which are true: none of them may be lost."""
QUOTA = {
    "repeat": 8,
    "value": 6,
    "change": 6,
    "beside": 10,
    "added": 3,
    "end_other": 3,
    "end": 5,
    "back": 2,
    "owner": 6,
    "happens": 12,
    "happens_to": 10,
}
"""How many pairs of each kind a family gives."""
OTHERS = (
    "User's daughter Mila", "User's colleague Ben", "User's mother", "User's uncle Goran", "User's friend Aisha",
    "User's flatmate", "User's nephew Luca", "User's boss", "User's ex-wife",
)  # fmt: skip
KINDRED = tuple(
    frozenset(line.split())
    for line in (
        "home country address hometown ownplace", "pet petname", "job position employer", "spouse partner marital",
        "diet avoids nodrink",
        "children child", "budget rent", "wake sleep", "employer worked", "school major",
    )
)  # fmt: skip
"""Families whose sentences may well exclude or repeat each other; all others stand side by side."""

Matrix = npt.NDArray[np.float32]
Vectors = dict[str, npt.NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Pair:
    """``group``: what must not stand on both sides of a fold."""

    old: str
    new: str
    label: str
    group: str
    weight: float = 1.0


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def direct(rows_: Sequence[dict[str, Any]], name: str, chance: random.Random) -> Iterator[Pair]:
    """Each pair as it stands, turned round where that changes nothing, and told of somebody else."""
    for number, each in enumerate(rows_):
        old, new, label, group = each["old"], each["new"], each.get("label", "different"), f"{name}{number}"
        yield Pair(old, new, label, group)
        if label != "contradiction":
            yield Pair(new, old, label, group, 0.6)
        if old.startswith("User ") and new.startswith("User "):
            yield Pair(*_renamed(old, new, chance), label, group, RENAMED_WEIGHT)


def beside(rows_: Sequence[dict[str, Any]], chance: random.Random) -> Iterator[Pair]:
    """What happens beside a fact, and its twin that ends it: both are on the same side of a fold. None is turned round,
    since what comes after an end may well be a beginning."""
    for each in rows_:
        old, new, label, group = each["old"], each["new"], each["label"], f"beside {each['old']}"
        yield Pair(old, new, label, group)
        if old.startswith("User ") and new.startswith("User "):
            yield Pair(*_renamed(old, new, chance), label, group, RENAMED_WEIGHT)
        yield from (replace(pair, group=group, weight=SAID_WEIGHT) for pair in as_said([each]))


def as_said(rows_: Sequence[dict[str, Any]]) -> Iterator[Pair]:
    """Both in the user's own words, where they are given, or one of them: so are memories that rules did not phrase."""
    for each in rows_:
        if "old_said" in each:
            old, new = quoted(each["old_said"]), quoted(each["new_said"])
            for one, other in ((old, new), (each["old"], new), (old, each["new"])):
                yield Pair(one, other, each["label"], "")


def _as_kept(text: str) -> str:
    return text if text.startswith("User") else phrased(text)


def ending_pairs(found: Sequence[Ending]) -> Iterator[Pair]:
    """What was said before with what ends it, and with what is said beside it and leaves it true."""
    for each in found:
        old, group = quoted(each.before), f"ending {each.before}"
        yield Pair(old, quoted(each.says[:QUOTED_MAX]), "contradiction", group, ENDING_WEIGHT)
        if each.says != each.message and len(each.message) <= QUOTED_MAX:
            yield Pair(old, quoted(each.message), "contradiction", group, ENDING_WITHIN_WEIGHT)
        for text in each.beside:
            yield Pair(old, quoted(text[:QUOTED_MAX]), "different", group)


def said_pairs(rows_: Sequence[dict[str, Any]], *, held: bool) -> Iterator[Pair]:
    """In the user's own words, in several languages."""
    olds: dict[tuple[str, bool], list[str]] = {}
    for each in rows_:
        olds.setdefault((each["language"], each["label"] == "same"), []).append(each["old"])
    places = {name: list(dict.fromkeys(found)) for name, found in olds.items()}
    for each in rows_:
        of = places[each["language"], each["label"] == "same"]
        if (of.index(each["old"]) >= (1 - SAID_HELD) * len(of)) is held:
            old, new, group = quoted(each["old"]), quoted(each["new"]), f"said {each['old']}"
            yield Pair(old, new, each["label"], group)
            if each["label"] == "same":
                yield Pair(new, old, "same", group)


def changed_pairs(*, held: bool) -> Iterator[Pair]:
    """Changes told in other words than what they change, and what is told beside it."""
    for each in rows(CHANGED_FILE):
        if each["held"] is held:
            old, new, group = _as_kept(each["old"]), phrased(each["new"]), f"changed {each['old']}"
            yield Pair(old, new, each["label"], group, CHANGED_WEIGHT)


def families(rows_: Sequence[dict[str, Any]], chance: random.Random) -> Iterator[Pair]:
    for family in rows_:
        made: dict[str, list[tuple[str, str, str]]] = {name: [] for name in QUOTA}
        for kind, old, new, label in _combined(family, chance):
            made[kind].append((old, new, label))
        for kind, found in made.items():
            for old, new, label in chance.sample(found, min(QUOTA[kind], len(found))):
                told = _renamed(old, new, chance) if kind != "owner" and chance.random() < 0.3 else (old, new)
                told = _quoted(*told) if chance.random() < 0.15 else told
                yield Pair(*told, label, family["family"], FAMILY_WEIGHT)


def _combined(family: dict[str, Any], chance: random.Random) -> Iterator[tuple[str, str, str, str]]:
    says, values = family["says"], family["values"]
    one = family["holds"] == "one"
    for value in values:
        for a, b in itertools.permutations(says, 2):
            yield "repeat", _said(a, value), _said(b, value), "same"
        for a, other in itertools.product(says, values):
            if other == value:
                continue
            for b in says:
                yield "value" if one else "beside", _said(a, value), _said(b, other), LABELS[1 if one else 2]
            for b in family.get("changes", ()):
                yield "change" if one else "added", _said(a, value), _said(b, other), LABELS[1 if one else 2]
            for b in family.get("happens", ()):
                yield "happens", _said(a, value), _said(b, other), "different"
            for b in family.get("ends", ()) if not one else ():
                yield "end_other", _said(a, value), _said(b, other), "different"
        for a, b in itertools.product(says, family.get("ends", ())):
            yield "end", _said(a, value), _said(b, value), "contradiction"
            yield "back", _said(b, value), _said(a, value), "contradiction"
        for a, b in itertools.product(says, family.get("happens", ())):
            yield "happens_to", _said(a, value), _said(b, value), "different"
        for a, b in itertools.product(says, says):
            who, theirs = chance.choice(OTHERS), _said(b, chance.choice(values))
            mine = _said(a, value)
            pair = (mine, who + theirs[4:]) if chance.random() < 0.5 else (who + theirs[4:], mine)
            yield "owner", *pair, "different"


def _said(saying: str, value: str) -> str:
    text = saying.replace("{}", value)
    text = f"User{text}" if text.startswith("'s") else f"User {text}"
    return re.sub(r"\ba (?=[aeiouAEIOU])", "an ", text)


def _renamed(old: str, new: str, chance: random.Random) -> tuple[str, str]:
    """Both of the same somebody else, whom the second sentence may call by the name alone."""
    who = chance.choice(OTHERS)
    short = who if chance.random() < 0.7 or len(who.split()) < 3 else who.split()[-1]
    return who + old[4:], short + new[4:]


def _quoted(old: str, new: str) -> tuple[str, str]:
    if not (old.startswith("User's ") and new.startswith("User's ")):
        return old, new
    return f'"My {old[7:]}"', f'"My {new[7:]}"'


def crossed(rows_: Sequence[dict[str, Any]], vectors: Vectors, chance: random.Random) -> Iterator[Pair]:
    """The nearest sentences of other families: as alike as two different facts get."""
    told = crossable(rows_)
    matrix = np.stack([vectors[text] for _, text in told])
    for place, (family, text) in enumerate(told):
        nearest = np.argsort(-(matrix @ matrix[place]))[:60]
        others = [told[other] for other in nearest if not _kindred(family, told[other][0])]
        for _, other in (others[0], chance.choice(others[1:12])):
            pair = (text, other) if chance.random() < 0.6 else _renamed(text, other, chance)
            yield Pair(*pair, "different", family, CROSS_WEIGHT)


def named(chance: random.Random) -> Iterator[Pair]:
    """Different things said of two names that no model has met, whose vectors are alike and say nothing of what they
    are told for; and what ``changes`` one name for another."""
    told = rows(NAMED_FILE)
    for one in told:
        for first, other in itertools.product(one["says"], chance.sample(told, NAMED_EACH)):
            old, new = first.replace("{}", _name(chance)), chance.choice(other["says"]).replace("{}", _name(chance))
            if one is not other:
                yield Pair(phrased(old), phrased(new), "different", f"named {one['about']}", NAMED_WEIGHT)
        for first, then in itertools.product(one["says"], one.get("changes", ())):
            old, new = first.replace("{}", _name(chance)), then.replace("{}", _name(chance))
            yield Pair(phrased(old), phrased(new), "contradiction", f"named {one['about']}", 2 * NAMED_WEIGHT)


def _name(chance: random.Random) -> str:
    """Of two to four syllables."""
    parts = ("".join(map(chance.choice, ("bcdfghjklmnprstvwz", "aeiou", ("", "n", "r")))) for _ in range(4))
    return "".join(itertools.islice(parts, chance.randint(2, 4))).capitalize()


def told_by_one(vectors: Vectors, chance: random.Random, *, held: bool) -> Iterator[Pair]:
    """What one person said over some days, each with two of the nearest among what was said before: nearly all of it is
    true side by side. Of each fifth person it is ``held``."""
    for number, told in enumerate(lived()):
        if (number % LIVED_HELD_EVERY == 0) is not held:
            continue
        for place, new in enumerate(told[1:], 1):
            cosines = np.stack([vectors[unquoted(old)] for old in told[:place]]) @ vectors[unquoted(new)]
            nearest = [at for at in np.argsort(-cosines)[:NEAREST] if cosines[at] < ALIKE]
            for at in chance.sample(nearest, min(2, len(nearest))):
                yield Pair(told[at], new, "different", f"lived {number}", LIVED_WEIGHT)


def lived() -> list[list[str]]:
    """Of each person what is kept, as it is kept, in the order in which it was said."""
    people: dict[str, list[str]] = {}
    for line in rows(TALKS_FILE):
        people.setdefault(line["person"], []).extend(phrased(part) for part in line["keep"])
    return [list(dict.fromkeys(told)) for told in people.values()]


def crossable(rows_: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row_["family"], _said(a, value)) for row_ in rows_ for a in row_["says"] for value in row_["values"][:3]]


def _kindred(one: str, other: str) -> bool:
    return one == other or any(one in kindred and other in kindred for kindred in KINDRED)


async def vectors_of(texts: Sequence[str], cache: Path | None) -> Vectors:
    known: Vectors = {}
    if cache is not None and cache.exists():  # noqa: ASYNC240
        with np.load(cache) as stored:
            known = dict(zip(stored["texts"].tolist(), stored["vectors"], strict=True))
    missing = [text for text in dict.fromkeys(texts) if text and text not in known]
    if missing:
        model = embedder()
        await model.open()
        known |= dict(zip(missing, await asyncio.gather(*map(model.embed, missing)), strict=True))
        await model.close()
        if cache is not None:
            np.savez(cache, texts=np.array(list(known)), vectors=np.stack(list(known.values())))
    return known


def four(pair: Pair, vectors: Vectors) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """The vectors that the judge is given for a pair."""
    one, other = (vectors.get(part, np.zeros(384, np.float32)) for part in parts(pair.old, pair.new))
    return vectors[unquoted(pair.old)], vectors[unquoted(pair.new)], one, other


def directions(found: Sequence[tuple[Matrix, ...]]) -> Matrix:
    """Shape (5, dimension, k): the principal directions, scaled so that each has about unit variance."""
    kinds = zip(*(dense(*each) for each in found), strict=True)
    made = []
    for kind in kinds:
        matrix = np.stack(kind)
        _, lengths, axes = np.linalg.svd(matrix - matrix.mean(axis=0), full_matrices=False)
        made.append((axes[: DIRECTIONS[SIGNATURE.split("/")[1]]] / (lengths[0] / np.sqrt(len(matrix)))).T)
    return np.stack(made).astype(np.float16).astype(np.float32)


def fit(points: Matrix, labels: npt.NDArray[np.int64], weights: Matrix, seed: int) -> tuple[Matrix, Matrix]:
    """One network: its hidden and its outer layer, biases in the last rows."""
    torch.manual_seed(seed)
    net = torch.nn.Sequential(
        torch.nn.Dropout(INPUT_DROPOUT), torch.nn.Linear(points.shape[1], UNITS), torch.nn.ReLU(),
        torch.nn.Dropout(DROPOUT), torch.nn.Linear(UNITS, len(LABELS)),
    )  # fmt: skip
    steps = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY)
    pace = torch.optim.lr_scheduler.CosineAnnealingLR(steps, EPOCHS)
    x, y, w = torch.tensor(points), torch.tensor(labels), torch.tensor(weights)
    for _ in range(EPOCHS):
        for some in torch.randperm(len(x)).split(BATCH):
            told = torch.nn.functional.cross_entropy(net(x[some]), y[some], reduction="none", label_smoothing=SMOOTHING)
            steps.zero_grad()
            ((told * w[some]).sum() / w[some].sum()).backward()
            steps.step()
        pace.step()
    layers = [torch.cat([net[at].weight.T, net[at].bias[None]]).detach().numpy() for at in (1, 4)]
    return layers[0], layers[1]


def train(pairs: Sequence[Pair], vectors: Vectors) -> PairModel:
    given = [four(pair, vectors) for pair in pairs]
    axes = directions(given)
    points = np.array([row(pair.old, pair.new, of, axes) for pair, of in zip(pairs, given, strict=True)], np.float32)
    centre, scale = points.mean(axis=0), points.std(axis=0) + np.float32(0.01)
    scaled = np.clip((points - centre) / scale, -FEATURE_MAX, FEATURE_MAX)
    labels = np.array([LABELS.index(pair.label) for pair in pairs])
    weights = np.array([pair.weight for pair in pairs], np.float32)
    networks = [fit(scaled, labels, weights, seed) for seed in range(NETWORKS)]
    hidden, out = (np.stack(layer) for layer in zip(*networks, strict=True))
    return PairModel(SIGNATURE, axes, centre, scale, hidden, out)


def verdict(model: PairModel, pair: Pair, vectors: Vectors) -> Judged:
    of = four(pair, vectors)
    known = closed(pair.old, pair.new, float(of[0] @ of[1]))
    return Judged(known) if known else decided(pair.old, pair.new, model.likelihoods(pair.old, pair.new, of))


def report(name: str, model: PairModel, pairs: Sequence[Pair], vectors: Vectors) -> str:
    found = [(pair.label, verdict(model, pair, vectors)) for pair in pairs]
    right = {label: sum(told.verdict == label for wanted, told in found if wanted == label) for label in LABELS}
    of = {label: sum(wanted == label for wanted, _ in found) for label in LABELS}
    lost = sum(wanted == "different" and told.verdict == "same" for wanted, told in found)
    swallowed = sum(wanted == "contradiction" and told.verdict == "same" for wanted, told in found)
    shares = ", ".join(f"{label} {right[label]}/{of[label]}" for label in LABELS if of[label])
    unsettled = sum(told.unsettled for _, told in found)
    total = 100 * sum(right.values()) / max(1, len(found))
    return (
        f"{name:16} right {total:5.1f}: {shares}; different as same {lost}, "
        f"contradiction as same {swallowed}, unsettled {unsettled}"
    )


def save(model: PairModel) -> None:
    small = {name: getattr(model, name).astype(np.float16) for name in ("directions", "hidden", "out")}
    exact = {name: getattr(model, name).astype(np.float32) for name in ("centre", "scale")}
    np.savez_compressed(learnt_for(WEIGHTS_FILE, SIGNATURE), signature=np.array(SIGNATURE), **small, **exact)


async def main() -> None:
    torch.set_num_threads(1)
    chance = random.Random(SEED)
    cache = Path(os.environ["VECTORS"]) if os.environ.get("VECTORS") else None
    own = rows(OWN_FILE)
    sayings = [each for each in own if "family" in each]
    kept = rows(TESTS / "integration" / "extraction" / "kept_pairs.jsonl")
    known = {
        "kept": [each for each in kept if each["kind"] != "held out"],
        "held out": [each for each in kept if each["kind"] == "held out"],
        "restated": rows(TESTS / "integration" / "extraction" / "restated_pairs.jsonl"),
        "sentences": rows(TESTS / "core" / "extraction" / "pairs_sentences.jsonl"),
    }
    pairs = [*direct([each for each in own if "old" in each], "own", chance), *families(sayings, chance)]
    for name in known:
        weight = KEPT_WEIGHT if name in ("kept", "held out") else 1.0
        pairs += [replace(pair, weight=pair.weight * weight) for pair in direct(known[name], name, chance)]
    pairs += beside(rows(BESIDE_FILE), chance)
    pairs += ending_pairs(endings(held=False))
    pairs += said_pairs(rows(SAID_FILE), held=False)
    pairs += [*changed_pairs(held=False), *named(chance)]
    told = [unquoted(text) for each in lived() for text in each]
    vectors = await vectors_of([*(text for _, text in crossable(sayings)), *told], cache)
    pairs += crossed(sayings, vectors, chance)
    pairs += told_by_one(vectors, chance, held=False)
    held = {name: [Pair(e["old"], e["new"], e.get("label", "different"), "") for e in known[name]] for name in known}
    held["changed"] = list(changed_pairs(held=True))
    held["told by one"] = list(told_by_one(vectors, chance, held=True))
    held["endings held"] = list(ending_pairs(endings(held=True)))
    held["said held"] = list(said_pairs(rows(SAID_FILE), held=True))
    folder = Path(os.environ["DATA"]) if os.environ.get("DATA") else None
    for file in sorted(folder.glob("pairs*.jsonl")) if folder else ():
        held[file.stem] = [Pair(each["old"], each["new"], each["label"], "") for each in rows(file)]
    every = [*pairs, *itertools.chain(*held.values())]
    texts = [text for pair in every for text in (unquoted(pair.old), unquoted(pair.new), *parts(pair.old, pair.new))]
    vectors |= await vectors_of(texts, cache)
    if os.environ.get("FOLDS"):
        groups = sorted({pair.group for pair in pairs})
        chance.shuffle(groups)
        fold = {group: place % 4 for place, group in enumerate(groups)}
        for number in range(4):
            model = train([pair for pair in pairs if fold[pair.group] != number], vectors)
            out = [pair for pair in pairs if fold[pair.group] == number and pair.weight in (1.0, KEPT_WEIGHT)]
            sys.stdout.write(report(f"fold {number}", model, out, vectors) + "\n")
    model = train(pairs, vectors)
    save(model)
    sys.stdout.write("\n".join(report(name, model, rows_, vectors) for name, rows_ in held.items()) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
