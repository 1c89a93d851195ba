"""What a question's own vector says about it: courtesy, general knowledge, the user's life, or work to be done.

The rules of signals.py know a question by its words and see a few unmistakable shapes. The vector, which the search
needs anyway, knows a question by its meaning. It is a softmax regression, one matrix product (the weights
come from ``training/train_gate.py``, the figures are in docs/gate.md), and it only ever adds reasons to skip.

A skipped question of the user's own costs an answer, so nothing is skipped on the vector's word alone: a question that
speaks of the user is always searched for, and the more a question's words may belong to somebody's own life, the
surer the vector has to be.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from semmem.memory import Vector
from semmem.retrieval.decide.general_facts import refers_to_user

SEARCH = "search"
GREETING = "greeting"
GENERAL_FACT = "general_fact"

CHARS_MAX = 500
"""Longer messages bring a story of their own, and the model behind the vector has not read all of them."""

_TRAINED = json.loads(Path(__file__).with_name("gate_weights.json").read_text(encoding="utf-8"))
CLASSES: tuple[str, ...] = tuple(_TRAINED["classes"])
SIGNATURE: str = _TRAINED["signature"]
"""Of the embedder whose vectors the weights were trained on; those of any other mean nothing here."""
_WEIGHTS = np.array(_TRAINED["weights"], dtype=np.float32)
_BIAS = np.array(_TRAINED["bias"], dtype=np.float32)
CUTS: Mapping[str, float] = _TRAINED["cuts"]
"""The least probability that skips: ``social`` a courtesy, the others a question with that suspicion."""

OWN = re.compile(
    r"""
    \b(?:
        moms? | mums? | mommy | daddy | grandma | grandpa | grandson | granddaughter | aunt(?:s|ie|ies)? | uncles?
      | cousins? | nephews? | nieces? | (?:mother|father|brother|sister|son|daughter)-in-law | family\ members
      | girlfriends? | boyfriends? | fianc\w+ | spouse | roommates? | flatmates? | housemates? | babysitter\w*
      | co-?workers? | colleagues? | subordinates? | supervisors? | mentors? | landlord | relatives | acquaintances?
      | clients? | prospects? | vendor | decision-makers? | invoices? | proposals? | deadlines? | appointments?
      | to-?dos? | standup | contact | e-?mail\ address | phone\ numbers? | licen[cs]e\ plate | bookings?
      | reservations? | itinerary | honeymoon | anniversary | vacation | dentist | therapist | physio | vet | lease
      | spreadsheet | crm | quota | weekend | tonight | yesterday | tomorrow
      | (?:this|next|last)\ (?:week|month|morning|weekend) | hobb(?:y|ies)
      | birthdays? | hometown | job\ title | workplace | work\ location | thesis | dorm | gym | workout
      | event | how\ many\ (?:events|individuals|people\ (?:come|live|work|are|do|does|have|celebrate))
      | activit(?:y|ies) | gatherings? | get-togethers? | workshops? | attendees? | attendance | turnout
      | taking\ place | tips | ideas | (?:good|great|effective)\ (?:way|strategy|tool|place|gift)s?
      | someone | the\ person | a\ person | the\ one\ who | recommend\w* | suggest\w* | which\ of\ them | prefer
      | who\ is\ (?:older|younger|taller|shorter) | who\ has\ an?\ (?:\w+\ )?(?:higher|lower|more|less)
    )\b
    | \b(?:remind|remember|recall|forg[eo]t\w*|mention\w*|discuss\w*|talked|earlier|previously)\b
    | \b(?:hei(?:ß|ss)t|s'appelle|llama)\b | 叫什么
    | ^where\ is(?:\ \S+){1,3}\ located\W*$ | ^what(?:'s|\ is)\ the\ (?:scale|duration)\ of\b
    | \b(?:taller|shorter|older|younger)\ than\ \d | \bsome\ good\b
    """,
    re.VERBOSE,
)
"""Nobody asks a quiz question with these; somebody who keeps a memory does."""
SELDOM = re.compile(
    r"""
    \b(?:
        dads? | friends? | boss | neighbou?rs? | favou?rites? | events | individuals | occupation | somebody | anyone
      | those\ who | the\ guy | budget | passwords? | godfather | godmother | preferred | last\ time | said | told
      | scale | duration | located | what\ time | what'?s\ the\ time | the\ time\ for | how\ long\ does
      | how\ many\ letters
    )\b
    """,
    re.VERBOSE,
)
WEAK = re.compile(
    r"""
    \b(?:
        mother | father | brothers? | sisters? | sons? | daughters? | wife | husband | parents? | kids?
      | children
      | family | partner | teacher | doctor | manager | team | company | office | department | job | works? | working
      | meetings? | projects? | reports? | orders? | account | address | wedding | party | trips? | holidays? | flight
      | hotel | class | club | school | course | college | concert | festivals? | tickets? | plans? | lists? | notes?
      | people | person | held | scheduled | hosted | height | older | taller | younger
      | tak(?:e|es)\ place | house | home | apartment | room | garden | kitchen | car | dog | cat | pets?
      | it | there | here | (?:this|that|those|these|they|them|their|he|him|his|she|her|hers)
    )\b
    """,
    re.VERBOSE,
)
"""Words of both worlds: a president has a wife."""
_OTHER_SCRIPT = re.compile(r"[^\W\d_\x00-\u024f]")
"""Letters that the model hardly reads: of 17 questions about somebody's own life in Chinese, Japanese, Korean and
Russian it took 7 for general ones or for courtesies."""
_FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|im|me|my|mine|myself|we|we're|we've|our|ours|ourselves|let'?s|us)\b|[我咱俺]"
)
_SECOND_PERSON = re.compile(r"\b(?:you|your|yours|u)\b")
# "us", when nothing but these two letters is written large
_THE_STATES = re.compile(r"\b(?:US|EU|U\.S\.)(?![\w'])")
_SONG = re.compile(r"who (?:sings?|sang|sung) (?:the song )?(?!(?:at|for|in|with|to|on|me|us|my|our)\b)")

_ABOUT_SOMEBODY = re.compile(
    r"\b(?:my(?! (?:friend|dear|pal|buddy|man|ai)s?\b)|mine|our|ours|who|whose|whom|which|where|when"
    r"|how (?:many|much|long|old|far)|names?(?! is)|called|remember|remind|recall|forg[eo]t\w*"
    r"|s'appelle|hei(?:ß|ss)t|llama|dónde|cuándo|cuál|quién|cómo me|wo|wann|wer|welche\w*|où|quand|quel\w*"
    r"|(?:am|do|have|did|should|can|could|would|will) i|i (?:live|work|want|need)"
    r"|he|she|him|her|his|they|them|their)\b"
)
"""No courtesy says these, apart from a few that are searched for in vain."""


def classify(vector: Vector) -> tuple[float, float, float, float]:
    """Probabilities of CLASSES (social, general, personal, task); ``vector`` of shape (384,) is SIGNATURE's."""
    logits: list[float] = (_WEIGHTS @ vector + _BIAS).tolist()
    highest = max(logits)  # numpy's functions would take longer for four numbers
    social, general, personal, task = (math.exp(logit - highest) for logit in logits)
    total = social + general + personal + task
    return social / total, general / total, personal / total, task / total


def gate(text: str, vector: Vector) -> str:
    """GREETING or GENERAL_FACT when memories are useless for this message, else SEARCH."""
    social, general, _, _ = classify(vector)
    return decision(text, social, general, CUTS)


def decision(text: str, social: float, general: float, cuts: Mapping[str, float]) -> str:
    """The word for a text with these two probabilities. The words are read only when the vector would skip."""
    if social >= cuts["social"] and is_courteous(text):
        return GREETING
    if general < cuts["general"]:
        return SEARCH
    found = suspicion(text)
    return GENERAL_FACT if found is not None and general >= cuts[found] else SEARCH


def is_courteous(text: str) -> bool:
    """Whether a message may be a courtesy: it is short, and asks of nobody."""
    return len(text) <= CHARS_MAX and not (_OTHER_SCRIPT.search(text) or _ABOUT_SOMEBODY.search(_folded(text)))


def suspicion(text: str) -> str | None:
    """How much a question may be about the user's own life, as the name of its cut; None: too much to be skipped."""
    line = _folded(text if text.isupper() else _THE_STATES.sub("", text))
    if len(text) > CHARS_MAX or _OTHER_SCRIPT.search(text) or OWN.search(line) or _speaks_of_user(line):
        return None
    if SELDOM.search(line) or _SECOND_PERSON.search(line) or _FIRST_PERSON.search(line):
        return "general_sure"
    return "general_guarded" if WEAK.search(line) else "general"


def _speaks_of_user(line: str) -> bool:
    """As ``refers_to_user``, less songs' titles, and the "you" and the "said" of quizzes."""
    if not refers_to_user(line):
        return False
    quiz = _SECOND_PERSON.search(line) or SELDOM.search(line)
    return not (_SONG.match(line) or (quiz and not _FIRST_PERSON.search(line)))


def _folded(text: str) -> str:
    return text.casefold().replace("’", "'")
