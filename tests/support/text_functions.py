"""Every public function of semmem's core that is given text, as a call on one text; and those that need none, and why.

``tests/core/test_linear_text.py`` finds the functions by itself and fails when one of them is in neither table.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

import msgspec
import numpy as np

from semmem.compression.cutting import Part
from semmem.compression.extractive import ends, extracted, rendered
from semmem.compression.making import read_state
from semmem.dialects import BY_NAME, Dialect, Malformed, Paths
from semmem.dialects.answer import TextTail
from semmem.dialects.json_splice import decode_repaired, read_elements, read_object
from semmem.dialects.parsing import holds_more_than
from semmem.dialects.request import controls
from semmem.dialects.sse import EventStream
from semmem.extraction import (
    answers,
    comparing,
    llm,
    model_items,
    model_judge,
    phrasing,
    reading,
    rules,
    screen,
    settling,
    unlearning,
)
from semmem.extraction.contradiction import pair_model, quantities, verdict
from semmem.extraction.contradiction import reading as reading_
from semmem.extraction.lasting import classifier, clauses, features
from semmem.extraction.model_items import Facts, line_of
from semmem.extraction.phrasing import DatedText, event_time
from semmem.extraction.rules import facts_in, read_clauses
from semmem.extraction.voice import hearing
from semmem.lifecycle.change_news import ChangeNews
from semmem.lifecycle.spared import Said
from semmem.memory import Conversation, Fact, Hit, Injection, Memory, MemoryType, Message, Role, Scope, Turn
from semmem.passages import pieces
from semmem.ports.errors import ModelRefused
from semmem.ports.learning import Batch
from semmem.ports.session_states import CurrentState
from semmem.retrieval import context, models, notes, rank, role_labels, time_filter
from semmem.retrieval.decide import decision, fitting, request_words, signals
from semmem.retrieval.decide import features as decide_features
from semmem.retrieval.decide.decision import Decision
from semmem.retrieval.fence import Fence
from semmem.retrieval.index import word_index
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.ledger.anchors import anchors_of, goes_on
from semmem.retrieval.query import build as query
from semmem.retrieval.query import past_conversations
from semmem.retrieval.search import ResolvedQuery, Strategy, best_of, read_words
from semmem.text import disguise, grounding, orders, quoting, stems, terms, words
from semmem.text.digest import digest
from semmem.text.screening import is_instruction, numbers_hidden, readable, redact
from semmem.text.times import Interval, intervals, leaning
from semmem.text.times.tokens import tokens
from semmem.turns.encodings import Undecodable, decoder_for
from semmem.turns.recorder import storable
from semmem.turns.sessions import message_id, session_key, turn_id
from tests.support.decisions import weights
from tests.support.wire import Wire

Call = Callable[[str], object]
NOW = 1_700_000_000.0
DAY = datetime.fromtimestamp(NOW, UTC).date()
WHOLE = 10**9
"""A bound that no text here reaches: a function that has one of its own is held to what lies below it as well."""

ROOMS = "compression dialects extraction lifecycle passages request retrieval text turns upkeep".split()
_TEXTUAL = re.compile(
    r"\b(?:str|bytes|Part|Message|Conversation|Turn|Batch|Fact|Memory|Said|Clause|Sentence|Hit|Candidate|Member|JsonObject|Item|Claim|ResolvedQuery)\b"
)


# --- finding them ----------------------------------------------------------------------------------------------------


def found() -> Iterator[str]:
    """Dotted names, without ``semmem.``, of public functions and methods with a parameter that is or holds text."""
    for room in ROOMS:
        package = importlib.import_module(f"semmem.{room}")
        inside = pkgutil.walk_packages(getattr(package, "__path__", []), f"{package.__name__}.")
        for name in (package.__name__, *(module.name for module in inside)):
            yield from _functions(name)


def _functions(module_name: str) -> Iterator[str]:
    prefix = module_name.removeprefix("semmem.")
    for name, value in vars(importlib.import_module(module_name)).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module_name:
            continue
        if inspect.isfunction(value) and _takes_text(value):
            yield f"{prefix}.{name}"
        elif inspect.isclass(value) and not getattr(value, "_is_protocol", False):
            public = ((m, f) for m, f in vars(value).items() if not m.startswith("_") and inspect.isfunction(f))
            # a field's default may be a function, which is found where it is written
            methods = ((m, f) for m, f in public if f.__qualname__.startswith(f"{name}."))
            yield from (f"{prefix}.{name}.{method}" for method, function in methods if _takes_text(function))


def _takes_text(function: Callable[..., object]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(_TEXTUAL.search(str(parameter.annotation)) for parameter in parameters)


# --- what holds a text -----------------------------------------------------------------------------------------------


def _said(text: str) -> Conversation:
    """Before the text and behind it: what looks back, and what looks at the last message, reads it in one of them."""
    user = Message(Role.USER, text)
    return Conversation((Message(Role.SYSTEM, text), user, Message(Role.ASSISTANT, text), user))


def _memory(text: str) -> Memory:
    vector = np.full(4, 0.5, dtype=np.float32)
    return Memory("mem_1", 1, MemoryType.SEMANTIC, text, "ada", occurred_at=NOW, embedding=vector)


def _hit(text: str) -> Hit:
    return Hit(_memory(text), 0.5, 0.5)


NEAR = [comparing.Neighbour("User likes tea", MemoryType.SEMANTIC, 0.95)]
_ONE = np.ones(2, dtype=np.float32)
_DIRECTIONS = np.ones((5, 2, 1), dtype=np.float32)
_LIKELY = pair_model.Likelihoods(0.9, 0.05, 0.05)
WEIGHING = comparing.Weighing(verdict.closed, 0.25, 0.9)
NEWS = ChangeNews(Wire().line(), b"key")


def _turn(text: str) -> Turn:
    return Turn("t_1", Scope("ada"), 1, text, NOW)


def _fact(text: str) -> Fact:
    return Fact(MemoryType.SEMANTIC, text, "t_1")


def _batch(text: str) -> Batch:
    return Batch(id="b_1", scope=Scope("ada"), turns=(_turn(text),), context=(_turn(text),), trigger="size", attempt=1)


def _refusing(call: Callable[[], object]) -> object:
    """Refusing what is hostile is an answer as well."""
    try:
        return call()
    except (Malformed, Undecodable, ModelRefused, msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return None


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _bodies(text: str) -> Iterator[bytes]:
    """The text as a message, as a body, as the inside of a string, and as many messages."""
    quoted = msgspec.json.encode(text.encode("utf-8", "replace").decode())
    many = b",".join([b'{"role":"user","content":"a"}'] * (len(text) // 30))
    for member in (b"messages", b"input"):
        yield b'{"model":"m","%s":[{"role":"user","content":%s}]}' % (member, quoted)
        yield b'{"model":"m","%s":[%s]}' % (member, many)
        yield b'{"model":"m","%s":[{"role":"user","content":"%s"}]}' % (member, _raw(text))
        yield b'{"%s":%s}' % (member, _raw(text))
    yield _raw(text)


def _rewritten(dialect: Dialect) -> Call:
    def call(text: str) -> None:
        for body in _bodies(text):
            _refusing(lambda body=body: _rewrite(dialect, body))  # type: ignore[misc]

    return call


def _rewrite(dialect: Dialect, body: bytes) -> None:
    request = dialect.parse(body)
    for position in ("turn", "first", "after_system", "before_last_user"):
        injection = Injection("what is known", position=position)
        request.rewrite(injection)
        request.keeps(injection)


def _answered(dialect: Dialect) -> Call:
    def call(text: str) -> None:
        for kind in ("application/json", "text/event-stream"):
            reader = dialect.reader(content_type=kind, answer_bytes_max=64 * 1024, body_bytes_max=WHOLE)
            assert reader is not None
            data = _raw(text)
            for start in range(0, len(data), 100):
                reader.feed(data[start : start + 100])
            reader.end()

    return call


def _in_pieces(feed: Callable[[bytes], object], text: str) -> None:
    data = _raw(text)
    for start in range(0, len(data), 100):
        deque(feed(data[start : start + 100]) or (), maxlen=0)  # type: ignore[call-overload]


def _elements(text: str) -> object:
    return _refusing(lambda: read_elements(read_object(b'{"a":[' + _raw(text).rstrip(b",") + b"]}").members["a"]))


def _parted(text: str) -> None:
    for body in _bodies(text):
        for dialect in BY_NAME.values():
            _refusing(lambda dialect=dialect, body=body: dialect.parse(body).elements())  # type: ignore[misc]


def _tolerant(work: Callable[[], object]) -> object:
    try:
        return work()
    except ModelRefused:
        return None


def _decoded(text: str) -> None:
    for encoding in ("identity", "gzip", "deflate", "br", "zstd"):
        decoder = decoder_for(encoding, decoded_bytes_max=WHOLE)
        assert decoder is not None
        _refusing(lambda decoder=decoder: _in_pieces(decoder.feed, text))  # type: ignore[misc]


def _scores(text: str) -> object:
    return MemoryIndex([_memory(text), _memory("likes tea")]).scores(text, None)


def _best(text: str) -> object:
    index = MemoryIndex([_memory(text), _memory("likes tea")])
    query = ResolvedQuery(text, Scope("ada"), NOW, Strategy.HYBRID, limit=5, during=Interval(NOW - 1000, NOW))
    return best_of(index, query, np.full(4, 0.5, np.float32))


def _matched(text: str) -> object:
    found = terms.terms(words.words(text))
    return word_index.WordIndex([found]).match(found)


def _chosen(text: str) -> object:
    text = clauses.squeezed(text)
    found = clauses.clauses(text, clauses_max=WHOLE)
    lasting = classifier.Judgement(1.0, MemoryType.SEMANTIC, None)
    return rules.passages(text, found, [lasting] * len(found), cut=0.5, near=0.5)


def _told(text: str) -> object:
    told = DatedText(text, NOW)
    return told.event_time("User moved to Oslo last May", "last May"), told.event_time(text, text)


def _phrased(text: str) -> object:
    every = phrasing.ShownTexts([text], [text])
    said = [f"{beginning}{text[:900]}" for beginning in ("", "The user ", "I ", "You ", "She ", "Priya ")]
    return [phrasing.TurnText(text, every).phrased(content) for content in said]


def _made_facts(text: str) -> object:
    item = {"turn": 1, "content": text, "until": text, "when": text, "topic": text, "importance": text, "subject": text}
    return list(Facts([_turn(f"until {text}")]).of([item, {**item, "content": text[:900]}, {"content": text}]))


def _grounded(text: str) -> object:
    said = grounding.SourceText(text, "and before that nothing")
    return said.grounds(text[:500]), said.grounds("User was in Oslo with Emma and 3 interesting friends")


def _screened(text: str) -> object:
    return screen.screen(_fact(text), "I like tea", chars_max=WHOLE, own_markers=context.FENCE_MARKERS)


def _ranked(text: str) -> object:
    return rank.rank([_hit(text), _hit(text + " "), _hit("User likes tea")], said=[text, text], limit=3, now=NOW)


def _near(text: str) -> object:
    return decision.near(text, MemoryIndex([_memory("likes tea")]).scores("tea", None))


VECTOR = np.full(4, 0.5, dtype=np.float32)
LOOKS_BACK = past_conversations.LooksBack.load(past_conversations.SHIPPED)
WEIGHTS = weights(4)


def _verdict(text: str) -> object:
    index = MemoryIndex([_memory(text), _memory("likes tea")])
    members = np.ones(2, dtype=np.bool_)
    return Decision(WEIGHTS).verdict(text, VECTOR, index, index.scores("tea", VECTOR), members)


def _split(text: str) -> list[str]:
    return text.split()


REGISTRY: Mapping[str, Call] = {
    # dialects
    "dialects.Paths.dialect": Paths({"chat": ["/*/v1/chat/completions", "/openai/*/*"]}).dialect,
    "dialects.answer.TextTail.append": lambda t: _in_pieces(
        lambda piece: TextTail(bytes_max=64).append(piece.decode("utf-8", "replace")), t
    ),
    "dialects.Dialect.reader": lambda t: [_answered(dialect)(t) for dialect in BY_NAME.values()],
    "dialects.chat.parse": _rewritten(BY_NAME["chat"]),
    "dialects.messages.parse": _rewritten(BY_NAME["messages"]),
    "dialects.responses.parse": _rewritten(BY_NAME["responses"]),
    "dialects.json_splice.decode_repaired": lambda t: [
        _refusing(lambda body=body: decode_repaired(msgspec.json.Decoder(), body))  # type: ignore[misc]
        for body in _bodies(t)
    ],
    "dialects.json_splice.read_object": lambda t: [
        _refusing(lambda body=body: read_object(body))  # type: ignore[misc]
        for body in _bodies(t)
    ],
    "dialects.json_splice.read_elements": _elements,
    "dialects.parsing.holds_more_than": lambda t: [holds_more_than(len(t) // 1000, body) for body in _bodies(t)],
    "dialects.request.controls": lambda t: controls(
        {name: msgspec.json.encode(_raw(t).decode()) for name in ("memory_config", "memory_context", "user")}
    ),
    "dialects.sse.EventStream.feed": lambda t: _in_pieces(EventStream(event_bytes_max=WHOLE).feed, t),
    "turns.encodings.decoder_for": _decoded,
    # extraction
    "extraction.answers.json_values": lambda t: list(answers.json_values(t)),
    "extraction.answers.read_answer": answers.read_answer,
    "extraction.answers.read_broken": lambda t: answers.read_broken("{" + t, 0),
    "extraction.model_items.Facts.of": _made_facts,
    "extraction.model_items.line_of": lambda t: line_of({"turn": t[:4000]}),
    "extraction.model_items.parse_items": lambda t: _refusing(lambda: model_items.parse_items(t)),
    "extraction.model_items.wrong_notes": lambda t: model_items.wrong_notes([{"wrong": 1, "why": t}], {0}),
    "extraction.model_items.read_items": lambda t: _refusing(lambda: model_items.read_items('{"facts": [' + t)),
    "extraction.phrasing.ShownTexts.is_the_user": lambda t: phrasing.ShownTexts([t], [t]).is_the_user(
        t[:1000] or "-", t
    ),
    "extraction.phrasing.TurnText.phrased": _phrased,
    "extraction.contradiction.quantities.spelled_as_digits": quantities.spelled_as_digits,
    "extraction.contradiction.quantities.take_quantities": quantities.take_quantities,
    "extraction.contradiction.reading.read": reading_.read,
    "extraction.contradiction.pair_model.parts": lambda t: (pair_model.parts(t, "I like tea"), pair_model.parts(t, t)),
    "extraction.contradiction.pair_model.row": lambda t: pair_model.row(t, f"{t} 3", (_ONE,) * 4, _DIRECTIONS),
    "extraction.contradiction.verdict.details_differ": lambda t: verdict.details_differ(t, t + " not"),
    "extraction.contradiction.verdict.may": lambda t: (
        verdict.may(verdict.Verdict.SAME, t, f"{t} 3"),
        verdict.may(verdict.Verdict.CONTRADICTION, t, f"3 {t}"),
    ),
    "extraction.contradiction.reading.change": lambda t: (reading_.change(t, f"{t} 3"), reading_.change(f"3 {t}", t)),
    "extraction.contradiction.verdict.closed": lambda t: (
        verdict.closed(t, f"{t} not", 0.8),
        verdict.closed(t, t, 0.8),
        verdict.closed(t, "User likes tea", 0.8),
        verdict.closed("User likes tea", t, 0.8),
    ),
    "extraction.contradiction.verdict.decided": lambda t: verdict.decided(t, f"{t} 3", _LIKELY, beside=True),
    "extraction.contradiction.verdict.loses": lambda t: verdict.loses(t, f"{t} 3"),
    "extraction.contradiction.reading.clauses": reading_.clauses,
    "extraction.contradiction.reading.without_region": lambda t: reading_.without_region(f"{t} in Porto, Portugal"),
    "extraction.contradiction.reading.replaced_quantity": lambda t: reading_.replaced_quantity(f"{t} 4", f"{t} 3"),
    "extraction.contradiction.reading.same_quantity": lambda t: reading_.same_quantity(f"{t} 4", f"{t} 3"),
    "extraction.contradiction.verdict.contains": lambda t: verdict.contains(f"{t} 4", t),
    "extraction.contradiction.verdict.drops_a_clause": lambda t: verdict.drops_a_clause(
        t, reading_.read("I like tea"), reading_.read(t)
    ),
    "extraction.contradiction.reading.tokens": reading_.tokens,
    "extraction.contradiction.reading.repeats": lambda t: reading_.repeats(t, f"{t} 3"),
    "text.words.behind_courtesies": words.behind_courtesies,
    "text.grounding.SourceText.grounds": _grounded,
    "passages.pieces.gist_of": pieces.gist_of,
    "passages.pieces.is_passage": pieces.is_passage,
    "passages.pieces.passages_of": lambda t: list(pieces.passages_of(_turn(t), now=NOW, expires_at=None)),
    "passages.pieces.pieces": pieces.pieces,
    "text.quoting.is_quoted": quoting.is_quoted,
    "text.quoting.quoted": quoting.quoted,
    "text.quoting.unquoted": lambda t: quoting.unquoted(quoting.quoted(t)),
    "text.grounding.content_words": grounding.content_words,
    "text.grounding.names": grounding.names,
    "text.grounding.numbers": grounding.numbers,
    "text.grounding.SourceText.overlap": lambda t: grounding.SourceText(t).overlap(t[:500]),
    "extraction.model_judge.parse_verdicts": lambda t: _refusing(lambda: model_judge.parse_verdicts(t, 3)),
    "extraction.reading.Reader.read_with": lambda t: reading.Reader(
        strip_block=context.strip_block, turn_chars_max=WHOLE
    ).read_with(_batch(t)),
    "extraction.reading.asked_of": reading.asked_of,
    "extraction.reading.text_of": lambda t: reading.text_of([_turn(t)]),
    "extraction.rules.passages": lambda t: _chosen(t),
    "extraction.lasting.clauses.clauses": lambda t: clauses.clauses(clauses.squeezed(t), clauses_max=WHOLE),
    "extraction.lasting.clauses.squeezed": clauses.squeezed,
    "extraction.lasting.features.classes": features.classes,
    "extraction.lasting.features.features": lambda t: features.features(
        clauses.clauses(clauses.squeezed(t), clauses_max=WHOLE)
    ),
    "extraction.lasting.clauses.lead_in": lambda t: clauses.lead_in(t, 0, len(t), asked=False),
    "extraction.lasting.clauses.is_only": lambda t: clauses.is_only(clauses.Order(0, 4, False, False), t, 0, len(t)),
    "extraction.lasting.clauses.order_in": lambda t: clauses.order_in(t, (0, len(t) // 2), len(t)),
    "extraction.rules.asks_for_own": lambda t: rules.asks_for_own(f"{t}?"),
    "extraction.rules.is_decision": rules.is_decision,
    "extraction.lasting.features.formal": features.formal,
    "extraction.voice.hearing.shapes": lambda t: hearing.shapes(t, hearing.units(t)),
    "extraction.voice.hearing.words_of": hearing.words_of,
    "extraction.voice.hearing.heard": hearing.heard,
    "extraction.voice.hearing.marked": hearing.marked,
    "extraction.voice.hearing.quotations": hearing.quotations,
    "extraction.voice.hearing.units": hearing.units,
    "extraction.voice.hearing.to_embed": hearing.to_embed,
    "extraction.rules.facts_in": lambda t: facts_in(t, chars_max=WHOLE),
    "extraction.phrasing.phrased": phrasing.phrased,
    "extraction.phrasing.written_out": phrasing.written_out,
    "extraction.phrasing.third_person": phrasing.third_person,
    "extraction.phrasing.third_singular": phrasing.third_singular,
    "extraction.rules.read_clauses": lambda t: read_clauses(_turn(t), WHOLE),
    "extraction.phrasing.DatedText.event_time": _told,
    "extraction.phrasing.event_time": lambda t: event_time(t, NOW),
    "extraction.screen.same_text": screen.same_text,
    "extraction.screen.screen": _screened,
    "extraction.screen.screen_text": lambda t: screen.screen_text(t),
    "extraction.llm.grounded": lambda t: llm.grounded(t[:500], grounding.SourceText(t), chars_max=WHOLE),
    "extraction.llm.parse_summary": lambda t: _refusing(lambda: llm.parse_summary(t)),
    "extraction.settling.rewritten_by": lambda t: settling.rewritten_by(t, {"m": t, "n": f"{t} 3"}),
    "extraction.unlearning.meant": lambda t: unlearning.meant(t[:200], _ONE, [_memory(t)]),
    "extraction.unlearning.restated": lambda t: unlearning.restated(t, ["User keeps bees", "User likes tea"]),
    "extraction.unlearning.cut_out": lambda t: unlearning.cut_out(
        t, [(start, start + 2) for start in range(0, len(t), 5)]
    ),
    "extraction.comparing.Weighing.verdicts": lambda t: WEIGHING.verdicts(NEAR, t, MemoryType.SEMANTIC),
    # turns
    "text.digest.digest": digest,
    "turns.recorder.storable": lambda t: storable(t, WHOLE),
    "turns.sessions.message_id": lambda t: message_id("ada", "s_1", t),
    "turns.sessions.session_key": lambda t: session_key(Scope("ada"), _said(t)),
    "turns.sessions.turn_id": lambda t: turn_id(Scope("ada"), 1, t),
    # compression
    "compression.making.read_state": lambda t: _tolerant(lambda: read_state(t)),
    "compression.extractive.extracted": lambda t: extracted(
        (Part(Role.USER, t), Part(Role.ASSISTANT, t)), CurrentState(t, (t,)), None, 650
    ),
    "compression.extractive.ends": ends,
    "compression.extractive.rendered": lambda t: rendered(CurrentState(t, (t,)), lambda _inside: "0" * 16),
    "dialects.elements.elements_of": _parted,
    # retrieval
    "retrieval.index.word_index.offered": lambda t: word_index.offered(t, words.words(t)),
    "retrieval.index.word_index.wanted": word_index.wanted,
    "retrieval.ledger.anchors.anchors_of": lambda t: anchors_of(_said(t)),
    "retrieval.ledger.anchors.goes_on": lambda t: goes_on(_said(t)),
    "retrieval.notes.arranged": lambda t: notes.arranged([_memory(t), _memory("likes tea")]),
    "retrieval.notes.happened": lambda t: notes.happened(_memory(t)),
    "retrieval.notes.order_told": lambda t: notes.order_told([_memory(t), _memory("likes tea")]),
    "retrieval.notes.said": lambda t: notes.said(_memory(t)),
    "retrieval.context.estimate_tokens": context.estimate_tokens,
    "retrieval.context.line_tokens": lambda t: context.line_tokens(_memory(t)),
    "retrieval.context.neutralise": context.neutralise,
    "retrieval.context.render": lambda t: context.render(
        [_hit(t), _hit("likes tea")], tokens_max=2000, mark=lambda _inside: "0" * context.MARK_CHARS
    ),
    "retrieval.context.says": lambda t: (
        context.says(t, _memory(t)),
        context.says(t.replace(" ", "\n- I (on "), _memory("I")),
    ),
    "retrieval.context.strip_block": context.strip_block,
    "retrieval.context.without_blocks": lambda t: context.without_blocks(_said(t)),
    "retrieval.context.without_tags": context.without_tags,
    "lifecycle.spared.Said.again": lambda t: Said([_memory(t)]).again(_memory(t)),
    "lifecycle.change_news.ChangeNews.heard": lambda t: NEWS.heard(f"changed {t}"),
    "retrieval.fence.Fence.derived": lambda t: Fence(b"key").derived(t.encode("utf-8", "surrogatepass")),
    "retrieval.fence.Fence.mark": lambda t: Fence(b"key").mark("ada", t),
    "retrieval.fence.Fence.stands_in": lambda t: Fence(b"key").stands_in(_said(t).messages, "ada"),
    "retrieval.decide.decision.Decision.request_alone": lambda t: Decision(WEIGHTS).request_alone(t, VECTOR),
    "retrieval.decide.decision.Decision.verdict": _verdict,
    "retrieval.decide.features.request_features": lambda t: decide_features.request_features(WEIGHTS, t, VECTOR),
    "retrieval.decide.decision.Decision.heard": Decision(WEIGHTS).heard,
    "retrieval.decide.features.request_words_of": lambda t: decide_features.request_words_of(WEIGHTS, t),
    "retrieval.decide.fitting.index_of": lambda t: fitting.index_of([t], lambda texts: np.stack([VECTOR] * len(texts))),
    "retrieval.decide.signals.is_social": signals.is_social,
    "retrieval.decide.decision.near": _near,
    "retrieval.decide.signals.asks_for_all": signals.asks_for_all,
    "retrieval.decide.request_words.flags": request_words.flags,
    "retrieval.decide.request_words.speaks_of_user": request_words.speaks_of_user,
    "retrieval.decide.request_words.places": request_words.places,
    "retrieval.index.memory_index.MemoryIndex.heard": lambda t: MemoryIndex([_memory("likes tea")]).heard(t),
    "retrieval.index.memory_index.MemoryIndex.scores": _scores,
    "retrieval.search.read_words": lambda t: read_words(
        MemoryIndex([_memory(t)]), ResolvedQuery(t, Scope("ada"), NOW, Strategy.HYBRID, limit=5), Decision(WEIGHTS)
    ),
    "retrieval.query.build.build_query": lambda t: query.build_query(_said(t), chars_max=WHOLE),
    "retrieval.query.build.is_vague": query.is_vague,
    "retrieval.query.build.key_words": query.key_words,
    "retrieval.rank.rank": _ranked,
    "retrieval.query.past_conversations.LooksBack.asks": lambda t: LOOKS_BACK.asks(t, LOOKS_BACK.vector, in_form=True),
    "retrieval.query.past_conversations.LooksBack.logit": lambda t: LOOKS_BACK.logit(
        t, LOOKS_BACK.vector, in_form=True
    ),
    "retrieval.query.past_conversations.flags_of": lambda t: past_conversations.flags_of(t, in_form=False),
    "retrieval.query.past_conversations.places": past_conversations.places,
    "retrieval.query.past_conversations.asked_before": lambda t: past_conversations.asked_before(t, NOW, known=True),
    "retrieval.query.past_conversations.has_form": past_conversations.has_form,
    "retrieval.models.cleaned": lambda t: models.cleaned(t, chars_max=WHOLE),
    "retrieval.role_labels.unlabelled": role_labels.unlabelled,
    "retrieval.search.best_of": _best,
    "retrieval.rank.Stated.holds": lambda t: rank.Stated([t, t[:300], f"I like tea. {t}"[:300]]).holds("i like tea"),
    "retrieval.rank.statement": rank.statement,
    "retrieval.decide.signals.decide": lambda t: (signals.decide(_said(t)), signals.decide(_said(t), fact=True)),
    "retrieval.time_filter.is_dated": lambda t: time_filter.is_dated(_memory(t), Interval(NOW - 1000, NOW)),
    "retrieval.time_filter.matches": lambda t: time_filter.matches(_memory(t), Interval(NOW - 1000, NOW)),
    "retrieval.time_filter.names": lambda t: time_filter.names(_memory(t), Interval(NOW - 1000, NOW)),
    "retrieval.time_filter.span": lambda t: time_filter.span([t, t], NOW),
    "retrieval.time_filter.time_filter": lambda t: time_filter.time_filter(t, NOW),
    "retrieval.index.word_index.WordIndex.match": _matched,
    "text.terms.terms": lambda t: terms.terms(words.words(t)),
    "text.words.negations_apart": words.negations_apart,
    "text.words.counted": words.counted,
    "text.words.is_unspaced": words.is_unspaced,
    "text.words.pairs": words.pairs,
    "text.words.words": words.words,
    "text.words.written_words": words.written_words,
    "text.stems.stem": stems.stem,
    "text.orders.stem_of": orders.stem_of,
    "text.orders.places": lambda t: orders.places({t}, 8),
    "text.stems.stems": lambda t: stems.stems(t.split()),
    # screening and time expressions
    "text.grounding.is_negative": grounding.is_negative,
    "text.disguise.is_spelt_out": disguise.is_spelt_out,
    "text.disguise.readings": disguise.readings,
    "text.disguise.revealed": disguise.revealed,
    "text.disguise.turned": disguise.turned,
    "text.orders.features": lambda t: orders.features(orders.tokens(t)),
    "text.orders.order_in": orders.order_in,
    "text.orders.pieces": lambda t: list(orders.pieces(t)),
    "text.orders.score": lambda t: orders.score(orders.tokens(t)),
    "text.orders.tokens": orders.tokens,
    "text.screening.is_instruction": is_instruction,
    "text.screening.readable": lambda t: readable(_memory(t), chars_max=WHOLE),
    "text.screening.redact": redact,
    "text.screening.numbers_hidden": lambda t: numbers_hidden(f"IBAN: {t}", "[x]"),
    "text.times.grammar.intervals": lambda t: intervals(t, NOW),
    "text.times.grammar.leaning": leaning,
    "text.times.tokens.tokens": tokens,
}

_NAMES = "takes ids, names or settings, whose length others bound"
_SAME_TEXT = "same_text, which is in the table above"
_VALUES = "copies plain values and reads no text"
_WAITS = "awaits stores and models; what it reads of a text is done by functions of this table"
NEEDLESS: Mapping[str, str] = {
    "extraction.at_once.AtOnce.read": "the extractor and the screen above, on a thread",
    "extraction.storing.extracted": "the extractor above",
    "lifecycle.spared.Heirs.of": _VALUES,
    "lifecycle.spared.Heirs.of_left": _VALUES,
    "lifecycle.spared.as_own": _VALUES,
    "lifecycle.spared.as_settled": _VALUES,
    "lifecycle.spared.is_spared": _NAMES,
    "lifecycle.spared.means": _VALUES,
    "lifecycle.spared.reinstated": _VALUES,
    "lifecycle.spared.replaced_before": _VALUES,
    "lifecycle.spared.replaced_by": _VALUES,
    "lifecycle.spared.said_elsewhere": _VALUES,
    "lifecycle.spared.spared_id": _NAMES,
    "lifecycle.spared.successor_of": _VALUES,
    "lifecycle.spared.superseded": _VALUES,
    "lifecycle.spared.without": _VALUES,
    "lifecycle.sparing.Sparing.spare": _WAITS,
    "lifecycle.reflected.bases": _VALUES,
    "lifecycle.reflected.rests_on": "one digest of each content",
    "lifecycle.reflected.stands": "one digest of each content",
    "retrieval.decide.decision.Decision.feedback_stamp": _NAMES,
    "retrieval.feedback.UserVotes.shift": _NAMES,
    "retrieval.feedback.Votes.forget": _NAMES,
    "retrieval.feedback.Votes.of": _NAMES,
    "retrieval.feedback.Votes.stamp": _NAMES,
    "upkeep.reflections.Reflector.keep": _WAITS,
    "upkeep.reflections.Reflector.material": _VALUES,
    "upkeep.reflections.Reflector.reflect": _WAITS,
    "upkeep.reflections.withdraw": _WAITS,
    "lifecycle.everybody.ErasureOfAll.forget": "names of users, bounded, as a store and a journal take them",
    "request.switches.Switches.allowed": "names, bounded by who reads them, as keys of a dictionary",
    "request.switches.Switches.of_group": "one digest of a bounded name",
    "request.switches.Switches.of_user": "one digest of a bounded name",
    "request.switches.group_key": "one digest of a bounded name",
    "request.switches.user_key": "one digest of a bounded name",
    "dialects.answer.AnswerBuilder.decoded": "called by every reader above",
    "dialects.answer.EventStreamReader.feed": "called by every reader above",
    "dialects.answer.JsonReader.feed": "called by every reader above",
    "dialects.answer.AnswerBuilder.read_body": "called by every reader above",
    "dialects.answer.AnswerBuilder.read_event": "called by every reader above",
    "dialects.answer.readable": "called by every reader above",
    "dialects.chat.ChatAnswer.read_body": "called by the reader above",
    "dialects.chat.ChatAnswer.read_event": "called by the reader above",
    "dialects.messages.MessagesAnswer.read_body": "called by the reader above",
    "dialects.messages.MessagesAnswer.read_event": "called by the reader above",
    "dialects.responses.ResponsesAnswer.read_body": "called by the reader above",
    "dialects.responses.ResponsesAnswer.read_event": "called by the reader above",
    "dialects.parsing.parse": "holds_more_than and every parse above",
    "extraction.unlearning.WaitingWords.take_out": "restated and cut_out above, for each turn",
    "dialects.json_splice.cut_members": "called with every parse above",
    "dialects.inject.replace_elements": "elements_of and splice above",
    "compression.making.ModelWriter.write": "shortens each text, and asks a model",
    "compression.cutting.gone_of": "looks at no text",
    "compression.cutting.kept_of": "looks at no text",
    "compression.cutting.users_before": "looks at no text",
    "compression.cutting.users_of": "looks at no text",
    "compression.compressor.KnownStates.give": _NAMES,
    "compression.compressor.KnownStates.given": _NAMES,
    "compression.compressor.KnownStates.forget": _NAMES,
    "compression.compressor.KnownStates.states": _NAMES,
    "compression.extractive.line_tokens": "called with every state above",
    "retrieval.context.fenced": "called with every render above",
    "dialects.json_splice.insert_element": "called with every parse above",
    "dialects.json_splice.insert_member": "called with every parse above",
    "dialects.json_splice.object_at": "called with every rewrite above",
    "dialects.json_splice.splice": "called with every parse above",
    "dialects.inject.add_part": "called with every rewrite above",
    "dialects.inject.after_system": "called with every rewrite above",
    "dialects.inject.first_system": "called with every rewrite above",
    "dialects.inject.last_user": "called with every rewrite above",
    "dialects.inject.string_token": "called with every rewrite above",
    "dialects.request.text_of": "called with every parse above",
    "dialects.request.texts_of": "called with every parse above",
    "dialects.request.conversation_of": "called with every parse above",
    "dialects.request.decoded": "called with every parse above",
    "dialects.request.field_of": "called by controls",
    "dialects.request.name_of": "called by controls",
    "dialects.request.object_of": "called by controls",
    "extraction.at_once.AtOnce.learn": _WAITS,
    "extraction.at_once.provisional_id": _SAME_TEXT,
    "extraction.reading.Read.weighed": _VALUES,
    "extraction.reading.Reader.read": _WAITS,
    "extraction.reading.Reader.turns": _WAITS,
    "extraction.voice.hearing.save": _NAMES,
    "retrieval.ledger.truth.Changes.said_back": _VALUES,
    "retrieval.ledger.truth.Changes.to_say_back": _VALUES,
    "extraction.contradiction.reading.listed": _NAMES,
    "extraction.candidate.confirmed": _VALUES,
    "extraction.candidate.created": _VALUES,
    "extraction.candidate.keyed_id": _NAMES,
    "extraction.candidate.memory_id": _NAMES,
    "extraction.candidate.reconsidered": _VALUES,
    "extraction.answers.within": "joins what others bound",
    "extraction.candidate.expiry": _VALUES,
    "extraction.candidate.updated": _VALUES,
    "upkeep.model_writing.made_id": _NAMES,
    "upkeep.consolidation.Consolidator.groups": _WAITS,
    "upkeep.consolidation.Consolidator.merge": _NAMES,
    "upkeep.consolidation.cosines": "looks at vectors only",
    "upkeep.consolidation.unchanged": _WAITS,
    "extraction.candidate.settled": _VALUES,
    "extraction.contradiction.pair_model.PairModel.likelihoods": "takes its time in row, which is measured",
    "extraction.contradiction.quantities.month_number": _NAMES,
    "extraction.comparing.PairJudge.judged": "takes its time in parts, row and decided, which are measured",
    "extraction.comparing.Comparing.compared": _WAITS,
    "extraction.comparing.Comparing.doubts": _WAITS,
    "extraction.comparing.Comparing.is_update": _VALUES,
    "extraction.comparing.Comparing.outdated_by": _WAITS,
    "extraction.comparing.with_vector": _NAMES,
    "extraction.dedup.Dedup.confirm": _WAITS,
    "extraction.dedup.Dedup.confirm_all": _WAITS,
    "extraction.dedup.Dedup.place": _WAITS,
    "extraction.dedup.Dedup.put": _WAITS,
    "extraction.dedup.Dedup.put_keyed": _WAITS,
    "extraction.dedup.Dedup.quarantine": _WAITS,
    "extraction.dedup.Dedup.release": _WAITS,
    "extraction.dedup.Dedup.stored": _NAMES,
    "extraction.dedup.Dedup.take_back": _WAITS,
    "extraction.dedup.Retiring.give_back": _WAITS,
    "extraction.dedup.Retiring.have_back": _WAITS,
    "extraction.lasting.classifier.judge": "reads rows of numbers; takes the name of an embedding model",
    "extraction.rules.facts_of": "facts_in, which is in the table above, without the reading; takes a model's name",
    "extraction.unlearning.Unlearning.obey": _WAITS,
    "extraction.dedup.Retiring.reinstate": _NAMES,
    "extraction.dedup.Retiring.retire": _WAITS,
    "extraction.dedup.Retiring.settle": _WAITS,
    "extraction.dedup.Retiring.supersede": _WAITS,
    "extraction.dedup.Retiring.unsay": _WAITS,
    "extraction.dedup.Retiring.update": _WAITS,
    "extraction.dedup.Retiring.withdraw": _WAITS,
    "extraction.dedup.Retiring.writes": "reads no text",
    "extraction.contradiction.reading.is_quantity": "called by same_quantity and replaced_quantity",
    "extraction.contradiction.reading.is_year": "called by closed",
    "extraction.contradiction.reading.tells_an_event": "called by replaced_quantity",
    "extraction.dedup.was_replaced": _VALUES,
    "extraction.unlearning.Undoing.undo": "awaits the store; rewritten_by, in the table above, beside the loop",
    "extraction.llm.LlmExtractor.extract": _WAITS,
    "extraction.llm.operators_rules": _NAMES,
    "extraction.model_judge.ModelJudge.opinions": _WAITS,
    "extraction.pipeline.Learning.learn": _WAITS,
    "extraction.pipeline.choose_extractor": _NAMES,
    "lifecycle.quota.Quota.grown": _NAMES,
    "lifecycle.quota.Quota.make_room": _NAMES,
    "extraction.result.Tally.count": _VALUES,
    "extraction.result.Tally.settle": _VALUES,
    "extraction.rules.RulesExtractor.extract": _WAITS,
    "extraction.rules.RulesExtractor.worth": _WAITS,
    "passages.shelves.everything": _WAITS,
    "passages.pieces.ids_of": _NAMES,
    "passages.pieces.passage_id": _NAMES,
    "passages.shelves.ShelvedCollections.drop": _WAITS,
    "passages.shelves.ShelvedCollections.switch": _WAITS,
    "passages.shelves.Shelves.fill": _WAITS,
    "passages.shelves.Shelves.forget": _WAITS,
    "passages.shelves.Shelves.get": _WAITS,
    "passages.shelves.Shelves.put": _WAITS,
    "passages.shelves.Shelves.written_elsewhere": _WAITS,
    "extraction.storing.Keeping.keep": _WAITS,
    "extraction.unlearning.WaitingWords.stating": _WAITS,
    "lifecycle.hiding_store.Marks.lately": _NAMES,
    "lifecycle.quota.PassageQuota.make_room": _NAMES,
    "lifecycle.quota.all_passages": _NAMES,
    "retrieval.models.embed": _WAITS,
    "retrieval.passages.PassageSearch.beside": _WAITS,
    "retrieval.index.kept.Unsaid.spoken": _NAMES,
    "extraction.llm.SessionSummariser.summarise": _WAITS,
    "extraction.settling.Provisional.readable": _NAMES,
    "extraction.settling.Provisional.rewritten": "rewritten_by, which is in the table above",
    "extraction.settling.Provisional.saying": _SAME_TEXT,
    "extraction.settling.Settling.confirm": _WAITS,
    "extraction.settling.Settling.done": _NAMES,
    "extraction.settling.Settling.drop": _WAITS,
    "extraction.settling.Settling.of": _WAITS,
    "extraction.settling.Settling.place": _WAITS,
    "extraction.settling.Settling.settle": _WAITS,
    "extraction.settling.Settling.settle_overdue": _NAMES,
    "extraction.settling.Settling.take_back": _WAITS,
    "extraction.settling.may_be_dropped": _VALUES,
    "extraction.settling.Provisional.notes": _NAMES,
    "extraction.storing.Storing.candidate": _WAITS,
    "extraction.storing.Storing.embedded": _WAITS,
    "extraction.storing.Storing.screened": "called with every fact: screen, which is in the table above",
    "extraction.storing.Storing.put": _WAITS,
    "extraction.storing.Storing.verdicts": "called with every fact: screen, which is in the table above",
    "extraction.model_judge.Unsettled.pairs": _NAMES,
    "extraction.model_judge.Unsettled.settle": _WAITS,
    "upkeep.summaries.Summariser.refusal": "is_instruction, redact and Said, which are in the table above",
    "upkeep.summaries.Summariser.related": _WAITS,
    "upkeep.summaries.Summariser.replace": _NAMES,
    "upkeep.summaries.Summariser.summarise": _WAITS,
    "lifecycle.quota.value": _VALUES,
    "lifecycle.write_gate.UnderWay.call": _NAMES,
    "lifecycle.write_gate.UnderWay.ended": _NAMES,
    "lifecycle.write_gate.WriteGate.forget": _WAITS,
    "lifecycle.write_gate.WriteGate.put": _WAITS,
    "lifecycle.writes.Writes.allowed": _WAITS,
    "lifecycle.writes.Writes.may_stay": _WAITS,
    "lifecycle.writes.Writes.put": _WAITS,
    "lifecycle.writes.Writes.replace": _WAITS,
    "lifecycle.writes.Writes.retract": _WAITS,
    "lifecycle.writes.Writes.withdraw": _WAITS,
    "request.head.RequestHead.first_header": _NAMES,
    "request.head.RequestHead.header": _NAMES,
    "request.head.RequestHead.metadata_at": _NAMES,
    "turns.sessions.Sessions.answered": _NAMES,
    "turns.sessions.Sessions.closed": _NAMES,
    "text.digest.stable_id": "one digest of a bounded name",
    "turns.sessions.Sessions.name": "session_key and digest, which are in the table above",
    "turns.sessions.Sessions.name_without_start": "session_key and digest, which are in the table above",
    "turns.sessions.Sessions.forget": _NAMES,
    "turns.sessions.Sessions.opened": _NAMES,
    "request.head.read_headers": _NAMES,
    "request.identity.usable_user": _NAMES,
    "request.identity.user_in_header": _NAMES,
    "request.identity.user_of_key": "one HMAC of a key, which is as long as a header may be",
    "retrieval.block.memories_in": _NAMES,
    "retrieval.block.Before.holds": "says, which is in the table above",
    "retrieval.ledger.ledger.Ledger.clear": _NAMES,
    "retrieval.ledger.ledger.Ledger.forget": _NAMES,
    "retrieval.ledger.ledger.Ledger.has_any": _NAMES,
    "retrieval.ledger.ledger.Ledger.knows": _NAMES,
    "retrieval.ledger.ledger.Ledger.look": _NAMES,
    "retrieval.ledger.ledger.Ledger.page": _NAMES,
    "retrieval.ledger.ledger.Ledger.talk_changed": _NAMES,
    "retrieval.ledger.ledger.Ledger.withdrawn": _NAMES,
    "retrieval.ledger.truth.corrections": "says, and the screen, which are in the table above",
    "retrieval.recall.Recall.index": _NAMES,
    "retrieval.recall.Recall.injection": _VALUES,
    "retrieval.showing.Showing.before": _NAMES,
    "retrieval.index.memory_index.MemoryIndex.is_live": _NAMES,
    "retrieval.index.memory_index.MemoryIndex.of": _NAMES,
    "retrieval.index.hot_memories.HotMemories.at_hand": _NAMES,
    "retrieval.index.hot_memories.HotMemories.changed_elsewhere": _NAMES,
    "retrieval.index.hot_memories.HotMemories.forget_user": _NAMES,
    "retrieval.index.hot_memories.HotMemories.holds": _NAMES,
    "retrieval.index.hot_memories.HotMemories.index": _NAMES,
    "retrieval.index.hot_memories.HotMemories.found": "counts bytes of hits, without reading them",
    "retrieval.index.hot_memories.HotMemories.preload": _NAMES,
    "retrieval.index.hot_memories.HotMemories.put": _WAITS,
    "retrieval.index.hot_memories.HotMemories.warm": _NAMES,
    "retrieval.index.kept.Freshness.is_current": _NAMES,
    "retrieval.index.kept.Freshness.may_be_late": _NAMES,
    "retrieval.index.kept.Freshness.missed_a_late_write": _NAMES,
    "retrieval.index.kept.Freshness.was_read": _NAMES,
    "retrieval.index.kept.Kept.find": "counts bytes of hits, without reading them",
    "retrieval.index.kept.Kept.write": "counts bytes of a memory, without reading it",
    "retrieval.index.kept.built": "makes a MemoryIndex; what it reads of texts is done by functions of this table",
    "retrieval.index.kept.slim": _VALUES,
    "retrieval.index.regulars.Regulars.drop": _NAMES,
    "retrieval.index.regulars.Regulars.get": _NAMES,
    "retrieval.index.regulars.Regulars.grow": _NAMES,
    "retrieval.index.regulars.Regulars.put": _NAMES,
    "retrieval.index.regulars.Regulars.visit": _NAMES,
    "retrieval.index.sizes.of_memory": "asks for lengths, without reading",
    "retrieval.block.block_of": _NAMES,
    "retrieval.decide.decision.told_kinds": _VALUES,
    "retrieval.decide.fitting.fit": "reads semmem's own labelled requests, for no request",
    "retrieval.past_talks.PastTalks.asked": "asked_before and LooksBack.asks, which are in the table above",
    "retrieval.past_talks.PastTalks.notes": _WAITS,
    "retrieval.models.Reranking.order": _WAITS,
    "retrieval.models.QueryWriter.improved": _WAITS,
    "retrieval.models.QueryWriter.wants": "is_vague, which is in the table above",
    "retrieval.models.QueryWriter.write": _WAITS,
    "retrieval.begun.embed_query": _WAITS,
    "retrieval.search.find": _WAITS,
    "retrieval.search.find_by_words": _WAITS,
    "retrieval.search.nearest": _WAITS,
    "retrieval.search.newest": _VALUES,
    "text.times.calendar.back": _NAMES,
    "text.times.calendar.season": _NAMES,
    "text.times.calendar.whole": _NAMES,
    "text.times.calendar.window": _NAMES,
    "text.times.grammar.TimePhrase.get": _NAMES,
    "lifecycle.change_news.AttentiveStore.get": _NAMES,
    "lifecycle.change_news.ChangeNews.changed": _NAMES,
    "lifecycle.change_news.ChangeNews.lost": _NAMES,
    "lifecycle.change_news.ChangeNews.read_again": _NAMES,
    "lifecycle.change_news.ChangeNews.reading": _NAMES,
    "lifecycle.erasure.Erasure.forget_memory": _NAMES,
    "lifecycle.hiding_store.HidingStore.get": _NAMES,
    "lifecycle.hiding_store.HidingStore.put": _NAMES,
    "lifecycle.hiding_store.HidingStore.puts_ended": _NAMES,
    "lifecycle.holds.Holds.held": _NAMES,
    "lifecycle.holds.Lines.turn": _NAMES,
    "lifecycle.holds.hold": _NAMES,
    "lifecycle.hiding_store.Marks.after": _NAMES,
    "lifecycle.hiding_store.Marks.any_of": _NAMES,
    "lifecycle.hiding_store.Marks.cover": _NAMES,
    "lifecycle.writes.remove": _NAMES,
    "turns.observation.Observation.feed": "the readers of the dialects, which are in the table above",
    "turns.recorder.TurnRecorder.current": "session_key and turn_id, which are in the table above",
    "turns.recorder.TurnRecorder.decline": "UserMessages: each message once; tests/core/turns hold them to that",
    "turns.recorder.TurnRecorder.record": "UserMessages: each message once; tests/core/turns hold them to that",
    "turns.recovery.Recovery.choose": _NAMES,
    "turns.recovery.UnreadHistories.keep": "lengths alone, of at most so many conversations",
    "turns.recovery.UnreadHistories.settled": "compares keys of at most so many conversations",
    "turns.user_messages.UserMessages.named": _NAMES,
    "turns.sessions.session_start": _NAMES,
    "turns.sessions.session_without_start": _NAMES,
    "turns.seen.SeenMessages.declined_anonymously": _NAMES,
    "turns.seen.SeenMessages.forgotten_at": _NAMES,
    "turns.seen.SeenMessages.is_shared": _NAMES,
}
"""Not measured, and why."""
