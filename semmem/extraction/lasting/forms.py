"""Two forms of clauses that are plain whatever they are about. Closed classes only: pronouns, interrogatives, the verb
to be, and the verbs of deciding."""

from __future__ import annotations

import re

CHARS_READ = 400
"""Of a clause; nobody writes longer ones."""

_BE = "is|are|was|were|ist|sind|war|waren|est|sont|es|son|é|são"
_MY = r"my|our|mein\w{0,2}|unser\w{0,2}|mon|ma|mes|notre|nos|mis?|nuestr[oa]s?|(?:[oa]s? )?(?:meus?|minhas?|noss[oa]s?)"
_INTERROGATIVE = (
    r"what|which|who|when|where|how|was|wie|wo|wer|wann|welche\w?|qu[ée]|cuál|cuándo|dónde|quién|quel\w{0,3}|où|quand"
    r"|qui|qual|quando|onde|quem"
)
_ASKS_FOR_OWN = re.compile(
    rf"\W*(?:[^:?!.]{{1,40}}: )?(?:(?:and|but|so|und|y|et|e) )?(?:{_INTERROGATIVE})"
    rf"(?:'s|s|(?: \w+){{0,2}} (?:{_BE})) (?:{_MY})\b",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:I|we)(?:'ve| have)?(?: (?:just|finally|now|all|both|already|eventually))? "
    r"(?:decided|agreed|chose|chosen|settled on|opted|picked)\b"
    r"|\b(?:hemos|he) decidido\b|\b(?:nous avons|j'ai) décidé\b"
    r"|\b(?:ich habe|wir haben)\b[^.!?]{0,60}\b(?:entschieden|beschlossen)\b",
    re.IGNORECASE,
)


def asks_for_own(clause: str) -> bool:
    """Whether a clause asks what something of the user's own is ("what's my budget for the trip?")."""
    text = clause[:CHARS_READ].replace("’", "'")
    return clause.rstrip("\"'”’)） ").endswith(("?", "？")) and _ASKS_FOR_OWN.match(text) is not None


def is_decision(passage: str) -> bool:
    """Whether somebody tells that they decided something."""
    return _DECISION.search(passage[:CHARS_READ].replace("’", "'")) is not None
