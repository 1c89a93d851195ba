"""Trains what tells the user's own voice from others' in a message, and writes semmem/extraction/voice/weights.npz, or
the file beside it for the embedding model that is named by ``MODEL``.

    DATA=folder [VECTORS=cache.npz] python -m training.train_voice [figures [one]]

Messages are put together: ways of pasting (voice_ways.jsonl) are filled with documents (voice_docs.jsonl), and those
and the user's own messages (voice_requests.jsonl) with the same statements (voice_statements.jsonl), so that only what
stands around a statement tells whose it is. Beside them stand whole messages, in the user's own voice
(voice_messages.jsonl), with what they say of themselves marked (talks.jsonl) and with what others say in them marked
(voice_marked.jsonl, voice_unmarked.jsonl), the marked ones that other trainings use, and of ``folder`` CLINC150 and
BFCL's turns. Some messages, and some units of others, are learnt without their vectors. With ``figures`` each fifth of
the ways and requests is judged by a model that has seen none of them, and nothing is written; with ``figures one`` the
first fifth alone.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch import nn

from semmem.extraction.voice import hearing
from semmem.extraction.voice.hearing import BUCKETS, Unit, shapes, units, words_of
from semmem.ports.embedder import learnt_for
from semmem.retrieval.decide import scenes
from training.train_decision import Floats, Vectors

HERE = Path(__file__).parent
SEED = 11
FOLDS = 5
OWN, FOREIGN = 0, 1
NOBODY = -1
"""A unit that nothing is learnt of: what leads to somebody else's text is the user's own, and yet says nothing."""
FILLED_EACH, FILLED_OTHER = 4, 4
"""So many messages are made of each way of pasting in English, and in another language."""
REQUESTED_EACH = 3
ALONE_SHARE = 0.25
"""Of documents that are nothing but the statement."""
STRANGE_SHARE = 0.1
"""Of documents in another language than the request."""
BEFORE_SHARE = 0.2
"""Of pasted messages that begin with something of the user's own."""
FRAMES = (
    "fiction",
    "roleplay",
    "translation",
    "textwork",
    "paste",
    "lyrics",
    "poem",
    "transcript",
    "chatlog",
    "test_text",
)
"""Kinds of messages that begin with what makes the words behind it somebody else's."""
CLINC_EVERY, NOTED_MAX, ASKED_WEIGHT = 15, 900, 0.5
NATURAL_EACH, MARKED_EACH = 2, 3
"""So often a whole message counts beside those that are put together."""
TOGETHER_EACH = 3
OPENINGS = {
    "en": ("Hi.", "Hi again.", "Hello!", "Thanks!", "Ok.", "Good morning.", "Quick question.", "So.", "Me again."),
    "de": ("Hallo.", "Hi!", "Danke!", "Guten Morgen.", "Also."),
    "fr": ("Bonjour.", "Salut !", "Merci !", "Alors."),
    "es": ("Hola.", "¡Gracias!", "Buenos días.", "Bueno."),
    "it": ("Ciao.", "Grazie!"),
    "pt": ("Olá.", "Obrigado!"),
    "nl": ("Hoi.", "Bedankt!"),
    "pl": ("Cześć.", "Dzięki!"),
    "ru": ("Привет.", "Спасибо!"),
    "tr": ("Merhaba.", "Teşekkürler!"),
    "zh": ("你好。", "谢谢！"),
    "ja": ("こんにちは。", "ありがとう！"),
    "ko": ("안녕.", "고마워!"),
}
JOINTS = {
    "en": ("And ", "Also, ", "Oh and ", "But ", "PS: ", "- ", "Besides, "),
    "de": ("Und ", "Außerdem: ", "Aber ", "- "),
    "fr": ("Et ", "Mais ", "Aussi, ", "- "),
    "es": ("Y ", "Además, ", "Pero ", "- "),
}
EPOCHS, BATCH, RATE = 8, 48, 3e-3
WORD_DROPOUT = 0.6
"""With less, messages are known by heart: of those in training none was misjudged, of others a fifth."""
VECTOR_DROPOUT = 0.3
BARE_MESSAGES, BARE_UNITS = 0.25, 0.1
"""So many messages, and units of the others, are learnt without their vectors."""

Segment = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Example:
    """``group`` is held out together. ``kind``: own or pasted."""

    text: str
    labels: tuple[int, ...]
    group: str
    kind: str
    language: str
    weight: float = 1.0


def _lines(name: str) -> Iterator[dict[str, Any]]:
    with (HERE / f"{name}.jsonl").open(encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def example(segments: Sequence[Segment], group: str, kind: str, language: str, weight: float = 1.0) -> Example:
    text = "".join(part for part, _ in segments)
    spans, start = [], 0
    for part, label in segments:
        spans.append((start, start + len(part), label))
        start += len(part)
    return Example(text, tuple(_label(unit, spans) for unit in units(text)), group, kind, language, weight)


def _label(unit: Unit, spans: Sequence[tuple[int, int, int]]) -> int:
    shares = dict.fromkeys((OWN, FOREIGN, NOBODY), 0)
    for start, end, label in spans:
        shares[label] += max(0, min(unit.end, end) - max(unit.start, start))
    if shares[FOREIGN] and shares[FOREIGN] * 3 >= unit.end - unit.start:
        return FOREIGN
    return OWN if shares[OWN] * 2 >= unit.end - unit.start else NOBODY


class Fillings:
    """Statements and documents by language, each chosen at random."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.statements: dict[str, list[str]] = {}
        for line in _lines("voice_statements"):
            self.statements.setdefault(line.get("lang", "en"), []).append(line["text"].strip())
        for line in _lines("statements"):
            if line["keep"]:
                self.statements["en"].append(line["text"])
        self.docs: dict[str, list[dict[str, Any]]] = {}
        for line in _lines("voice_docs"):
            self.docs.setdefault(line.get("lang", "en"), []).append(line)

    def statement(self, language: str) -> str:
        text = self.chance.choice(self.statements[language])
        return text if text[-1] in ".!?。！" or self.chance.random() < 0.2 else f"{text}."

    def doc(self, language: str) -> str:
        if self.chance.random() < STRANGE_SHARE:
            language = self.chance.choice(list(self.docs))
        if self.chance.random() < ALONE_SHARE:
            return " ".join(self.statement(language) for _ in range(self.chance.choice((1, 1, 1, 2, 3))))
        return self.filled(self.chance.choice(self.docs[language])["doc"], language)

    def filled(self, text: str, language: str) -> str:
        return re.sub(r"\{payload\d?\}", lambda _: self.statement(language), text)


def _template(line: dict[str, Any], fill: Fillings, around: int, language: str) -> list[Segment]:
    """The text of a template, whose own words are ``around``, with its slots filled."""
    parts = re.split(r"\{(own|doc|payload)\d?\}", line.get("template", line.get("text")))
    found: list[Segment] = []
    for place, part in enumerate(parts):
        if place % 2 == 0:
            found.append((part, around))
        elif part == "doc":
            found.append((fill.doc(language), FOREIGN))
        else:
            found.append((fill.statement(language), OWN))
    return found


def examples() -> list[Example]:
    chance = random.Random(SEED)
    return [*_pasted(Fillings(chance)), *_natural(), *_own(Fillings(chance)), *_marked(chance)]


def _pasted(fill: Fillings) -> Iterator[Example]:
    for line in _lines("voice_ways"):
        language = line.get("lang", "en")
        for _ in range(FILLED_EACH if language == "en" else FILLED_OTHER):
            parts = [*_before(fill, language), *_template(line, fill, NOBODY, language)]
            yield example(parts, _group(line, f"way {line['way'].lower()}"), "pasted", language)
    for number, line in enumerate(_lines("frames")):
        if line["kind"] == "opener":
            for place in range(8):
                parts = [(line["text"], NOBODY), (" " if place % 2 else "\n", NOBODY), (fill.doc("en"), FOREIGN)]
                yield example(parts, f"opener {number}", "pasted", "en")


def _before(fill: Fillings, language: str) -> list[Segment]:
    """Something of the user's own in front of some messages."""
    if fill.chance.random() >= BEFORE_SHARE:
        return []
    return [(fill.statement(language), OWN), (fill.chance.choice((" ", "\n", "\n\n", "\n\n")), NOBODY)]


def _natural() -> Iterator[Example]:
    """Whole messages in which what others say is marked."""
    for number, line in enumerate([*_lines("voice_marked"), *_lines("voice_unmarked")]):
        parts = _split(line["text"], [*line["foreign"], *line["own"]])
        labels = {**dict.fromkeys(line["own"], OWN), **dict.fromkeys(line["foreign"], FOREIGN)}
        made = example([(part, labels.get(part, NOBODY)) for part in parts], f"marked {number}", "pasted", line["lang"])
        yield from [made] * MARKED_EACH


def _split(text: str, marked: Sequence[str]) -> list[str]:
    """What is marked, and what stands between; of two that begin alike the longer one."""
    return re.split("(" + "|".join(map(re.escape, sorted(marked, key=len, reverse=True))) + ")", text)


def _group(line: dict[str, Any], otherwise: str) -> str:
    """A request and a way of pasting that share their words are held out together."""
    return f"pair {line['pair']}" if "pair" in line else otherwise


def _own(fill: Fillings) -> Iterator[Example]:
    for number, line in enumerate(_lines("voice_requests")):
        language = line.get("lang", "en")
        for _ in range(REQUESTED_EACH if "{" in line["text"] else 2):
            yield example(_template(line, fill, OWN, language), _group(line, f"request {number}"), "own", language)
    for number, line in enumerate(_lines("voice_messages")):
        yield from [example([(line["text"], OWN)], f"message {number}", "own", line["lang"])] * NATURAL_EACH
    for line in _lines("talks"):
        if line["keep"]:
            parts = _split(line["text"], line["keep"])
            told = [(part, OWN if part in line["keep"] else NOBODY) for part in parts]
            yield example(told, f"talk {line['person']}", "own", line["lang"])
    asked = _asked()
    for language, statements in fill.statements.items():
        for number, statement in enumerate(statements):
            yield example([(statement, OWN)], f"statement {number}", "own", language)
            for _ in range(TOGETHER_EACH):
                yield example(
                    [(_together(fill, language, statement, asked), OWN)], f"statement {number}", "own", language
                )


def _together(fill: Fillings, language: str, statement: str, asked: Sequence[str]) -> str:
    """The statement among one or two others, with a greeting, a joint or a question about something else."""
    chance = fill.chance
    parts = [statement, *(fill.statement(language) for _ in range(chance.choice((0, 1, 1, 2))))]
    chance.shuffle(parts)
    joints = JOINTS.get(language, ("",))
    parts = [parts[0], *(f"{chance.choice(joints)}{part}" if chance.random() < 0.5 else part for part in parts[1:])]
    if chance.random() < 0.3:
        parts.insert(0, chance.choice(OPENINGS.get(language, OPENINGS["en"])))
    if language == "en" and chance.random() < 0.4:
        parts.insert(chance.choice((0, len(parts))), chance.choice(asked))
    return chance.choice((" ", " ", " ", "\n", "\n\n")).join(parts)


def _asked() -> list[str]:
    """Questions that people ask an assistant."""
    files = ("sentences", "sentences_more")
    return [line["text"] for name in files for line in _read(Path(scenes.__file__).with_name(f"{name}.jsonl"))]


def _marked(chance: random.Random) -> Iterator[Example]:
    """Messages in which what is to be kept is marked, and questions."""
    for name in ("messages", "statements", "frames", "european", "eastern"):
        for number, line in enumerate(_lines(name)):
            kind = line.get("kind", "").split("-")[-1]
            language = line["kind"].split("-")[0] if name in ("european", "eastern") else "en"
            text, group = line["text"], f"{name} {number}"
            if not line["keep"] and kind in FRAMES:
                yield example(_behind_first(text), group, "pasted", language)
            elif line["keep"] and kind in FRAMES:
                marked = _split(text, line["keep"])
                yield example(
                    [(part, OWN if part in line["keep"] else NOBODY) for part in marked], group, "own", language
                )
            elif line["keep"]:
                yield from [example([(text, OWN)], group, "own", language)] * NATURAL_EACH
            elif kind in ("question", "none", "task", "request", "command", "smalltalk", "greeting"):
                yield example([(text, OWN)], group, "own", language)
    for number, text in enumerate([*chance.sample(_asked(), 500), *_of_folder(Path(os.environ["DATA"]))]):
        yield example([(text, OWN)], f"asked {number}", "own", "en", ASKED_WEIGHT)
    for number, text in enumerate(_noted(chance)):
        yield example([(text, OWN)], f"noted {number}", "own", "en", ASKED_WEIGHT)


def _of_folder(folder: Path) -> Iterator[str]:
    """What people ask of an assistant, and tell it at length, whole and in part."""
    for number, line in enumerate(_read(folder / "signals/clinc150.jsonl")):
        if number % CLINC_EVERY == 0:
            yield line["text"]
    for line in _read(folder / "retrieval/bfcl_memory_turns.jsonl"):
        text = line["text"]
        yield text
        sentences = re.split(r"(?<=[.!?])\s+", text)
        yield from (" ".join(sentences[at : at + 3]) for at in range(0, len(sentences), 3))


def _noted(chance: random.Random) -> list[str]:
    """Memories as an application tells them, in the third person."""
    files = [Path(scenes.__file__).with_name(f"{letter}.jsonl") for letter in "abcdefg"]
    told = [memory["text"] for file in files for line in _read(file) for memory in line["memories"]]
    return chance.sample(told, min(NOTED_MAX, len(told)))


def _read(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def _behind_first(text: str) -> list[Segment]:
    first = units(text)[0].end
    return [(text[:first], NOBODY), (text[first:], FOREIGN)]


class Network(nn.Module):
    """As ``hearing.Weights`` computes it."""

    def __init__(self, shape: int, width: int) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(BUCKETS, hearing.WORD_SIZE, mode="sum")
        nn.init.normal_(self.words.weight, std=0.1)
        self.meant = nn.Linear(width, hearing.VECTOR_SIZE)
        self.inner = nn.Linear(hearing.WORD_SIZE + shape + hearing.VECTOR_SIZE, hearing.INNER_SIZE)
        self.gru = nn.GRU(hearing.INNER_SIZE, hearing.STATE_SIZE, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * hearing.STATE_SIZE + hearing.INNER_SIZE, 1)
        self.drop, self.drop_vector = nn.Dropout(0.3), nn.Dropout(VECTOR_DROPOUT)

    def forward(self, batch: Batch) -> torch.Tensor:
        found = self.words(batch.ids, batch.offsets) * batch.scale[:, None]
        meant = torch.tanh(self.meant(self.drop_vector(batch.vectors)))
        inner = torch.tanh(self.inner(torch.cat([self.drop(found), batch.shapes, self.drop(meant)], dim=1)))
        inner = self.drop(inner)
        padded = nn.utils.rnn.pad_sequence(list(inner.split(batch.lengths)), batch_first=True)
        packed = nn.utils.rnn.pack_padded_sequence(padded, batch.lengths, batch_first=True, enforce_sorted=False)
        states, _ = nn.utils.rnn.pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        flat = torch.cat([states[i, :n] for i, n in enumerate(batch.lengths)])
        return self.out(torch.cat([self.drop(flat), inner], dim=1))[:, 0]


@dataclass(frozen=True, slots=True)
class Seen:
    """``vectors``: the rows of all vectors, one a unit."""

    words: list[list[int]]
    shapes: list[list[float]]
    vectors: list[int]


@dataclass(frozen=True, slots=True)
class Batch:
    ids: torch.Tensor
    offsets: torch.Tensor
    scale: torch.Tensor
    shapes: torch.Tensor
    vectors: torch.Tensor
    lengths: list[int]


def seen_of(known: Sequence[Example], embed: Vectors) -> tuple[list[Seen], Floats]:
    """What is seen of each message, and the vectors of all units."""
    found = [units(one.text) for one in known]
    said = [[one.text[unit.start : unit.end].strip() for unit in some] for one, some in zip(known, found, strict=True)]
    texts = sorted({text for some in said for text in some})
    places = {text: place for place, text in enumerate(texts)}
    seen = [
        Seen([*map(words_of, parts)], shapes(one.text, some), [places[text] for text in parts])
        for one, some, parts in zip(known, found, said, strict=True)
    ]
    return seen, hearing.VECTOR_SCALE * embed(texts).astype(np.float32)


def _batch(seen: Sequence[Seen], vectors: Floats, chance: random.Random | None) -> Batch:
    rows = [row for one in seen for row in one.words]
    kept = [[place for place in row if chance is None or chance.random() >= WORD_DROPOUT] for row in rows]
    counts = [len(row) for row in kept]
    offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
    ids = np.array([place for row in kept for place in row], dtype=np.int64)
    scale = np.array([max(count, hearing.WORDS_MIN) ** -0.5 for count in counts], dtype=np.float32)
    given = vectors[[place for one in seen for place in one.vectors]]
    if chance is not None:
        bare = [chance.random() < BARE_MESSAGES for _ in seen]
        given[[bare[n] or chance.random() < BARE_UNITS for n, one in enumerate(seen) for _ in one.words]] = 0
    return Batch(
        torch.from_numpy(ids),
        torch.from_numpy(offsets),
        torch.from_numpy(scale),
        torch.from_numpy(np.array([row for one in seen for row in one.shapes], dtype=np.float32)),
        torch.from_numpy(given),
        [len(one.words) for one in seen],
    )


def fit(known: Sequence[Example], seen: Sequence[Seen], vectors: Floats) -> Network:
    torch.manual_seed(SEED)
    chance = random.Random(SEED)
    network = Network(len(seen[0].shapes[0]), vectors.shape[1])
    steps = EPOCHS * (len(known) // BATCH + 1)
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)
    order = list(range(len(known)))
    network.train()
    for _ in range(EPOCHS):
        chance.shuffle(order)
        order.sort(key=lambda index: len(seen[index].words) // 3 + chance.random() * 8)
        batches = [order[at : at + BATCH] for at in range(0, len(order), BATCH)]
        chance.shuffle(batches)
        for batch in batches:
            labels = torch.tensor([label for index in batch for label in known[index].labels], dtype=torch.float32)
            weight = torch.tensor(
                [known[i].weight / max(1, len(known[i].labels)) ** 0.5 for i in batch for _ in known[i].labels]
            )
            mask = (labels >= 0).float() * weight
            odds = network(_batch([seen[index] for index in batch], vectors, chance))
            loss = (
                nn.functional.binary_cross_entropy_with_logits(odds, labels.clamp(min=0), reduction="none") * mask
            ).sum() / mask.sum().clamp(min=1e-6)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
    return network.eval()


@torch.no_grad()
def odds_of(network: Network, seen: Sequence[Seen], vectors: Floats) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for at in range(0, len(seen), 64):
        some = seen[at : at + 64]
        flat = network(_batch(some, vectors, None)).numpy()
        found += np.split(flat, np.cumsum([len(one.words) for one in some])[:-1])
    return found


def fold_of(group: str) -> int:
    return crc32(group.encode()) % FOLDS


def report(known: Sequence[Example], odds: Sequence[np.ndarray]) -> None:
    """By language and cut: the share of pasted messages of which a foreign unit, or every unit, is below the cut, and
    of own ones of which a unit is above it."""
    for language in ("all", *sorted({one.language for one in known})):
        rows = [(one, o) for one, o in zip(known, odds, strict=True) if language in ("all", one.language)]
        pasted = [(np.array(one.labels), o) for one, o in rows if one.kind == "pasted"]
        own = [(np.array(one.labels), o) for one, o in rows if one.kind == "own"]
        line = f"{language:>4} {len(pasted):6d} {len(own):6d}"
        for cut in (-3.0, -2.0, -1.0, 0.0):
            taken = np.mean([bool((o[labels == FOREIGN] < cut).any()) for labels, o in pasted]) if pasted else 0
            plain = np.mean([bool((o < cut).all()) for _, o in pasted]) if pasted else 0
            left = np.mean([bool((o[labels == OWN] >= cut).any()) for labels, o in own]) if own else 0
            line += f"   {cut:+.0f}: {100 * taken:5.1f} {100 * plain:5.1f} {100 * left:5.1f}"
        tell(line)


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(only_figures: bool) -> None:
    torch.set_num_threads(1)
    embed = Vectors(Path(os.environ["VECTORS"]) if os.environ.get("VECTORS") else None)
    known = [one for one in examples() if one.labels]
    seen, vectors = seen_of(known, embed)
    tell(f"{len(known)} messages")
    if only_figures:
        bare = np.zeros_like(vectors)
        odds: dict[str, dict[int, np.ndarray]] = {"with vectors": {}, "by words alone": {}}
        folds = (0,) if "one" in sys.argv else range(FOLDS)
        for fold in folds:
            rest = [i for i, one in enumerate(known) if fold_of(one.group) != fold]
            mine = [i for i, one in enumerate(known) if fold_of(one.group) == fold]
            network = fit([known[i] for i in rest], [seen[i] for i in rest], vectors)
            for name, given in zip(odds, (vectors, bare), strict=True):
                odds[name] |= zip(mine, odds_of(network, [seen[i] for i in mine], given), strict=True)
        for name, judged in odds.items():
            tell(name)
            report([known[i] for i in judged], list(judged.values()))
        return
    network = fit(known, seen, vectors)
    state = {name: value.numpy() for name, value in network.state_dict().items()}
    hearing.save(learnt_for(hearing.WEIGHTS_FILE, embed.signature), state)


if __name__ == "__main__":
    main("figures" in sys.argv)
