"""Trains what reads a request and a memory together, and writes semmem/retrieval/decide/reader.npz.

    [VECTORS=cache.npz] python -m training.train_reader [--curve] [--held] [--out FILE]

It learns from people (training/judged): memories as semmem keeps them, requests, and of each memory before each request
whether it is needed, may help, or is out of place; from people who talked to an assistant for five days and were judged
by what rules had then kept of them (training/as_kept.jsonl), clippings good and bad; and from our own scenes, which
count less. Each person is in one split: a fifth of the first, and those of the second that are marked ``held``
(``--held`` measures on both, for the one look before a release), are never learnt from. The memories stand alone and
among other people's, with pieces of other requests among them, since a store holds such.

One thread, seeded: the same data give the same numbers. ``--curve`` says what AUC comes of how many people. Needs
torch, which sentence-transformers brings along.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from torch import nn

from semmem.ports.embedder import learnt_for
from semmem.retrieval.decide import features, request_words
from semmem.retrieval.decide.fitting import Embed, index_of
from semmem.retrieval.decide.scenes import material
from semmem.retrieval.decide.trained import EVIDENCE, SHIPPED_READER, Floats, Reader
from semmem.text.quoting import unquoted
from training.train_decision import Vectors

JUDGED = Path(__file__).with_name("judged")
FRAGMENTS_FILE = Path(__file__).with_name("fragments.jsonl")
AS_KEPT_FILE = Path(__file__).with_name("as_kept.jsonl")
NEVER, NO, MAY, NEEDED = range(4)
TARGETS = torch.tensor([0.0, 0.0, 0.5, 1.0])
WEIGHTS = torch.tensor([2.0, 1.0, 0.5, 1.0])
"""Of a verdict: to be shown what is out of place is worse than a line too many."""
SCENES_WEIGHT, CROWDED_WEIGHT, AS_KEPT_WEIGHT = 0.3, 0.5, 2.0
SHORT_WORDS, SHORT_WEIGHT = 4, 2.0
"""What agents search with: "birthplace", "user's car"."""
CROWD, CROWD_NEAREST, CROWD_ANY, PIECES, FRAGMENTS = 60, 12, 6, 3, 3
"""Of a person's store: so many memories of other people, of which the nearest and some others are learnt from; so many
pieces of other people's requests, and of what is said in passing."""
WITHIN_SHARE = 0.3
"""So many memories in the user's own words stand within a request, as passages do."""
QUOTED_TENTHS = 8
"""Of ten memories in the user's own words so many stand in quotation marks, as rules keep them."""
NEEDS, HIDDEN, EPOCHS, BATCH, RATE, DECAY = 64, 64, 8, 512, 1e-3, 1e-2
DROPPED, DROPPED_HIDDEN, SCALE = 0.5, 0.3, 3.0
CUT_AND_SHARE = {"all-MiniLM-L6-v2": (-2.5, 0.5), "multilingual-e5-small": (-2.1, 1.0)}
"""Of the weighted mean of the reader's log-odds and the regression's, by the embedding model: chosen on the people of
training/as_kept.jsonl that are held aside, with sums over the strangers of quality/ in view too."""
SEED = 1


@dataclass(frozen=True)
class Person:
    """``memories``: texts; ``loose`` tells of each that it could be anybody's. ``requests``: a text, and a verdict on
    each memory."""

    name: str
    language: str
    memories: list[str]
    loose: list[bool]
    requests: list[tuple[str, list[int]]]

    @property
    def texts(self) -> Iterator[str]:
        yield from self.memories
        yield from (text for text, _ in self.requests)


@dataclass(frozen=True)
class Rows:
    """Pairs of a request and a memory: places among ``vectors`` (n, d), numbers beside them (m, E + F), verdicts (m,)
    and weights (m,). ``english`` (m,): of whose language they are."""

    vectors: torch.Tensor
    requests: torch.Tensor
    memories: torch.Tensor
    beside: torch.Tensor
    verdicts: torch.Tensor
    weights: torch.Tensor
    english: torch.Tensor


class Network(nn.Module):  # type: ignore[misc]
    """What ``Reader.logits`` computes, to be learnt."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.request, self.memory = (nn.Linear(dimension, 2 * NEEDS) for _ in range(2))
        self.hidden = nn.Linear(4 * NEEDS + len(EVIDENCE) + request_words.FLAGS, HIDDEN)
        self.out = nn.Linear(HIDDEN, 1)
        self.drop, self.drop_hidden = nn.Dropout(DROPPED), nn.Dropout(DROPPED_HIDDEN)

    def forward(self, requests: torch.Tensor, memories: torch.Tensor, beside: torch.Tensor) -> torch.Tensor:
        asked = SCALE * self.request(self.drop(requests))
        offered = SCALE * self.memory(self.drop(memories))
        a, b = torch.tanh(asked[:, :NEEDS]), torch.tanh(offered[:, :NEEDS])
        products = a * b, torch.relu(asked[:, NEEDS:]) * torch.relu(offered[:, NEEDS:])
        hidden = torch.relu(self.hidden(torch.cat([*products, a, b, beside], 1)))
        found: torch.Tensor = self.out(self.drop_hidden(hidden))[:, 0]
        return found

    def reader(self, signature: str) -> Reader:
        def weights(layer: nn.Linear, scale: float = 1.0) -> Floats:
            both = np.concatenate([layer.weight.detach().numpy(), layer.bias.detach().numpy()[:, None]], axis=1)
            return (scale * both).astype(np.float32)

        return Reader(
            signature,
            weights(self.request, SCALE),
            weights(self.memory, SCALE),
            weights(self.hidden),
            weights(self.out)[0],
            *CUT_AND_SHARE[signature.split("/")[1]],
        )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="train_reader", description=__doc__)
    parser.add_argument("--curve", action="store_true")
    parser.add_argument("--held", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    file = os.environ.get("VECTORS")
    embed = Vectors(Path(file) if file else None)
    learnt, held = split(judged())
    learnt, others = _mixed(learnt), _scenes()
    kept, kept_held = as_kept(held=False), as_kept(held=True)
    embed(
        [unquoted(text) for person in (*learnt, *held, *kept, *kept_held, *others) for text in person.texts]
    )  # all at once, which is faster
    if arguments.curve:
        for share in (0.125, 0.25, 0.5):
            some = learnt[: int(share * len(learnt))]
            sys.stdout.write(f"{len(some)} people: {figures(trained(some, kept, others, embed), held, embed)}\n")
    network = trained(learnt, kept, others, embed)
    if arguments.held or arguments.curve:
        sys.stdout.write(f"{len(learnt)} people: {figures(network, held, embed)}\n")
        sys.stdout.write(f"as kept, {len(kept)} people: {figures(network, kept_held, embed)}\n")
    network.reader(embed.signature).save(arguments.out or learnt_for(SHIPPED_READER, embed.signature))
    return 0


def judged() -> list[Person]:
    """In an order that has nothing to do with who wrote of them."""
    rows = [json.loads(line) for file in sorted(JUDGED.glob("*.jsonl")) for line in file.read_text().splitlines()]
    return sorted((_person(row) for row in rows), key=lambda person: _drawn(person.name))


def split(people: Iterable[Person]) -> tuple[list[Person], list[Person]]:
    """Those to learn from, and a fifth that is held aside."""
    people = list(people)
    return [each for each in people if _drawn(each.name) % 10 >= 2], [
        each for each in people if _drawn(each.name) % 10 < 2
    ]


def as_kept(*, held: bool) -> list[Person]:
    """People with the memories that rules kept of what they said."""
    read = map(json.loads, AS_KEPT_FILE.read_text(encoding="utf-8").splitlines())
    return [
        Person(
            row["id"],
            row["language"],
            [memory["text"] for memory in row["memories"]],
            [not memory["standing"] for memory in row["memories"]],
            [(ask["q"], [_verdict(ask, memory["id"]) for memory in row["memories"]]) for ask in row["asks"]],
        )
        for row in read
        if row["held"] is held
    ]


def trained(people: Sequence[Person], kept: Sequence[Person], scenes: Sequence[Person], embed: Embed) -> Network:
    crowd = [text for person in people for text, loose in zip(person.memories, person.loose, strict=True) if loose]
    every = [
        *rows(people, embed),
        *rows(people, embed, others=crowd, weight=CROWDED_WEIGHT),
        *rows(kept, embed, weight=AS_KEPT_WEIGHT),
        *rows(kept, embed, others=crowd, weight=AS_KEPT_WEIGHT * CROWDED_WEIGHT),
        *rows(scenes, embed, weight=SCENES_WEIGHT),
    ]
    return _fitted(_joined(every, embed))


def _fitted(data: Rows) -> Network:
    torch.manual_seed(SEED)
    network = Network(data.vectors.shape[1])
    optimiser = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
    steps = -(-len(data.verdicts) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, EPOCHS * steps)
    for _ in range(EPOCHS):
        network.train()
        order = torch.randperm(len(data.verdicts))
        for at in order.split(BATCH):
            found = network(data.vectors[data.requests[at]], data.vectors[data.memories[at]], data.beside[at])
            verdicts = data.verdicts[at]
            losses = nn.functional.binary_cross_entropy_with_logits(found, TARGETS[verdicts], reduction="none")
            loss = (losses * WEIGHTS[verdicts] * data.weights[at]).mean()
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
    network.eval()
    return network


def figures(network: Network, people: Sequence[Person], embed: Embed) -> str:
    """AUC of needed memories before those that are not, of all, of English people and of the others."""
    data = _joined(rows(people, embed), embed)
    with torch.no_grad():
        found = network(data.vectors[data.requests], data.vectors[data.memories], data.beside)
    told = data.verdicts != MAY
    shares = (auc(found[of], data.verdicts[of] == NEEDED) for of in (told, told & data.english, told & ~data.english))
    return "AUC " + ", ".join(f"{share:.4f} {of}" for share, of in zip(shares, ("all", "en", "others"), strict=True))


def auc(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """How often what is wanted stands before what is not."""
    order = found.argsort(stable=True)
    ranks = torch.empty(len(found), dtype=torch.float64)
    ranks[order] = torch.arange(1, len(found) + 1, dtype=torch.float64)
    count, rest = int(wanted.sum()), int((~wanted).sum())
    return float((ranks[wanted].sum() - count * (count + 1) / 2) / max(count * rest, 1))


@dataclass(frozen=True)
class Row:
    request: str
    memory: str
    beside: Floats
    verdict: int
    weight: float
    is_english: bool


def rows(people: Iterable[Person], embed: Embed, *, others: Sequence[str] = (), weight: float = 1.0) -> Iterator[Row]:
    """Every request before every memory of its person, and, with ``others``, before some of theirs."""
    chance = random.Random(SEED)
    for person in people:
        crowd = chance.sample(others, CROWD) if others else []
        own, texts = len(person.memories), [*person.memories, *crowd]
        held = index_of(texts, embed)
        for text, verdicts in person.requests:
            scores = held.scores(text, embed([text])[0])
            evidence = features.evidence(scores).each
            flags = np.array(request_words.flags(text), dtype=np.float32)
            counts = weight * (SHORT_WEIGHT if len(text.split()) <= SHORT_WORDS else 1.0)
            near = [place for place in np.argsort(-scores.cosine)[:CROWD_NEAREST].tolist() if place >= own]
            beyond = {*near, *chance.sample(range(own, len(texts)), CROWD_ANY)} if crowd else set()
            for place in (*range(own), *sorted(beyond)):
                verdict = verdicts[place] if place < own else NO
                beside = np.concatenate([evidence[place], flags])
                yield Row(text, texts[place], beside, verdict, counts, person.language == "en")


def _joined(every: Iterable[Row], embed: Embed) -> Rows:
    every = list(every)
    places: dict[str, int] = {}
    requests = [places.setdefault(row.request, len(places)) for row in every]
    memories = [places.setdefault(row.memory, len(places)) for row in every]
    return Rows(
        torch.from_numpy(embed([unquoted(text) for text in places])),
        torch.tensor(requests),
        torch.tensor(memories),
        torch.from_numpy(np.stack([row.beside for row in every]).astype(np.float32)),
        torch.tensor([row.verdict for row in every]),
        torch.tensor([row.weight for row in every]),
        torch.tensor([row.is_english for row in every]),
    )


def _person(row: dict[str, object]) -> Person:
    memories: list[dict[str, str]] = row["memories"]  # type: ignore[assignment]
    asks: list[dict[str, object]] = row["asks"]  # type: ignore[assignment]
    return Person(
        str(row["id"]),
        str(row["language"]),
        [_kept(memory["text"]) for memory in memories],
        [memory["kind"] not in ("standing", "style") for memory in memories],
        [(str(ask["q"]), [_verdict(ask, memory["id"]) for memory in memories]) for ask in asks],
    )


def _verdict(ask: dict[str, object], memory_id: str) -> int:
    lists = {NEEDED: ask["needed"], MAY: ask["may"], NEVER: ask["never"]}
    return next((verdict for verdict, ids in lists.items() if memory_id in ids), NO)  # type: ignore[operator]


def _scenes() -> list[Person]:
    found = []
    for number, scene in enumerate(material().scenes):
        texts = [memory["text"] for memory in scene["memories"]]
        requests = [
            (request["text"][:2000], [NEEDED if place in request["wanted"] else NO for place in range(len(texts))])
            for request in scene["requests"]
        ]
        found.append(Person(f"scene {number}", "en", texts, [True] * len(texts), requests))
    return found


def _mixed(people: Sequence[Person]) -> list[Person]:
    """As memories are that nobody wrote for training: some of them within the request that they were told in, and
    among them pieces of requests and answers, which nobody needs."""
    chance = random.Random(SEED)
    pieces = [text for person in people for text, _ in person.requests if 6 < len(text) < 90]
    fragments = _fragments()
    return [
        _with_pieces(
            replace(person, memories=[_told_within(text, pieces, chance) for text in person.memories]),
            [
                *chance.sample(pieces, PIECES),
                *chance.sample(fragments.get(person.language, fragments["en"]), FRAGMENTS),
            ],
        )
        for person in people
    ]


def _fragments() -> dict[str, list[str]]:
    """What is said in passing, by language: "a bit shorter", "here is a draft"."""
    found: dict[str, list[str]] = {}
    for line in FRAGMENTS_FILE.read_text().splitlines():
        row = json.loads(line)
        found.setdefault(row["language"], []).append(row["text"])
    return found


def _told_within(memory: str, pieces: Sequence[str], chance: random.Random) -> str:
    """Some memories in the user's own words, with what they asked for before it or behind it."""
    if not memory.startswith('"') or chance.random() >= WITHIN_SHARE:
        return memory
    both = [memory[1:-1], chance.choice(pieces)]
    chance.shuffle(both)
    return f'"{both[0].rstrip(".")}. {both[1]}"'


def _with_pieces(person: Person, pieces: Sequence[str]) -> Person:
    return replace(
        person,
        memories=[*person.memories, *(f'"{piece}"' for piece in pieces)],
        loose=[*person.loose, *(True for _ in pieces)],
        requests=[(text, [*verdicts, *(NO for _ in pieces)]) for text, verdicts in person.requests],
    )


def _kept(text: str) -> str:
    """As rules keep it: most often in quotation marks, where it is in the user's own words."""
    text = text.strip()
    is_told = text.split(" ", 1)[0] in ("User", "The", "Der", "Die", "El", "La", "O", "A", "Nutzer", "Nutzerin")
    return text if is_told or _drawn(text) % 10 >= QUOTED_TENTHS else f'"{text}"'


def _drawn(text: str) -> int:
    """A number that looks drawn by lot, and is always the same."""
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big")


if __name__ == "__main__":
    sys.exit(main())
