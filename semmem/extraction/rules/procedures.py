"""How-tos: several steps in one sentence, told by the one who does them."""

from __future__ import annotations

from semmem.extraction.rules import guards
from semmem.extraction.rules.grammar import third_person
from semmem.extraction.rules.patterns import folded
from semmem.extraction.rules.sentences import CUT

_OCCASION = r"(?:to|before|after|when|whenever|every time|each time|for|once|as soon as|on)"
_DENIED = (
    r"(?:need|want|wonder|see|think|know|would|should|could|can|cannot|must|am|was|have|had|get|got|felt|thought|said"
    r"|like|love|hate)"
)
_STEPS = folded(
    rf"""{_OCCASION} (?P<occasion>.{{3,80}}?),? (?:I
    |we) (?P<how>(?:always |usually |normally |first |just |typically ){{0,2}})
    (?!{_DENIED}\b)(?P<steps>\w.*)"""
)
_ALWAYS = folded(
    rf"(?:I|we) (?:always|usually|normally|typically|first|generally) (?!{_DENIED}\b)\w+ .*(?:\bthen\b"
    rf"|\bfollowed by\b|, .*\band\b)"
)
_ORDER = folded(r"\b(?:then|followed by|finally|afterwards|last of all|first|until)\b|, .*\band\b|\bbefore \w+ing\b")
_RECIPE = folded(
    r"(?P<goal>to (?!be\b|whom|me\b|my\b|the\b|a\b|you\b)\w+ .{2,60}?), (?P<steps>(?:first |just |always )?(?:run|use"
    r"|open|start|stop|press|hold|mix|heat|boil|set|turn|click|type|call|copy|push|pull|build|restart|log|go|make"
    r"|take|put|add|wash|soak|fill|remove|connect|plug|unplug|check|edit|create|export|merge|wait)\b.*)"
)
_WAYS = folded(
    r"(?P<what>(?:my|our) .{2,60}? (?:routine|workflow|process|procedure|recipe|steps|method|trick"
    r"|way of \w+ing)\b.* (?:is|are)\b.*)"
)

STATEMENT_CHARS_MAX = 260


def procedure_in(sentence: str) -> str | None:
    """The how-to in an expanded sentence, in the third person, or None."""
    if CUT in sentence or len(sentence) > STATEMENT_CHARS_MAX or sentence.endswith("?") or guards.is_passing(sentence):
        return None
    if guards.is_question(sentence):
        return None
    if (_STEPS.match(sentence) or _ALWAYS.match(sentence)) and _ORDER.search(sentence):
        return third_person(sentence, listing=True)
    if (match := _RECIPE.match(sentence)) and _ORDER.search(match["steps"]):
        return (
            f"User's way {match['goal'][0].lower()}{match['goal'][1:]}: {third_person(match['steps'], capital=False)}"
        )
    return third_person(sentence) if _WAYS.match(sentence) and _ORDER.search(sentence) else None
